"""The one logger of the library, "omkl": silent until a program that uses it wants to listen.

`logging.basicConfig(level=logging.INFO)` shows which files are loaded and saved, and notices about the data.
"""

import logging

logger = logging.getLogger("omkl")
logger.addHandler(logging.NullHandler())
DATA = "with_values"  # marks a record that names values of a user's data
