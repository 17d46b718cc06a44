"""Skeleton and motion estimated from the root to the leaves (Knight2007)."""
