"""The ASGI application: what can be asked for, and what is answered."""

import time
from collections.abc import Awaitable, Callable
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from omkl.log import logger
from omkl.serve import models_api as models
from omkl.serve import rows_api as rows
from omkl.serve.access import Right, Tokens, check_host
from omkl.serve.bodies import JSON, json_bytes
from omkl.serve.calls import Call
from omkl.serve.limits import Refused, invalid
from omkl.serve.service import Service

HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
OF_PAGES = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "referrer-policy": "no-referrer",
}
Handler = Callable[[Call], Awaitable[Response]]


def static(name: str, kind: str) -> Handler:
    """A file of the dashboard."""
    content = resources.files("omkl.serve").joinpath("dashboard", name).read_bytes()

    async def answer(call: Call) -> Response:
        return Response(content, headers=OF_PAGES, media_type=kind)

    return answer


# by the last part of the path, /VERB or /v1/models/NAME/VERB, all of them with POST
ROWS: dict[str, tuple[Handler, Right]] = {
    "predict-then-learn": (rows.predict_then_learn, "write"),
    "predict": (rows.predict, "read"),
    "learn": (rows.learn, "write"),
    "labels": (rows.learn_labels, "write"),
}
# verb, path, method, handler, right
M = "/v1/models/{name}"
ROUTES: tuple[tuple[str, str, str, Handler, Right], ...] = (
    ("models", "/v1/models", "GET", models.list_models, "read"),
    ("model", M, "GET", models.describe, "read"),
    ("create", M, "PUT", models.create, "write"),
    ("delete", M, "DELETE", models.delete, "write"),
    ("file", M + "/file", "GET", models.download, "read"),
    ("keys", M + "/keys", "GET", models.keys, "read"),
    ("forget", M + "/keys/{key:path}", "DELETE", models.forget, "write"),
    ("events", M + "/events", "GET", models.events, "read"),
    ("metrics", "/metrics", "GET", models.metrics_text, "read"),
    ("health", "/health", "GET", models.health, "none"),
    ("ready", "/ready", "GET", models.ready, "none"),
    ("version", "/version", "GET", models.version, "none"),
    ("openapi", "/openapi.json", "GET", models.description, "none"),
)
PAGES = (("/", "index.html", "text/html"), ("/dashboard.js", "dashboard.js", "text/javascript"),
         ("/dashboard.css", "dashboard.css", "text/css"), ("/icon.svg", "icon.svg", "image/svg+xml"))  # fmt: skip


class Endpoint:
    """One path, and what each method does there: access, errors as answers, and times."""

    def __init__(self, service: Service, tokens: Tokens, handlers: dict[str, tuple[str, Handler, Right]]) -> None:
        self.service, self.tokens, self.handlers = service, tokens, handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        verb, handler, right = self.handlers.get(scope["method"], ("other", not_allowed, "none"))
        call = Call(self.service, self.tokens, scope, receive, verb)
        try:
            check_host(call.headers, self.tokens)
            if self.tokens and right != "none":
                self.tokens.check(call.headers, right)
            response = await handler(call)
        except Refused as refused:
            response = refusal(refused)
        except ClientDisconnect:
            return
        except Exception as error:
            if isinstance(error, (ValueError, ArithmeticError)):  # of the model, about the rows
                response = refusal(invalid(str(error)[:300]))
            else:
                logger.error("internal error in %s", verb, exc_info=error)
                response = refusal(Refused(500, "internal error"))
        finally:
            call.release()
        response.raw_headers += HEADERS
        if response.status_code == 405:
            response.headers["allow"] = ", ".join(self.handlers)
        seconds = time.perf_counter() - began
        self.service.meters.add(verb, response.status_code, call.model, seconds, call.rows)
        logger.debug("%s %s %d %.1f ms", scope["method"], verb, response.status_code, 1000 * seconds)
        await response(scope, receive, send)


async def not_allowed(call: Call) -> Response:
    raise Refused(405, "this method is not for this path; see /openapi.json")


async def not_found(call: Call) -> Response:
    raise Refused(404, "there is nothing at this path; see /openapi.json")


def refusal(refused: Refused) -> Response:
    """An error as JSON."""
    headers = {"retry-after": "1"} if refused.status in (429, 503) else {}
    if refused.status in (408, 413):
        headers["connection"] = "close"  # what is left of the body is not read
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(json_bytes({"error": str(refused)}), refused.status, headers, JSON)


def make_app(service: Service, tokens: Tokens) -> ASGIApp:
    """The application of a service that has been started."""
    of_rows = {verb: Endpoint(service, tokens, {"POST": (verb, *rest)}) for verb, rest in ROWS.items()}
    others = _others(service, tokens)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"].split("/"):  # nearly all requests bring rows: no search for the route, no middlewares
            case ["", verb] if verb in of_rows:
                await of_rows[verb](scope, receive, send)
            case ["", "v1", "models", name, verb] if verb in of_rows:
                await of_rows[verb]({**scope, "path_params": {"name": name}}, receive, send)
            case _:
                await others(scope, receive, send)

    return app


def _others(service: Service, tokens: Tokens) -> Starlette:
    """Everything but rows."""
    paths: dict[str, dict[str, tuple[str, Handler, Right]]] = {}
    for verb, path, method, handler, right in ROUTES:
        paths.setdefault(path, {})[method] = verb, handler, right
    for path, name, kind in PAGES:
        paths[path] = {"GET": ("page", static(name, kind), "none")}
    for handlers in paths.values():
        if "GET" in handlers and handlers["GET"][0] != "events":  # which never ends
            handlers["HEAD"] = handlers["GET"]
    routes = [Route(path, Endpoint(service, tokens, handlers)) for path, handlers in paths.items()]
    other = Endpoint(service, tokens, dict.fromkeys(METHODS, ("other", not_found, "none")))
    return Starlette(routes=[*routes, Route("/{path:path}", other)])


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
