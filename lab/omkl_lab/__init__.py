"""Experiments over the library: streams, prequential runs, tables. The library never imports it."""
