"""The command that puts models behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from omkl.cli.base import app, errors_as_messages
from omkl.cli.options import (
    By,
    Categorical,
    DateFormat,
    Drop,
    Horizon,
    Key,
    LagColumns,
    Lags,
    Learner,
    Names,
    Parameters,
    Pending,
    Quiet,
    Seed,
    Task,
    checked_options,
)

DEFAULT_NAME = "model"
Token = Annotated[str | None, typer.Option(metavar="FILE", help="A file with the token; also in the environment.")]


@app.command(short_help="Predict and learn over HTTP, with a durable log.")
def serve(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=]FILE", help="Models to serve; none to start with --target.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="Start with nothing learned: what to predict."),
    ] = None,
    task: Task = "auto",
    learner: Learner = "graph-mkl",
    parameters: Parameters = None,
    features: Names = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date_format: DateFormat = None,
    key: Key = None,
    pending: Pending = None,
    by: By = None,
    lags: Lags = None,
    lag_columns: LagColumns = None,
    horizon: Horizon = None,
    seed: Seed = 0,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the model that starts with --target.")] = DEFAULT_NAME,
    workers: Annotated[
        int, typer.Option(min=1, max=256, metavar="N", help="Processes that share the keys of --by.")
    ] = 1,
    state: Annotated[
        Path, typer.Option(metavar="FOLDER", file_okay=False, help="What was learned; the same command continues.")
    ] = Path("omkl-state"),
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Other than localhost, tokens are needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 for any that is free.")] = 8000,
    read_token: Token = None,
    write_token: Token = None,
    checkpoint_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Rows between checkpoints.")] = 50_000,
    max_body: Annotated[int, typer.Option(min=1, max=1024, metavar="MIB", help="Of a request.")] = 16,
    max_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Of a request.")] = 10_000,
    max_columns: Annotated[int, typer.Option(min=1, metavar="N", help="Of a model.")] = 1_000,
    max_log: Annotated[int, typer.Option(min=1, metavar="MIB", help="Of the log that no checkpoint contains.")] = 1024,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log every request, without its values.")
    ] = False,
    log_values: Annotated[bool, typer.Option("--log-values", help="Log notices about the data, with values.")] = False,
    quiet: Quiet = False,
) -> None:
    """Predict and learn over HTTP; what was acknowledged survives a crash.

    The dashboard is at /, the description of the interface at /openapi.json, metrics at /metrics.
    Tokens come from OMKL_READ_TOKEN and OMKL_WRITE_TOKEN, or from files.

    \b
    Examples:
      omkl serve price.omkl
      omkl serve --target price --task regression
      omkl serve --target load --task regression --by meter --learner sfg-mkl --workers 2
      omkl serve price=price.omkl load=load.omkl --state /var/lib/omkl
    """
    with errors_as_messages():
        from omkl.serve.access import Tokens
        from omkl.serve.limits import Limits
        from omkl.serve.server import serve as serve_models
        from omkl.serve.service import Start, check_name

        given = {
            "target": target or "", "task": task, "learner": learner, "parameters": parameters, "features": features,
            "drop": drop, "categorical": categorical, "date_format": date_format, "key": key, "pending": pending,
            "by": by, "lags": lags, "lag_columns": lag_columns, "horizon": horizon, "seed": seed,
        }  # fmt: skip
        options = checked_options([], **given)
        starts: list[Start] = []
        for text in models or []:
            before, sign, path = text.partition("=")
            own = before if sign else file_name(text)
            starts.append(Start(own, path if sign else text, workers=workers))
        if target is not None:
            starts.append(Start(name, None, options, workers))
        elif any(value for option, value in given.items() if option not in ("target", "task", "learner", "seed")):
            raise ValueError("options about columns and learners are for a model that starts with --target")
        if not starts and not state.exists():
            raise ValueError(
                "what is to be served? Give a model file, or --target COLUMN to start with nothing learned"
            )
        names = [start.name for start in starts]
        for each in names:
            check_name(each)
            if names.count(each) > 1:
                raise ValueError(f"two models are called {each!r}; name them: NAME=FILE")
        limits = Limits(body=max_body << 20, rows=max_rows, columns=max_columns, log=max_log << 20)
        set_up_logging(quiet, log_requests, log_values)

        def started(url: str) -> None:
            if not quiet:
                typer.echo(f"omkl: serving {', '.join(names) or state} at {url} (Ctrl-C stops)", err=True)

        serve_models(state, starts, Tokens.find(read_token, write_token), limits, host, port, checkpoint_rows, started)


def file_name(path: str) -> str:
    """The name of a model in a file of this name.

    >>> file_name("models/House prices.omkl")
    'house-prices'
    """
    import re

    return re.sub("[^a-z0-9_]+", "-", Path(path).stem.lower()).strip("-_") or DEFAULT_NAME


def set_up_logging(quiet: bool, requests: bool, values: bool) -> None:
    """The library's log on standard error, without values of the data unless they are wanted."""
    import logging

    from omkl.log import DATA, logger

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    if not values:
        handler.addFilter(lambda record: not getattr(record, DATA, False))
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR if quiet else logging.DEBUG if requests else logging.INFO)
    http = logging.getLogger("uvicorn.error")  # which warns of every client that does not speak HTTP
    http.addHandler(handler)
    http.setLevel(logging.WARNING if requests else logging.ERROR)
