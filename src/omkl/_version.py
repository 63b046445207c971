"""The version of omkl, which the build reads from here."""

__version__ = "0.2.0"
