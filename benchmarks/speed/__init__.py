"""Processor time of single stages and of whole solves."""
