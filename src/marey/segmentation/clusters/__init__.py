"""Bodies of unlabelled markers, clustered by the distances that they keep."""
