"""One file or one folder for each format."""
