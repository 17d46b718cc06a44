"""Motions that generated figures perform."""
