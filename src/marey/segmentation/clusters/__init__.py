"""Bodies of unlabelled markers, from the distances that they keep."""
