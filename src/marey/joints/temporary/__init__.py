"""Joints that exist for part of a take."""
