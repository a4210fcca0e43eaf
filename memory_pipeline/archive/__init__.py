"""The archive: the authority on cards, in PostgreSQL."""
