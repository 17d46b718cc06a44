"""Ball joints and hinges of two posed bodies (OBrien2000)."""
