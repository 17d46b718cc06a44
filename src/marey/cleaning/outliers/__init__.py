"""Outliers: frames in which a sensor or marker is away from its true pose."""
