"""Models of `omkl run` as model files: the JSON body and the arrays."""

import copy
from typing import Any

from omkl import persist
from omkl.encoder.columns import Encoder
from omkl.lags import ONE_SERIES, LagSettings
from omkl.notices import Notices
from omkl.persist import Arrays, Codec, Json, claims, demand, float_array
from omkl.stream.estimators import to_estimator
from omkl.stream.learner import new_learner
from omkl.stream.loaded import TableModel
from omkl.stream.model import StreamModel
from omkl.stream.predictions import DEFAULT_COVERAGE, Ends
from omkl.stream.prepare import Preparer
from omkl.stream.targets import Target
from omkl.stream.waiting import WaitingRow

NOT_STARTED: dict[str, Json] = {"core": None, "names": [], "fleet": None, "typical": None}


def encode(model: StreamModel, arrays: Arrays) -> Json:
    """The JSON body of a model; its arrays are added to `arrays`."""
    preparer, target = model.preparer, model.preparer.target
    waiting = []
    for k, (key, row) in enumerate(preparer.waiting.rows.items()):
        arrays[f"waiting.{k}.rows"] = row.x
        intervals = None if row.intervals is None else [[c, *ends] for c, ends in row.intervals.items()]
        prediction = [key, persist.plain(row.y_pred), intervals, row.probabilities]
        waiting.append([*prediction, row.position, row.scale])
    learner = NOT_STARTED if model.learner is None else model.learner.encode(arrays)
    lags = None
    if preparer.lagged is not None:
        lags = {"settings": preparer.lagged.settings.body(), "past": preparer.lagged.past.encode(arrays),
                "deferred": model.deferred.encode(arrays), "ahead": model.ahead.encode()}  # fmt: skip
    return {
        "target": target.name, "task": target.task, "learner": model.algorithm, "seed": model.seed,
        "key": preparer.key, "pending": preparer.waiting.capacity, "comma": target.comma, "learned": model.learned,
        "waiting": waiting, "encoder": preparer.encoder.body(), "core": learner["core"], "by": preparer.by,
        "features": list(preparer.features), "drop": list(preparer.drop), "names": learner["names"],
        "fleet": learner["fleet"], "typical": learner["typical"], "parameters": model.parameters, "lags": lags,
        "pooled": model.pooled,
    }  # fmt: skip


def decode(body: Json, arrays: Arrays) -> StreamModel:
    """The model that `encode` was given."""
    notices = Notices()
    task = body["task"]
    demand(task in (None, "regression", "classification"), f"there is no task {task!r}")
    _check(body)
    target = Target(body["target"], task, notices)
    target.comma = body["comma"]
    lags = body.get("lags")  # older files have none
    preparer = Preparer(
        target, notices, key=body["key"], pending=body["pending"], by=body["by"], features=tuple(body["features"]),
        drop=tuple(body["drop"]), lags=None if lags is None else LagSettings.from_body(lags["settings"]),
    )  # fmt: skip
    preparer.encoder = Encoder.from_body(body["encoder"], notices)
    pooled = body.get("pooled", False)  # older files have none of these two
    demand(type(pooled) is bool and (not pooled or preparer.by is not None), "pooled keys without a key")
    model = StreamModel(preparer, body["learner"], body["seed"], body.get("parameters", {}), pooled)
    model.learned = body["learned"]
    names: tuple[str, ...] = ()
    if task is not None and (body["core"] is not None or body["fleet"] is not None):
        model.learner = new_learner(
            model.algorithm, task, model.seed, preparer.by is not None, notices, model.parameters, pooled
        )
        model.learner.decode(body, arrays)
        target.labels = set(model.learner.labels)
        target.found_number = model.learned > 0
        names = model.learner.names
    demand(set(names) <= set(preparer.fills), "the columns and the learner's features differ")
    if preparer.lagged is not None:
        demand(task != "classification", "lags are of numbers")
        preparer.lagged.past.decode(lags["past"], arrays)
        model.deferred.decode(lags["deferred"], arrays, len(names))
        model.ahead.decode(lags["ahead"])
        begun = preparer.lagged.past.counts
        demand(not begun or set(preparer.lagged.names) <= set(names), "the learner does not have the lags")
        demand(preparer.by is not None or set(begun) <= {ONE_SERIES}, "there are several series without a key")
    for k, (key, y_pred, intervals, probabilities, *others) in enumerate(body["waiting"]):
        x = float_array(arrays, f"waiting.{k}.rows")
        demand(x.ndim == 1 and len(x) <= len(names), "a waiting row does not fit the features")
        _check_waiting(task, key, y_pred, probabilities)
        position, scale = others or (0, 0.0)  # older files have none
        at = claims.count(position, "the position of a waiting row")
        claims.number(scale, "the scale of a waiting row")
        demand(at < max(preparer.count, 1), "a waiting row has not come yet")
        preparer.waiting.rows[str(key)] = WaitingRow(x, y_pred, _intervals(intervals), probabilities, at, scale)
    return model


def _check(body: Json) -> None:
    claims.string(body["target"], "the target")
    claims.string(body["learner"], "the learner")
    claims.one_of(body["comma"], (None, "thousands", "decimal"), "comma")
    for name in ("key", "by"):
        if body[name] is not None:
            claims.string(body[name], name)
    claims.strings(body["features"], "the columns to learn from")
    claims.strings(body["drop"], "the columns left out")
    claims.count(body["pending"], "pending", 1)
    claims.count(body["learned"], "the number of rows learned")
    claims.count(body["seed"], "the seed")
    claims.mapping(body.get("parameters", {}), "the parameters")


def _intervals(claimed: Json) -> Ends | None:
    """The intervals of a waiting row; older files have the ends of the 90 % interval alone."""
    if claimed is None:
        return None
    demand(isinstance(claimed, list), "the intervals of a waiting row must be a list")
    if claimed and not isinstance(claimed[0], list):
        claimed = [[DEFAULT_COVERAGE, *claimed]]
    out: Ends = {}
    for coverage, *ends in claimed:
        demand(len(ends) == 2, "an interval has two ends")
        lower, upper = (claims.number(end, "the interval of a waiting row") for end in ends)
        out[claims.coverage(coverage)] = lower, upper
    return out


def _check_waiting(task: str | None, key: object, y_pred: object, probabilities: object) -> None:
    claims.string(key, "the key of a waiting row")
    if task == "regression":
        claims.number(y_pred, "the prediction of a waiting row")
    elif y_pred is not None:
        claims.string(y_pred, "the prediction of a waiting row")
    for probability in claims.mapping(probabilities or {}, "the probabilities of a waiting row").values():
        claims.number(probability, "the probability of a label")


def _encode(model: StreamModel | TableModel, compact: bool) -> tuple[Json, Arrays]:
    arrays: Arrays = {}
    if isinstance(model, TableModel):
        model = copy.deepcopy(model).model  # one moment, whatever other threads learn meanwhile
    return encode(model, arrays), arrays


persist.register("stream", Codec[Any]((StreamModel, TableModel), _encode, decode, to_estimator))
