"""Poses in closed form, one frame at a time, from constants of the skeleton."""
