"""The contract http; the name http alone is the standard library's."""

import re
from base64 import b64encode
from pathlib import Path

from flask import Blueprint, Response, request

MAX_FILE_BYTES = 16 * 1024 * 1024
SIZE = re.compile(r"[0-9]{1,8}")

blueprint = Blueprint("http", __name__)


def repeated(text: bytes, size: int) -> bytes:
    """The text again and again, cut at the size."""
    return (text * (size // len(text) + 1))[:size]


# Made once, before the workers fork: an answer is a slice of it.
lorem = repeated(Path(__file__).with_name("lorem.txt").read_bytes(), MAX_FILE_BYTES)


@blueprint.get("/")
def root() -> Response:
    request.get_data(cache=False)
    return Response()


@blueprint.get("/no-read")
def no_read() -> Response:
    return Response()


@blueprint.get("/hello")
def hello_world() -> Response:
    return Response("Hello world", mimetype="text/plain")


@blueprint.get("/file")
def file() -> Response:
    size = request.args.get("size", "1048576")
    if not SIZE.fullmatch(size) or int(size) > MAX_FILE_BYTES:
        return Response(status=400)
    return Response(lorem[: int(size)], mimetype="application/octet-stream")


@blueprint.post("/load")
def load() -> Response:
    return Response(b64encode(request.get_data(cache=False)), mimetype="text/plain")
