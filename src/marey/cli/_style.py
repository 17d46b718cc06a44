"""How findings look in a terminal."""

COLOURS = {"info": "dim", "warning": "yellow", "error": "red"}
"""Style of each severity."""
