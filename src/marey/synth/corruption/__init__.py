"""Errors of a capture studio, added to a perfect recording."""
