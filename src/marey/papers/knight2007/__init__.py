"""Experiments of Knight2007."""
