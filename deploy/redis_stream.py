"""Prints the messages of a Redis stream, one JSON object per line, for omkl run:

python deploy/redis_stream.py orders | omkl run - --target price --every 1 --predictions -

It needs nothing but Python: the protocol of Redis is text over a socket.
"""

import argparse
import json
import socket
from collections.abc import Iterator
from typing import Any, BinaryIO


def reply(stream: BinaryIO) -> Any:
    """One reply of the server: text, a number, nothing, or a list of replies."""
    line = stream.readline()
    kind, content = line[:1], line[1:-2]
    if kind == b"*":
        return None if content == b"-1" else [reply(stream) for _ in range(int(content))]
    if kind == b"$":
        if content == b"-1":
            return None
        return stream.read(int(content) + 2)[:-2].decode()
    if kind == b"-":
        raise RuntimeError(content.decode())
    if not kind:
        raise EOFError("the server has gone")
    return int(content) if kind == b":" else content.decode()


def messages(host: str, port: int, name: str, start: str, follow: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """The id and the fields of each message after `start`."""
    with socket.create_connection((host, port)) as line, line.makefile("rb") as stream:
        while True:
            words = ["XREAD", "COUNT", "100", *(["BLOCK", "0"] if follow else []), "STREAMS", name, start]
            parts = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
            line.sendall(f"*{len(words)}\r\n{parts}".encode())
            found = reply(stream)
            if found is None:
                return
            for start, fields in found[0][1]:
                yield start, dict(zip(fields[0::2], fields[1::2], strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--start", default="0", help="the id of the last message that was read; $ for new ones only")
    parser.add_argument("--once", action="store_true", help="stop at the end instead of waiting for more")
    options = parser.parse_args()
    for _, fields in messages(options.host, options.port, options.stream, options.start, not options.once):
        print(json.dumps(fields), flush=True)
