"""From tables of any kind to named numeric features: one encoder for every interface."""

import warnings

from omkl.encoder.columns import Encoded, Encoder
from omkl.encoder.table import Batch, of_columns, of_frame, of_matrix, of_row, text_names

__all__ = ["Batch", "Encoded", "Encoder", "of_columns", "of_frame", "of_matrix", "of_row", "text_names", "warn"]

# Other notices are as expected where a program makes the tables
WORTH_A_WARNING = ("large", "almost", "mixed", "most", "unique")


def warn(about: str, text: str) -> None:
    """Notices as warnings, which Python shows once for each text."""
    if about.partition(" ")[0] in WORTH_A_WARNING:
        warnings.warn(text, stacklevel=2)
