"""The commands that predict and learn a user's own data: run, learn, predict."""

from typing import TYPE_CHECKING, Annotated

import typer

from omkl.cli.base import INTERRUPTED, app, errors_as_messages, print_line
from omkl.cli.options import (
    AsJson,
    By,
    Categorical,
    Checkpoint,
    Coverage,
    Data,
    DateFormat,
    Delimiter,
    Drop,
    Encoding,
    Every,
    Format,
    Horizon,
    Keep,
    Key,
    LagColumns,
    Lags,
    Learner,
    Model,
    Names,
    NoHeader,
    Parameters,
    Pending,
    Pooled,
    Predictions,
    Probabilities,
    Quiet,
    Report,
    Seed,
    Target,
    Task,
    Threshold,
    checked_options,
)

if TYPE_CHECKING:
    from omkl.stream.run import Run

StreamFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model that omkl run wrote.")]


@app.command()
def run(
    data: Data,
    target: Target = "",
    task: Task = "auto",
    learner: Learner = "graph-mkl",
    parameters: Parameters = None,
    features: Names = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date_format: DateFormat = None,
    predictions: Predictions = None,
    keep: Keep = None,
    probabilities: Probabilities = False,
    threshold: Threshold = None,
    coverage: Coverage = None,
    model: Model = None,
    checkpoint: Checkpoint = None,
    every: Every = 10_000,
    report: Report = None,
    key: Key = None,
    pending: Pending = None,
    by: By = None,
    pooled: Pooled = False,
    lags: Lags = None,
    lag_columns: LagColumns = None,
    horizon: Horizon = None,
    seed: Seed = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Predict every row, then learn it: one pass over a file or a pipe.

    A row whose target is empty is predicted and not learned; with --key its target may come later, in
    a row with the same key. With --checkpoint a run that was killed resumes as if it had not been.

    \b
    Examples:
      omkl run data.csv --target price
      omkl run data.csv -t price --predictions out.csv --model price.omkl --report price.html
      omkl run day1.csv.gz day2.csv.gz -t load --checkpoint load.ckpt --every 100000
      omkl run meters.parquet -t load --by meter --learner sfg-mkl --model meters.omkl
      omkl run sales.csv -t units --by shop --pooled --model shops.omkl
      omkl run load.csv -t load --lags 1,2,24 --horizon 24 --model load.omkl
      tail -f log.jsonl | omkl run - -t seconds --every 1 --predictions -
    """
    with errors_as_messages():
        from omkl.stream.run import Run

        options = checked_options(
            data, target=target, task=task, learner=learner, parameters=parameters, features=features, drop=drop,
            categorical=categorical, date_format=date_format, predictions=predictions, keep=keep,
            probabilities=probabilities, threshold=threshold, coverage=coverage, model=model,
            checkpoint=checkpoint, every=every, report=report, key=key, pending=pending, by=by,
            pooled=pooled, lags=lags, lag_columns=lag_columns, horizon=horizon, seed=seed,
            format=format, delimiter=delimiter, encoding=encoding, header=not no_header,
        )  # fmt: skip
        run_and_show(Run(options, lambda text: None), quiet, json)


@app.command()
def learn(
    model: StreamFile,
    data: Data,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the model here, not over MODEL.")] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict, for an estimator saved in Python.")
    ] = None,
    predictions: Predictions = None,
    keep: Keep = None,
    probabilities: Probabilities = False,
    threshold: Threshold = None,
    coverage: Coverage = None,
    checkpoint: Checkpoint = None,
    every: Every = 10_000,
    report: Report = None,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Continue learning with a model, as `omkl run` would have.

    \b
    Examples:
      omkl learn price.omkl today.csv
      omkl learn price.omkl today.csv --out newer.omkl --predictions out.csv
    """
    with errors_as_messages():
        from dataclasses import replace

        from omkl.stream.files import load_stream_model
        from omkl.stream.paths import check_files
        from omkl.stream.run import Run

        given = checked_options(
            data, predictions=predictions, keep=keep, probabilities=probabilities, threshold=threshold,
            coverage=coverage, start=model, model=out or model, checkpoint=checkpoint, every=every, report=report,
            format=format, delimiter=delimiter, encoding=encoding, header=not no_header,
        )  # fmt: skip
        check_files(given)  # before the model is opened
        start = load_stream_model(model, target, learn=True)
        columns = start.preparer
        options = replace(
            given, target=start.target, learner=start.algorithm, key=columns.key, pending=columns.waiting.capacity,
            by=columns.by, pooled=start.pooled, features=columns.features, drop=columns.drop, seed=start.seed,
        )  # fmt: skip
        run_and_show(Run(options, lambda text: None, start), quiet, json)


@app.command()
def predict(
    model: StreamFile,
    data: Data,
    predictions: Annotated[
        str, typer.Option(metavar="OUT", help="Write predictions here: .csv, .tsv, .jsonl, or - for standard output.")
    ] = "-",
    keep: Keep = None,
    probabilities: Probabilities = False,
    threshold: Threshold = None,
    coverage: Coverage = None,
    every: Annotated[int, typer.Option(min=1, metavar="N", help="Rows processed at a time.")] = 10_000,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
) -> None:
    """Predict rows with a model as it is; nothing is learned.

    \b
    Examples:
      omkl predict price.omkl new.csv --predictions out.csv
      generate-rows | omkl predict price.omkl - --every 1
    """
    with errors_as_messages():
        from omkl.stream.display import Display
        from omkl.stream.files import load_stream_model
        from omkl.stream.paths import check_files
        from omkl.stream.predict import predict as predict_rows
        from omkl.stream.terminal import standard_error

        options = checked_options(
            data, start=model, predictions=predictions, keep=keep, probabilities=probabilities, threshold=threshold,
            coverage=coverage, every=every, format=format, delimiter=delimiter, encoding=encoding, header=not no_header,
        )  # fmt: skip
        check_files(options)  # before the model is opened
        with Display(standard_error(), quiet) as display:
            stopped = predict_rows(load_stream_model(model), options, display.notice)
        if stopped:
            raise typer.Exit(INTERRUPTED)


def run_and_show(run: "Run", quiet: bool, as_json: bool) -> None:
    """Run, show the results, and exit with 130 if it was stopped."""
    import json

    from omkl.stream.display import RunDisplay, show
    from omkl.stream.terminal import require_output, standard_error, standard_output

    options = run.options
    if as_json and options.predictions == "-":
        raise ValueError("--json and --predictions - both want standard output; give the predictions a file")
    if as_json or not quiet:
        require_output()
    if options.report is not None:  # what it needs is missed now rather than after the work
        from omkl.stream.run_report import write
    display = RunDisplay(standard_error(), quiet or as_json)
    run.notices.show = display.notice
    with display:
        outcome = run.run(display.update)
    if options.report is not None:
        write(outcome, options.report)
    files = {name: getattr(options, name) for name in ("predictions", "model", "checkpoint", "report")}
    if as_json:
        # JSON has no infinity and no NaN
        finite = {name: None if isinstance(value, float) and not abs(value) < float("inf") else value
                  for name, value in outcome.summary.items()}  # fmt: skip
        print_line(json.dumps(finite))
    elif not quiet:
        console = standard_error() if options.predictions == "-" else standard_output()
        if outcome.nothing_new:
            console.print("nothing to do: this run is finished, and there are no new rows", highlight=False)
        show(outcome, files, console)
    if outcome.stopped:
        again = "; the same command resumes from here" if options.checkpoint else ""
        typer.echo(f"omkl: stopped after {outcome.summary['rows']} rows{again}", err=True)
        raise typer.Exit(INTERRUPTED)
