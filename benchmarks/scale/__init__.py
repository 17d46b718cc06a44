"""Cost against frames, markers, bodies and takes."""
