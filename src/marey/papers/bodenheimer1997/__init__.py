"""Experiments of Bodenheimer1997."""
