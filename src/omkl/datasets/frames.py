"""Streams as frames of pandas, which is imported only where somebody asks for a frame."""

from collections.abc import Mapping
from typing import Any

from omkl.arrays import Vector

Columns = Mapping[str, Any]  # arrays and lists by the names of their columns


def frame_and_series(columns: Columns, y: Vector, name: str) -> tuple[Any, Any]:
    """Inputs as a frame, and the target as a series with the same index."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "this stream has text and timestamps, so it is a frame of pandas; pip install pandas", name="pandas"
        ) from None
    return pd.DataFrame(dict(columns)), pd.Series(y, name=name)
