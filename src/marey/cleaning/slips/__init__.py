"""Slips: sensors and markers that move on their body and stay there."""
