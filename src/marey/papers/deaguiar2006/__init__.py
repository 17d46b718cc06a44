"""Experiments of DeAguiar2006."""
