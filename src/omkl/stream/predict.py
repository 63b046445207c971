"""Predictions for all rows of files or a pipe from a model that stays as it is."""

from collections.abc import Callable

from omkl.stream.model import StreamModel
from omkl.stream.names import NamedColumns, listed, suggestion
from omkl.stream.options import PIECE_ROWS, Options
from omkl.stream.parsers import Reading
from omkl.stream.paths import check_files
from omkl.stream.raw import DataError, Stop
from omkl.stream.source import Source
from omkl.stream.writer import Writer


def predict(model: StreamModel, options: Options, show: Callable[[str], None]) -> bool:
    """Write predictions for all rows; returns whether it was stopped before the end."""
    assert options.predictions is not None
    check_files(options)
    notices, preparer = model.notices, model.preparer
    notices.show = show
    model.threshold = options.label_threshold()
    model.coverages = options.coverages
    options.check_outputs(model)
    known = () if model.learner is None else model.learner.labels
    if model.threshold is not None and model.threshold.label not in (None, *known):
        name = model.threshold.label or ""
        raise DataError(f"there is no label {name!r} (--threshold){suggestion(name, known)}; there are {listed(known)}")
    stop = Stop()
    wanted = {*model.encoder.columns, model.target, preparer.key, preparer.by}
    given = {"--key of the model": preparer.key, "--by of the model": preparer.by}
    needed = {option: name for option, name in given.items() if name}
    reading = Reading(options.format, options.delimiter, options.encoding, options.header,
                      lambda name: name in wanted or name in options.keep, notices, stop=stop,
                      columns=NamedColumns(needed, {"--keep": options.keep}, tuple(model.encoder.columns)))  # fmt: skip
    reading.numbers = model.encoder.plain_numbers() - set(options.keep)
    source = Source(options.data, reading, min(options.every, PIECE_ROWS))
    writer: Writer | None = None
    model = model.following()
    try:
        with stop:
            for batch in source:
                predictions = model.predict(batch.only(lambda name: name in wanted))
                writer = writer or Writer(options.predictions, None, None)
                writer.write(predictions, batch.at(predictions.rows, options.keep), options.probabilities)
                if stop.requested:
                    break
            if writer is None and not stop.requested:
                raise DataError(f"{', '.join(options.data)}: a header and no rows; there is nothing to predict")
            if writer is not None:
                writer.finish()
    finally:
        if writer is not None:
            writer.close()
    return stop.requested
