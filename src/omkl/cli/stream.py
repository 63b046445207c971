"""Commands for a user's own data: run, predict, learn, inspect, compare."""

import sys
from typing import Annotated, Any

import typer

from omkl.cli.base import INTERRUPTED, app, plainly, words

LEARNERS = ("graph-mkl", "sfg-mkl", "sfg-mkl-r", "raker", "omkl-gf", "omkr", "rfomkr")

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...", help="CSV, TSV, JSON lines, Parquet or Arrow, plain, gzip or zstd; - for standard input."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notices, no summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="The summary as one line of JSON on standard output.")]
Predictions = Annotated[
    str | None,
    typer.Option(metavar="OUT", help="Write predictions here: .csv, .tsv, .jsonl, or - for standard output."),
]
Names = Annotated[list[str] | None, typer.Option(metavar="A,B,...", help="Columns to learn from; all unless named.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="A,B,...", help="Columns to leave out.")]
Categorical = Annotated[
    list[str] | None, typer.Option(metavar="A,B,...", help="Columns of numbers that are names, such as post codes.")
]
DateFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="How dates are written unless 2024-05-01 12:00: '%d/%m/%Y'.")
]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help="csv, tsv, jsonl, parquet or arrow; else by name and content.")
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Between the fields of CSV; else , ; tab or | by the header.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of text: utf-8 unless named, latin-1 for instance.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line is data; columns are called 1, 2, 3, ...")]
Every = Annotated[
    int, typer.Option(min=1, metavar="N", help="Rows between checkpoints; rows are handed on in pieces of at most N.")
]
Checkpoint = Annotated[
    str | None, typer.Option(metavar="FILE", help="Keep a checkpoint; killed, the same command goes on from it.")
]
Model = Annotated[str | None, typer.Option(metavar="FILE", help="Write the model here.")]
Report = Annotated[str | None, typer.Option(metavar="HTML", help="Write a report here: one page, no network needed.")]
Task = Annotated[str, typer.Option(metavar="NAME", help="auto, regression or classification.")]
Learner = Annotated[str, typer.Option(metavar="NAME", help=f"{', '.join(LEARNERS[:-1])} or {LEARNERS[-1]}.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.")]
Key = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="A target that comes later finds its row by this column.")
]
Pending = Annotated[int, typer.Option(min=1, metavar="N", help="Rows kept waiting for their target.")]
By = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="A model for each value of this column: sensors, users, meters.")
]
SeedOf = Annotated[int, typer.Option(min=0, metavar="N", help="Of random features and draws.")]


def one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def options_of(data: list[str], **given: Any) -> Any:
    """What was asked for, checked."""
    from omkl.stream.parsers import FORMATS
    from omkl.stream.run import Options

    if given.get("format") is not None:
        one_of("--format", given["format"], FORMATS)
    if "task" in given:
        task = one_of("--task", given["task"], ("auto", "regression", "classification"))
        given["task"] = None if task == "auto" else task
    if "learner" in given:
        one_of("--learner", given["learner"], LEARNERS)
    for name in ("features", "drop", "categorical"):
        given[name] = tuple(words(given.get(name)))
    return Options(data=tuple(data), **given)


def conclude(run: Any, quiet: bool, as_json: bool) -> None:
    """Run, show, and exit with 130 if it was stopped."""
    import json

    from rich.console import Console

    from omkl.stream.display import show, terminal

    options = run.options
    if as_json and options.predictions == "-":
        raise ValueError("--json and --predictions - both want standard output; give the predictions a file")
    if options.report is not None:  # what it needs is missed now rather than after the work
        from omkl.stream.report import write
    display = terminal(quiet or as_json)
    run.tell.say = display.say
    with display:
        outcome = run.run(display.watch)
    if options.report is not None:
        write(outcome, options.report)
    files = {name: getattr(options, name) for name in ("predictions", "model", "checkpoint", "report")}
    if as_json:
        # JSON has no word for what is not finite
        finite = {name: None if isinstance(value, float) and not abs(value) < float("inf") else value
                  for name, value in outcome.summary.items()}  # fmt: skip
        typer.echo(json.dumps(finite))
    elif not quiet:
        console = Console(file=sys.stderr if options.predictions == "-" else sys.stdout, highlight=False)
        if outcome.nothing_new:
            console.print("nothing to do: this run is finished, and there are no new rows", highlight=False)
        show(outcome, files, console)
    if outcome.stopped:
        again = "; the same command goes on from here" if options.checkpoint else ""
        typer.echo(f"omkl: stopped after {outcome.summary['rows']} rows{again}", err=True)
        raise typer.Exit(INTERRUPTED)


@app.command()
def run(
    data: Data,
    target: Target,
    task: Task = "auto",
    learner: Learner = "graph-mkl",
    features: Names = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date_format: DateFormat = None,
    predictions: Predictions = None,
    model: Model = None,
    checkpoint: Checkpoint = None,
    every: Every = 10_000,
    report: Report = None,
    key: Key = None,
    pending: Pending = 10_000,
    by: By = None,
    seed: SeedOf = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: AsJson = False,
) -> None:
    """Predict every row, then learn it: one pass over a file or a pipe.

    A row whose target is empty is predicted and not learned; with --key its target may come later, in
    a row with the same key. With --checkpoint a killed run goes on as if nothing had happened.

    \b
    Examples:
      omkl run data.csv --target price
      omkl run data.csv -t price --predictions out.csv --model price.omkl --report price.html
      omkl run day1.csv.gz day2.csv.gz -t load --checkpoint load.ckpt --every 100000
      omkl run meters.parquet -t load --by meter --learner sfg-mkl --model meters.omkl
      tail -f log.jsonl | omkl run - -t seconds --every 1 --predictions -
    """
    with plainly():
        from omkl.stream.run import Run

        options = options_of(
            data, target=target, task=task, learner=learner, features=features, drop=drop, categorical=categorical,
            date_format=date_format, predictions=predictions, model=model, checkpoint=checkpoint, every=every,
            report=report, key=key, pending=pending, by=by, seed=seed, format=format, delimiter=delimiter,
            encoding=encoding, header=not no_header,
        )  # fmt: skip
        conclude(Run(options, lambda news: None), quiet, json)


