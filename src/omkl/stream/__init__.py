"""Rows in, rows out: a user's own file or pipe, learned in one pass."""
