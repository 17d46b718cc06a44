"""Poses by BFGS on a fitness function (Bodenheimer1997)."""
