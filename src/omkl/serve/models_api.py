"""Requests about models: lists, descriptions, files, keys, metrics, and what the dashboard shows."""

import asyncio
import os
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from omkl._version import __version__
from omkl.serve import metrics, openapi
from omkl.serve.bodies import JSON, json_bytes, parse_json
from omkl.serve.calls import Call, json_answer, number_of, wanted_type
from omkl.serve.commands import Command
from omkl.serve.limits import Refused, invalid
from omkl.serve.service import Service, Start, options_of
from omkl.serve.views import View, curves, errors
from omkl.stream.options import Options

MODEL_FILE = "application/vnd.omkl"


async def list_models(call: Call) -> Response:
    views = await call.service.views(lambda name: call.service.get(name).view(False))
    return json_answer({"models": [described(name, view) for name, view in views.items()]})


async def describe(call: Call) -> Response:
    return json_answer(described(call.service.resolved(call.name), await call.service.get(call.name).view(False)))


async def create(call: Call) -> Response:
    call.check_options("target")
    kind = wanted_type(call, JSON, MODEL_FILE)
    content = await call.body()
    name = call.name
    if kind == JSON:
        options, workers = options_of(parse_json(content))
        await call.service.create(name, Start(name, None, options, workers), call.digest(content))
        return await describe(call)
    path = call.service.upload(content)
    try:
        target = call.query.get("target", "")
        digest = call.digest(json_bytes(target) + content)
        await call.service.create(name, Start(name, path, Options(target=target)), digest)
    except ValueError as error:
        if isinstance(error, Refused):
            raise
        raise invalid(str(error).replace(path, "the file")[:300]) from None
    finally:
        os.unlink(path)
    return await describe(call)


async def delete(call: Call) -> Response:
    call.check_options()
    return json_answer({"deleted": await call.service.delete(call.name, call.digest(b""))})


async def download(call: Call) -> Response:
    call.check_options("worker")
    found = await call.service.get(call.name).call("to_bytes")
    worker = call.query.get("worker")
    if len(found) > 1 and worker is None:
        raise Refused(409, f"the keys are in {len(found)} workers, each with a file: ?worker=0 and so on")
    if worker is not None and (not worker.isascii() or not worker.isdigit() or int(worker[:9]) >= len(found)):
        raise Refused(404, "there is no such worker")
    return Response(found[int(worker or 0)], media_type=MODEL_FILE)


async def keys(call: Call) -> Response:
    call.check_options("start", "count")
    start, count = (number_of(call, name, default) for name, default in (("start", 0), ("count", 1000)))
    found = await call.service.get(call.name).call("keys", 0, 2**31)
    names = [key for part in found for key in part["keys"]]
    return json_answer({"keys": names[start : start + min(count, 10_000)], "total": len(names)})


async def forget(call: Call) -> Response:
    key = call.path["key"]
    return json_answer(await call.write(Command("forget", key=key)))


async def events(call: Call) -> Response:
    service = call.service
    name = service.resolved(call.name)
    service.get(name)
    if service.viewers >= service.limits.viewers:
        raise Refused(429, f"{service.viewers} dashboards are open, as many as are allowed")
    return Events(service, name)


class Events(StreamingResponse):
    """What the dashboard draws, again and again; a viewer counts from before the first byte until it has gone."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(_events(service, name), media_type="text/event-stream")
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.viewers += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.viewers -= 1


async def _events(service: Service, name: str) -> AsyncIterator[bytes]:
    while not service.closing and name in service.handles:
        try:
            found = await shown(service, name)
        except (Refused, RuntimeError):  # the model was deleted, or the service stops, meanwhile
            return
        yield b"data: " + json_bytes(found) + b"\n\n"
        for _ in range(4):
            if not service.closing:
                await asyncio.sleep(0.25)


async def shown(service: Service, name: str) -> View:
    """What the dashboard draws."""
    view = await service.view(name, importance=True)
    out = described(name, view) | {"curves": curves(view)}
    out |= {field: view[field] for field in ("kernels", "importance", "last", "changes", "notices")}
    return out | {"latencies": service.meters.latencies(name), "rates": service.meters.rates(name),
                  "models": list(service.handles)}  # fmt: skip


async def metrics_text(call: Call) -> Response:
    views = await call.service.views(call.service.view)
    return Response(metrics.text(views, call.service.meters, __version__),
                    media_type="text/plain; version=0.0.4; charset=utf-8")  # fmt: skip


async def health(call: Call) -> Response:
    return json_answer({"status": "ok"})


async def ready(call: Call) -> Response:
    if not call.service.ready or call.service.closing:
        raise Refused(503, "the service is starting or stopping")
    for name, handle in call.service.handles.items():
        if handle.trouble is not None:
            raise Refused(503, f"{name}: {handle.trouble}")
    return json_answer({"status": "ready", "models": len(call.service.handles)})


async def version(call: Call) -> Response:
    return json_answer({"omkl": __version__})


async def description(call: Call) -> Response:
    return json_answer(openapi.document(call.service.limits))


def described(name: str, view: View) -> View:
    """What a client may know about a model, without rows."""
    fields = ("target", "task", "learner", "parameters", "by", "key", "horizon", "rows", "learned", "waiting",
              "pending", "keys", "columns", "labels", "queue", "queue_rows", "log_bytes", "disk_bytes")  # fmt: skip
    return (
        {"name": name} | {field: view[field] for field in fields} | {"errors": errors(view), "changes": view["changes"]}
    )
