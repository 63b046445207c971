"""Comparison of GraphMKL with peers on streams that need no files: some used in development, some not."""
