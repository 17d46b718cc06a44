"""Arrays that kernels make and hand to each other."""
