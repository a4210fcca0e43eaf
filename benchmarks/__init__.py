"""Measurements, each one command that prints a table."""
