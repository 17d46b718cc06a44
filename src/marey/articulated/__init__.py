"""Kinematic trees: tables, targets, forward kinematics, limits, sparse factor."""
