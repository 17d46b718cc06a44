"""Errors on real recordings, those below the folders of MAREY_DATA."""
