"""Poses by Gauss-Newton steps on the tree: the default solver."""
