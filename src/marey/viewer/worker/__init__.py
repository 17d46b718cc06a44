"""The worker process of `marey view`, which reads, solves and edits files."""
