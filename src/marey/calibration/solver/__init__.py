"""Levenberg-Marquardt with the poses eliminated by the Schur complement."""
