"""Corrections by hand, tried, kept and undone."""
