"""The command that tries every learner on a user's own data: compare."""

from typing import Annotated

import typer

from omkl import algorithms
from omkl.cli.base import INTERRUPTED, app, errors_as_messages, print_line, split_names
from omkl.cli.options import (
    LEARNERS,
    By,
    Categorical,
    Data,
    DateFormat,
    Delimiter,
    Drop,
    Encoding,
    Format,
    Horizon,
    LagColumns,
    Lags,
    Names,
    NoHeader,
    Quiet,
    Report,
    Seed,
    Target,
    Task,
    checked_options,
    one_of,
)


@app.command()
def compare(
    data: Data,
    target: Target = "",
    task: Task = "auto",
    learners: Annotated[
        list[str] | None, typer.Option(metavar="A,B,...", help="The learners to compare; default: all.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N rows.")] = None,
    jobs: Annotated[int, typer.Option(min=0, metavar="N", help="Learners at a time; 0 for one per core.")] = 0,
    features: Names = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date_format: DateFormat = None,
    by: By = None,
    lags: Lags = None,
    lag_columns: LagColumns = None,
    horizon: Horizon = None,
    report: Report = None,
    seed: Seed = 0,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print the ranking as one line of JSON.")] = False,
) -> None:
    """Rank every learner and simple baselines on your data.

    Each row is predicted by all of them before they learn it. Ctrl-C shows the ranking so far.

    \b
    Examples:
      omkl compare data.csv --target price
      omkl compare data.csv -t price --rows 20000 --report compare.html
      omkl compare data.csv -t price --learners graph-mkl,raker --json
      omkl compare meters.parquet -t load --by meter --learners sfg-mkl,raker
    """
    with errors_as_messages():
        import json as json_module

        from omkl.engine import cores
        from omkl.estimators.declaration import Declaration
        from omkl.stream.compare import Comparison
        from omkl.stream.compare_display import CompareDisplay, show
        from omkl.stream.terminal import require_output, standard_error, standard_output

        named = [one_of("--learners", algorithms.named(name), LEARNERS) for name in split_names(learners)]
        options = checked_options(
            data, target=target, task=task, features=features, drop=drop, categorical=categorical,
            date_format=date_format, by=by, lags=lags, lag_columns=lag_columns, horizon=horizon, report=report,
            seed=seed, format=format, delimiter=delimiter, encoding=encoding, header=not no_header,
        )  # fmt: skip
        if options.task is not None:
            for name in named:
                Declaration(name, options.task)  # refuses a learner that does not do it
        if json or not quiet:
            require_output()
        if report is not None:  # what it needs is missed now rather than after the work
            from omkl.stream.compare_report import write
        display = CompareDisplay(standard_error(), quiet or json)
        comparison = Comparison(options, named or LEARNERS, rows, jobs or cores(), display.notice)
        with display:
            comparison.run(display.update)
        if report is not None:
            write(comparison, report)
        if json:
            print_line(json_module.dumps(comparison.summary()))
        elif not quiet:
            show(comparison, report, standard_output())
        if comparison.stopped:
            typer.echo(f"omkl: stopped after {comparison.rows} rows", err=True)
            raise typer.Exit(INTERRUPTED)
