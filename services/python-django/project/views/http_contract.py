"""The contract http; the name http alone is the standard library's."""

import re
from base64 import b64encode

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse

MAX_FILE_BYTES = 16 * 1024 * 1024
SIZE = re.compile(r"[0-9]{1,8}")


def repeated(text: bytes, size: int) -> bytes:
    """The text again and again, cut at the size."""
    return (text * (size // len(text) + 1))[:size]


# Made once, before the workers fork: an answer is a slice of it.
lorem = repeated((settings.BASE_DIR / "lorem.txt").read_bytes(), MAX_FILE_BYTES)


def root(request: HttpRequest) -> HttpResponse:
    whole_body(request)
    return HttpResponse()


def no_read(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def hello_world(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Hello world", content_type="text/plain")


def file(request: HttpRequest) -> HttpResponse:
    size = request.GET.get("size", "1048576")
    if not SIZE.fullmatch(size) or int(size) > MAX_FILE_BYTES:
        return HttpResponse(status=400)
    return HttpResponse(lorem[: int(size)], content_type="application/octet-stream")


def load(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b64encode(whole_body(request)), content_type="text/plain")


def whole_body(request: HttpRequest) -> bytes:
    """The body, as Django has it, but for chunks: it takes no stated length for no body.

    By WSGI alone that would be right, but Gunicorn says that the body ends by itself.
    """
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if "CONTENT_LENGTH" in request.META:
        return request.body
    if request.META.get("wsgi.input_terminated"):
        body = request.environ["wsgi.input"].read(limit + 1)
    else:
        body = request.read()
    if len(body) > limit:
        raise RequestDataTooBig("the body is over DATA_UPLOAD_MAX_MEMORY_SIZE")
    return body
