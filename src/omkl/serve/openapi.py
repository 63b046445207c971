"""The description of the HTTP interface in the format of OpenAPI."""

from typing import Any

from omkl._version import __version__
from omkl.serve.bodies import ARROW, JSON, LINES
from omkl.serve.limits import Limits

Document = dict[str, Any]
CELL: Document = {"type": ["number", "string", "boolean", "null"]}
ERRORS = {400: "The body cannot be read.", 401: "A token is needed.", 403: "The token is for reading.",
          404: "There is no such model or key.", 408: "The body came too slowly.",
          409: "It does not go with the model.",
          413: "Too large.", 415: "Another content type is needed.", 422: "Rows or options that cannot be used.",
          429: "Too many requests wait.", 503: "The service is starting or stopping.",
          507: "The disk is full: nothing is learned, predictions go on."}  # fmt: skip


def document(limits: Limits) -> Document:
    """The whole description."""
    paths: Document = {}
    for prefix in ("/v1/models/{name}", ""):
        named = [_NAME] if prefix else []
        paths |= {
            f"{prefix}/predict": {"post": _operation(
                "Predict rows; nothing is learned", [*named, *_OPTIONS], _rows("Row"), _rows("Prediction"))},
            f"{prefix}/learn": {"post": _operation(
                "Learn rows, each with its target", [*named, _ID], _rows("Row"), _json("Learned"))},
            f"{prefix}/predict-then-learn": {"post": _operation(
                "Predict each row, then learn it if its target is known", [*named, _ID], _rows("Row"),
                _rows("Prediction"))},
            f"{prefix}/labels": {"post": _operation(
                "Learn rows that were predicted with wait=true, now that their targets are known", [*named, _ID],
                _json("Labels"), _json("Learned"))},
        }  # fmt: skip
    paths |= {
        "/v1/models": {"get": _operation("All models", [], None, _json("Models"))},
        "/v1/models/{name}": {
            "get": _operation("A model, without its rows", [_NAME], None, _json("Model")),
            "put": _operation("Create a model with nothing learned, or from a file", [_NAME, _TARGET, _ID],
                              _json("Options") | {"application/vnd.omkl": _BYTES}, _json("Model")),
            "delete": _operation("Remove a model and what it has learned", [_NAME, _ID], None, _json("Object")),
        },
        "/v1/models/{name}/file": {"get": _operation(
            "The model as a file", [_NAME, _query("worker", {"type": "integer", "minimum": 0})], None,
            {"application/vnd.omkl": _BYTES})},
        "/v1/models/{name}/keys": {"get": _operation(
            "Keys that have a model", [_NAME, _query("start", _COUNT), _query("count", _COUNT)], None,
            _json("Object"))},
        "/v1/models/{name}/keys/{key}": {"delete": _operation(
            "Forget a key", [_NAME, _ID, {"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}],
            None, _json("Object"))},
        "/v1/models/{name}/events": {"get": _operation(
            "What the dashboard shows, every second, as server-sent events", [_NAME], None,
            {"text/event-stream": {"schema": {"type": "string"}}})},
        "/metrics": {"get": _operation("Metrics for Prometheus", [], None, _TEXT)},
        "/health": {"get": _operation("Whether the process answers", [], None, _json("Object"))},
        "/ready": {"get": _operation("Whether all models are ready", [], None, _json("Object"))},
        "/version": {"get": _operation("The version", [], None, _json("Object"))},
    }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {"title": "omkl serve", "version": __version__,
                 "description": "Online multi-kernel learning over HTTP. A body is one row, {...}, or a list of rows."},
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": _schemas(limits), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }  # fmt: skip


def _operation(summary: str, parameters: list[Document], body: Document | None, answer: Document) -> Document:
    out: Document = {"summary": summary, "parameters": parameters}
    if body is not None:
        out["requestBody"] = {"required": True, "content": body}
    error = _json("Error")
    out["responses"] = {"200": {"description": "As asked for.", "content": answer}}
    out["responses"] |= {str(status): {"description": text, "content": error} for status, text in ERRORS.items()}
    return out


def _query(name: str, schema: Document) -> Document:
    return {"name": name, "in": "query", "required": False, "schema": schema}


_TEXT: Document = {"text/plain": {"schema": {"type": "string"}}}
_COUNT: Document = {"type": "integer", "minimum": 0}
_BYTES: Document = {"schema": {"type": "string", "format": "binary"}}
_NAME: Document = {"name": "name", "in": "path", "required": True, "description": "- for the only model",
                   "schema": {"type": "string", "pattern": "^([a-z0-9][a-z0-9_-]{0,63}|-)$"}}  # fmt: skip
_ID: Document = {"name": "Idempotency-Key", "in": "header", "required": False,
                 "description": "A request that comes again with the same id changes nothing, and is answered again.",
                 "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}}  # fmt: skip
_TARGET: Document = _query("target", {"type": "string", "description": "Of an estimator that does not know its name."})
_FLAG: Document = {"type": "string", "enum": ["true", "false"]}
_OPTIONS: list[Document] = [
    _query("coverage", {"type": "string", "description": "Of intervals: 0.9, or 0.8,0.95", "pattern": "^[0-9.,]+$"}),
    _query("probabilities", _FLAG), _query("explain", _FLAG),
    _query("wait", {**_FLAG, "description": "The rows wait for their targets, which come to /labels."}), _ID,
]  # fmt: skip


def _json(name: str) -> Document:
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _rows(name: str) -> Document:
    one = {"$ref": f"#/components/schemas/{name}"}
    several = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
    return {JSON: {"schema": several}, LINES: {"schema": {"type": "string"}}, ARROW: _BYTES}


def _schemas(limits: Limits) -> Document:
    text, count = {"type": "string"}, {"type": "integer", "minimum": 0}
    pair = {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2}
    label = {"type": "object", "required": ["key", "target"], "additionalProperties": False,
             "properties": {"key": {"type": ["string", "integer"]},
                            "target": {"type": ["number", "string", "boolean"]}}}  # fmt: skip
    names = {"type": "array", "items": text}
    return {
        "Row": {"type": "object", "additionalProperties": CELL, "maxProperties": limits.columns,
                "description": "Columns and their cells; an object in it becomes columns named object.field."},
        "Prediction": {"type": "object", "properties": {
            "row": count, "prediction": CELL, "interval": pair, "late": {"type": "boolean"},
            "intervals": {"type": "object", "additionalProperties": pair}, "probability": {"type": "number"},
            "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
            "base": {"type": ["number", "null"]},
            "contributions": {"type": "object", "additionalProperties": {"type": ["number", "null"]}}}},
        "Labels": {"anyOf": [label, {"type": "array", "items": label, "minItems": 1}]},
        "Learned": {"type": "object", "properties": {"learned": count, "row": count, "unknown": names}},
        "Options": {"type": "object", "required": ["target"], "additionalProperties": False, "properties": {
            "target": text, "task": {"enum": ["regression", "classification"]}, "learner": text,
            "features": names, "drop": names, "categorical": names, "date_format": text, "lags": text,
            "lag_columns": names, "horizon": {"type": "integer", "minimum": 1}, "key": text,
            "pending": {"type": "integer", "minimum": 1}, "by": text, "workers": {"type": "integer", "minimum": 1},
            "seed": count, "parameters": {"type": "object"}}},
        "Model": {"type": "object", "properties": {"name": text, "target": text, "rows": count, "learned": count}},
        "Models": {"type": "object", "properties": {
            "models": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
        "Object": {"type": "object"},
        "Error": {"type": "object", "required": ["error"], "properties": {"error": text}},
    }  # fmt: skip
