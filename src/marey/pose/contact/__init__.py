"""Foot contact: detection, ground and inverse kinematics that holds it."""
