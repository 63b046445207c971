"""What a request may ask for, and how it is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of the service; what exceeds one is refused, and nothing is learned."""

    headers: int = 64 << 10  # bytes of the headers of a request
    body: int = 16 << 20  # and of its body
    bodies: int = 128 << 20  # of all requests that have not been answered yet
    rows: int = 10_000  # of a request
    columns: int = 1_000  # of a model
    text: int = 1_000  # characters of a cell, a key or the name of a column
    keys: int = 1_000_000  # of a model per key
    models: int = 100
    queue: int = 1_000  # requests that wait to be learned, for each model
    queue_rows: int = 100_000  # and their rows
    predicting: int = 64  # requests that are predicted or wait for that
    viewers: int = 20  # of the dashboard
    connections: int = 1_000
    seconds: float = 30.0  # within which a request must have come
    log: int = 1 << 30  # bytes of the log of a model that no checkpoint contains yet
    ids: int = 100_000  # requests whose ids are remembered
    answers: int = 64 << 20  # bytes of their answers


class Refused(ValueError):
    """A request that cannot be answered, with the status of HTTP that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type["Refused"], tuple[int, str]]:  # between a worker and the service
        return Refused, (self.status, str(self))


def invalid(message: str) -> Refused:
    """Rows that cannot be used; nothing was learned from them."""
    return Refused(422, message)
