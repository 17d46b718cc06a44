"""Errors against known truth, by two independent generators."""
