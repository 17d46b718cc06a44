"""Journals of a stream, and when they are written."""
