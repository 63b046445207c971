"""Data sets: what there is, where it is found, how it is fetched, how it is read."""
