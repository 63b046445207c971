"""Requests with rows: to be predicted, learned, or both; and delayed targets."""

from typing import Any

from starlette.responses import Response

from omkl.serve import bodies
from omkl.serve.bodies import JSON, LINES, answer_body, parse_json
from omkl.serve.calls import Call, json_answer, wanted_type
from omkl.serve.checks import label_rows
from omkl.serve.commands import Command
from omkl.serve.limits import Refused, invalid
from omkl.serve.views import Want
from omkl.stream.predictions import DEFAULT_COVERAGE

LARGEST_COVERAGE, MOST_COVERAGES = 0.99, 20


async def predict(call: Call) -> Response:
    call.check_options("coverage", "probabilities", "explain", "wait")
    want = Want(_coverages(call.query.get("coverage")), call.flag("probabilities"), call.flag("explain"))
    wait = call.flag("wait")
    if wait and call.tokens:
        call.tokens.check(call.headers, "write")
    rows, table, kind, single = await call.rows_of()
    if wait:
        return await _wait(call, want, rows, table, kind, single)
    handle = call.service.get(call.name)
    service = call.service
    if service.predicting >= service.limits.predicting:
        raise Refused(429, "too many requests are being predicted; try again later")
    service.predicting += 1
    try:
        answers = await handle.predict(rows, table, want)
    finally:
        service.predicting -= 1
    call.model = service.resolved(call.name)
    return Response(answer_body(answers, kind, single), media_type=kind)


async def _wait(call: Call, want: Want, rows: list[bodies.Row], table: Any, kind: str, single: bool) -> Response:
    """Predict rows that wait for their targets."""
    if want != Want():
        raise invalid("wait goes with none of coverage, probabilities and explain")
    view = await call.service.view(call.name)  # of it only what never changes
    if view["key"] is None:
        what = "models per key have no rows that wait" if view["by"] else "start it with --key COLUMN"
        raise Refused(409, f"this model has no key by which a delayed target finds its row; {what}")
    rows = [{name: cell for name, cell in row.items() if name != view["target"]} for row in rows]
    if table is not None and view["target"] in table.column_names:
        table = table.drop_columns([view["target"]])
    answers = await call.write(Command("rows", rows, table=table))
    return Response(answer_body(answers, kind, single), media_type=kind)


async def predict_then_learn(call: Call) -> Response:
    call.check_options()
    rows, table, kind, single = await call.rows_of()
    answers = await call.write(Command("rows", rows, call.columns, table, raw=call.raw, lines=kind == LINES))
    return Response(answer_body(answers, kind, single), media_type=kind)


async def learn(call: Call) -> Response:
    call.check_options()
    rows, table, kind, _ = await call.rows_of()
    command = Command("rows", rows, call.columns, table, raw=call.raw, lines=kind == LINES, targets=True)
    return json_answer(await call.write(command))


async def learn_labels(call: Call) -> Response:
    call.check_options()
    wanted_type(call, JSON)
    rows = label_rows(parse_json(await call.body()), call.service.limits)
    call.rows = len(rows)
    return json_answer(await call.write(Command("labels", rows)))


def _coverages(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        shares = tuple(dict.fromkeys(float(part) for part in text.split(",")[: MOST_COVERAGES + 1]))
    except ValueError:
        shares = (0.0,)
    if len(shares) > MOST_COVERAGES or not all(0 < share <= LARGEST_COVERAGE for share in shares):
        raise invalid(f"coverage must be numbers above 0, at most {LARGEST_COVERAGE}, such as {DEFAULT_COVERAGE},0.95")
    return shares
