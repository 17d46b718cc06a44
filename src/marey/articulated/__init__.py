"""Compiled kinematics of a tree of joints: tables, targets, limits, sparse factor."""
