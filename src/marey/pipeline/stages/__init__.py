"""The stages of a solve, in the order of `marey.pipeline.run`."""
