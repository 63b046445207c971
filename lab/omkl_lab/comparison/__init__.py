"""Prequential comparison of GraphMKL with what people would use instead, on real sets, unscaled and whole."""
