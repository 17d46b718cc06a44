"""The process that reads, solves and edits for the server."""
