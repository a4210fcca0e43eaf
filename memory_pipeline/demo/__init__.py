"""Holds the sample sessions that the demo starts from."""
