"""Poses of a simulated body pulled by its markers (Zordan2003)."""
