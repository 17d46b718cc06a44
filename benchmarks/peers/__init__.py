"""The same problem in other programs, each in an environment of its own."""
