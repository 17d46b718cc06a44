"""Poses by Gauss-Newton on the kinematic tree: the default solver."""
