"""Errors of a motion capture studio, added to a perfect recording."""
