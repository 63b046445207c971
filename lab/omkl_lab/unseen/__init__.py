"""GraphMKL beside simple streaming peers, on streams that need no files: some that it was mended on, some fresh."""
