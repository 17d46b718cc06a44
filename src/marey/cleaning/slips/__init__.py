"""Sensors and markers that slip on the body."""
