"""Joints as points of constant distance to markers (DeAguiar2006)."""
