"""Data sets: their names, where their files are, downloading and reading them."""
