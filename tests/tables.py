"""Tables as people have them."""

import numpy as np
import pyarrow as pa


def table(rows: int, seed: int = 0) -> str:
    """Numbers, gaps, categories that come late, dates, and targets that are missing now and then."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    lines = ["when,a,b,c,colour,y"]
    for k in range(rows):
        a, b, c = x[k]
        colour = ["red", "green", "blue", "white"][min(int(k * 4 / rows * rng.random() * 2), 3)]
        y = "" if k % 97 == 13 else f"{np.sin(2 * a) + b * c + 0.3 * (colour == 'red'):.6f}"
        gap = "" if k > rows // 3 and k % 50 == 0 else f"{b:.6f}"
        lines.append(f"2024-01-{1 + k % 28:02d} {k % 24:02d}:00,{a:.6f},{gap},{c:.6f},{colour},{y}")
    return "\n".join(lines) + "\n"


def compressed(kind: str, data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, kind) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()
