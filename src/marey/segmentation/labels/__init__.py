"""Bodies of markers whose labels belong to a known marker set."""
