"""Experiments of OBrien2000."""
