"""Experiments of Zordan2003."""
