"""Any model file that predicts rows of tables: one that `omkl run` wrote, or an estimator."""

from omkl import persist
from omkl.stream.checkpoint import Checkpoint
from omkl.stream.estimators import is_estimator, of_estimator
from omkl.stream.model import StreamModel


def load_stream_model(path: str, target: str | None = None, learn: bool = False) -> StreamModel:
    """The model in this file: one that `omkl run` wrote, or an estimator."""
    found = persist.read(path)
    if isinstance(found, Checkpoint):
        return found.model
    if isinstance(found, StreamModel):
        if target is not None and target != found.target:
            raise ValueError(f"{path}: it predicts {found.target!r}, not {target!r} (--target)")
        return found
    if not is_estimator(found):
        raise ValueError(
            f"{path}: a {type(found).__name__}, which does not know the columns of a file; wanted a model of omkl run "
            "or an estimator"
        )
    if learn and target is None and "target_name_" not in vars(found):
        raise ValueError(f"{path}: an estimator that does not know the name of its target; give it with --target")
    return of_estimator(found, target, path)
