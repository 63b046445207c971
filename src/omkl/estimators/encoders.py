"""What the transformers of both ecosystems need of the encoder of tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omkl.persist import Json
from omkl.validation import require

if TYPE_CHECKING:
    from omkl.encoder import Batch, Encoder


def encoder_parameters(date_format: object, categorical: object) -> tuple[str | None, tuple[str, ...]]:
    """The parameters of an encoder, checked."""
    require(date_format is None or isinstance(date_format, str), "date_format", "text or None", date_format)
    listed = () if categorical is None else categorical
    named = isinstance(listed, Sequence) and not isinstance(listed, str) and all(isinstance(n, str) for n in listed)
    require(named, "categorical", "a list of names of columns, or None", categorical)
    return date_format, tuple(listed)  # type: ignore[return-value, arg-type]  # checked


def new_encoder(date_format: str | None, categorical: tuple[str, ...]) -> "Encoder":
    """An encoder that has seen nothing."""
    from omkl.encoder import Encoder, warn  # pyarrow takes time to load

    return Encoder(warn, date_format, categorical)


def changed_encoder(
    before: "Encoder | None", batch: "Batch", date_format: str | None, categorical: tuple[str, ...]
) -> tuple["Encoder", list[str]]:
    """An encoder that has seen these rows too, and the features that are new."""
    encoder = new_encoder(date_format, categorical) if before is None else before.copy()
    known = set(encoder.features)
    encoder.encode_whole(batch)
    return encoder, [name for name in encoder.features if name not in known]


def encoder_from(body: Json) -> "Encoder":
    """The encoder of a model file."""
    from omkl.encoder import Encoder, warn

    return Encoder.from_body(body, warn)