@app.command()
def learn(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that omkl run wrote.")],
    data: Data,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the model here, not over MODEL.")] = None,
    predictions: Predictions = None,
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
    """Go on learning with a model, as `omkl run` would have.

    \b
    Examples:
      omkl learn price.omkl today.csv
      omkl learn price.omkl today.csv --out newer.omkl --predictions out.csv
    """
    with plainly():
        from omkl.stream.run import Run

        start = stream_model(model)
        options = options_of(
            data, target=start.target, learner=start.learner, key=start.key, pending=start.pending, by=start.by,
            features=list(start.features), drop=list(start.drop), seed=start.seed, predictions=predictions,
            model=out or model, checkpoint=checkpoint, every=every,
            report=report,
            format=format, delimiter=delimiter, encoding=encoding, header=not no_header,
        )  # fmt: skip
        conclude(Run(options, lambda news: None, start), quiet, json)


@app.command()
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that omkl run wrote.")],
    data: Data,
    predictions: Annotated[
        str, typer.Option(metavar="OUT", help="Write predictions here: .csv, .tsv, .jsonl, or - for standard output.")
    ] = "-",
    every: Annotated[int, typer.Option(min=1, metavar="N", help="Rows handed on at a time.")] = 10_000,
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
    with plainly():
        from omkl.stream.display import terminal
        from omkl.stream.run import predict as job

        options = options_of(data, predictions=predictions, every=every, format=format, delimiter=delimiter,
                             encoding=encoding, header=not no_header)  # fmt: skip
        with terminal(quiet) as display:
            stopped = job(stream_model(model), options, display.say)
        if stopped:
            raise typer.Exit(INTERRUPTED)


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Any model file or checkpoint of omkl.")],
    json: Annotated[bool, typer.Option("--json", help="As JSON on standard output.")] = False,
) -> None:
    """Show what a model is, what it has seen, its kernels, their weights and their graph.

    \b
    Examples:
      omkl inspect price.omkl
      omkl inspect price.omkl --json
    """
    with plainly():
        from rich.console import Console

        from omkl.stream import inspect as job

        facts = job.facts(model)
        if json:
            typer.echo(job.as_json(facts))
        else:
            job.show(facts, Console(highlight=False))


def stream_model(path: str) -> Any:
    """The model in this file, which must be one that `omkl run` wrote."""
    from omkl import persist
    from omkl.stream.model import StreamModel
    from omkl.stream.run import Kept

    found = persist.load(path)
    if isinstance(found, Kept):
        return found.model
    if not isinstance(found, StreamModel):
        raise ValueError(
            f"{path}: a {type(found).__name__}, which does not know the columns of a file; wanted a model of omkl run"
        )
    return found


@app.command()
def compare(
    data: Data,
    target: Target,
    task: Task = "auto",
    learners: Annotated[
        list[str] | None, typer.Option(metavar="A,B,...", help="Who takes part; all unless named.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many rows.")] = None,
    jobs: Annotated[int, typer.Option(min=0, metavar="N", help="Learners at a time; 0 for one per core.")] = 0,
    features: Names = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date_format: DateFormat = None,
    report: Report = None,
    seed: SeedOf = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="The ranking as one line of JSON on standard output.")] = False,
) -> None:
    """Try every learner on your data, beside simple baselines, in one pass.

    Each row is predicted by all of them before they learn it. Ctrl-C shows the ranking so far.

    \b
    Examples:
      omkl compare data.csv --target price
      omkl compare data.csv -t price --rows 20000 --report compare.html
      omkl compare data.csv -t price --learners graph-mkl,raker --json
    """
    with plainly():
        import json as notation

        from rich.console import Console

        from omkl.engine import cores
        from omkl.stream import compare as job

        named = [one_of("--learners", name, LEARNERS) for name in words(learners)]
        options = options_of(
            data, target=target, task=task, features=features, drop=drop, categorical=categorical,
            date_format=date_format, report=report, seed=seed, format=format, delimiter=delimiter, encoding=encoding,
            header=not no_header,
        )  # fmt: skip
        if report is not None:  # what it needs is missed now rather than after the work
            from omkl.stream.report import write_comparison
        display = job.Watch(Console(file=sys.stderr, highlight=False), quiet or json)
        comparison = job.Comparison(options, named or LEARNERS, rows, jobs or cores(), display.say)
        with display:
            comparison.run(display.compare)
        if report is not None:
            write_comparison(comparison, report)
        if json:
            typer.echo(notation.dumps(comparison.summary()))
        elif not quiet:
            job.show(comparison, report, Console(highlight=False))
        if comparison.stopped:
            typer.echo(f"omkl: stopped after {comparison.rows} rows", err=True)
            raise typer.Exit(INTERRUPTED)
