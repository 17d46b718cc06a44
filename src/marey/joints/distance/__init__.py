"""Joints from distances to markers (DeAguiar2006)."""
