"""The options that the commands for a user's own data share."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omkl import algorithms
from omkl.cli.base import split_names

if TYPE_CHECKING:
    from omkl.persist import Json
    from omkl.stream.options import Options

LEARNERS = algorithms.names()
TASKS = ("auto", "regression", "classification")

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA", help="CSV, TSV, JSON lines, Parquet or Arrow, compressed or not; - for standard input."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress, no notices, no summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one line of JSON.")]
Predictions = Annotated[
    str | None,
    typer.Option(metavar="OUT", help="Write predictions here: .csv, .tsv, .jsonl, or - for standard output."),
]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="A,B,...", help="Columns of the data to write beside the predictions.")
]
Threshold = Annotated[
    str | None,
    typer.Option(metavar="[LABEL=]P", help="Predict LABEL, or the second of two, where its probability is at least P."),
]
Probabilities = Annotated[bool, typer.Option("--probabilities", help="Write the probabilities of all labels.")]
Coverage = Annotated[
    list[str] | None,
    typer.Option(metavar="P,Q,...", help="Coverages of the prediction intervals, such as 0.8,0.95; default: 0.9."),
]
Names = Annotated[list[str] | None, typer.Option(metavar="A,B,...", help="Columns to learn from; default: all.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="A,B,...", help="Columns to leave out.")]
Categorical = Annotated[
    list[str] | None, typer.Option(metavar="A,B,...", help="Columns of numeric codes, such as post codes.")
]
DateFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="Format of dates unlike 2024-05-01 12:00: '%d/%m/%Y'.")
]
Format = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="csv, tsv, jsonl, parquet or arrow; default: by content and file name."),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Delimiter of CSV; default: , ; tab or | by the header.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of text, such as latin-1; default: utf-8.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line is data; columns are called 1, 2, 3, ...")]
Every = Annotated[
    int, typer.Option(min=1, metavar="N", help="Rows between checkpoints; rows are processed in pieces of at most N.")
]
Checkpoint = Annotated[
    str | None, typer.Option(metavar="FILE", help="Save checkpoints here; if killed, the same command resumes.")
]
Model = Annotated[str | None, typer.Option(metavar="FILE", help="Write the model here.")]
Report = Annotated[str | None, typer.Option(metavar="HTML", help="Write a report here: one page, no network needed.")]
Task = Annotated[str, typer.Option(metavar="NAME", help="auto, regression or classification.")]
Learner = Annotated[str, typer.Option(metavar="NAME", help=f"{', '.join(LEARNERS[:-1])} or {LEARNERS[-1]}.")]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict (required).", show_default=False)
]
Key = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Delayed labels: a target that comes later finds its row by this.")
]
Pending = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Rows that may wait for a target, with --key; default: 10000."),
]
By = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="One model for each value of this column: sensors, users, meters.")
]
Pooled = Annotated[
    bool, typer.Option("--pooled", help="With --by: one model for all values, and a correction for each.")
]
Lags = Annotated[
    str | None, typer.Option(metavar="K,K,...", help="Past targets to learn from: 1 is the last known, 1-24 a range.")
]
LagColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B,...", help="Columns whose past values are used instead of the row's; also A=0,1,24."),
]
Horizon = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="How many rows ahead to predict, with --lags; default: 1.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the learner, such as n_features=100; repeatable."),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of random features and draws.")]


def one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    """`value`, which must be among those known."""
    if value not in known:
        from omkl.stream.names import suggestion

        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}{suggestion(value, known)}")
    return value


def parameter(text: str) -> tuple[str, "Json"]:
    """The name and the value of a parameter; a value that is not JSON is text.

    >>> parameter("n_features=100"), parameter("steps=[1, 0.5]"), parameter("evaluate=all")
    (('n_features', 100), ('steps', [1, 0.5]), ('evaluate', 'all'))
    """
    import json

    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ValueError(f"--set must be NAME=VALUE, such as n_features=100, got {text!r}")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), {"True": True, "False": False, "None": None}.get(value.strip(), value.strip())


def parameters(texts: Sequence[str]) -> "dict[str, Json]":
    """Parameters by name, each given once."""
    pairs = [parameter(text) for text in texts]
    for k, (name, _) in enumerate(pairs):
        if name in dict(pairs[:k]):
            raise ValueError(f"--set: {name} comes twice; give each parameter once")
    return dict(pairs)


def coverages(values: list[str] | None) -> tuple[float, ...]:
    """Coverages of intervals, each a number that the half widths are tracked for.

    >>> coverages(["0.8,.95"])
    (0.8, 0.95)
    """
    from omkl.algorithms.graph_mkl.constants import LEVELS

    out: list[float] = []
    for text in split_names(values):
        try:
            share = float(text)
        except ValueError:
            share = 0.0
        if not 0 < share <= LEVELS[-1]:
            raise ValueError(
                f"--coverage must be numbers above 0, at most {LEVELS[-1]}, such as 0.8,0.95, got {text!r}"
            )
        if share in out:
            raise ValueError(f"--coverage: {text} comes twice; give each coverage once")
        out.append(share)
    return tuple(out)


def checked_options(data: list[str], **given: Any) -> "Options":
    """The options of a pass over data, checked."""
    from omkl.stream.options import PENDING_ROWS, Options
    from omkl.stream.parsers import FORMATS

    if given.get("format") is not None:
        one_of("--format", given["format"], FORMATS)
    if "task" in given:
        task = one_of("--task", given["task"], TASKS)
        given["task"] = None if task == "auto" else task
    if "learner" in given:
        given["learner"] = one_of("--learner", algorithms.named(given["learner"]), LEARNERS)
    if "parameters" in given:
        given["parameters"] = parameters(given["parameters"] or ())
    dates = given.get("date_format")
    if dates is not None and "%" not in dates:
        raise ValueError(f"--date-format must be made of directives, such as '%d/%m/%Y %H:%M', got {dates!r}")
    if given.get("pooled") and given.get("by") is None:
        raise ValueError("--pooled is for --by: one model for all of its values, and a correction for each")
    if "pending" in given:
        if given["pending"] is not None and given.get("key") is None:
            raise ValueError("--pending is for --key: how many rows may wait for a target that comes later")
        given["pending"] = given["pending"] or PENDING_ROWS
    if data and given.get("target") == "":  # omkl serve has a model instead
        raise ValueError(missing_target(data, given))
    refuse_unquoted(data, given)
    given["coverage"] = coverages(given.get("coverage"))
    for name in ("features", "drop", "categorical", "keep"):
        given[name] = tuple(split_names(given.get(name)))
    given["lag_columns"] = tuple(given.get("lag_columns") or ())
    options = Options(data=tuple(data), **given)
    options.check_columns()
    options.check_predictions()
    options.lag_settings()  # refuses what it cannot be
    return options


def refuse_unquoted(data: list[str], given: Mapping[str, Any]) -> None:
    """Say that a name with spaces needs quotes where its words came as files that do not exist."""
    rest = [path for path in data if path != "-" and not os.path.exists(path)]
    name = " ".join([given.get("target") or "", *rest])
    if rest and data[0] not in rest and name in known_columns(data[0], given):
        raise ValueError(f"a name with spaces needs quotes: --target '{name}'")


def missing_target(data: list[str], given: Mapping[str, Any]) -> str:
    """What to say to those who have not named the column to predict: which there are."""
    from omkl.stream.names import listed

    message, columns = "name the column to predict: --target COLUMN", known_columns(data[0], given)
    return f"{message}; the columns of {data[0]} are {listed(columns)}" if columns else message


def known_columns(path: str, given: Mapping[str, Any]) -> list[str]:
    """The columns of a file, as far as it can be read."""
    from omkl.stream.parsers import Reading
    from omkl.stream.source import columns_of

    if path == "-":  # what is read of it would be lost
        return []
    reading = Reading(given.get("format"), given.get("delimiter"), given.get("encoding"), given.get("header", True))
    try:
        return columns_of(path, reading)
    except (OSError, ValueError):  # which the next command will be told
        return []
