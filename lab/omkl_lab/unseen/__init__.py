"""Comparison of GraphMKL with simple peers on streams that need no files: some used in development, some new."""
