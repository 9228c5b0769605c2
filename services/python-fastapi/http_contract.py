"""The contract http; the name http alone is the standard library's."""

from base64 import b64encode
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import AfterValidator

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_FILE_BYTES = 16 * 1024 * 1024

router = APIRouter()


def repeated(text: bytes, size: int) -> bytes:
    """The text again and again, cut at the size."""
    return (text * (size // len(text) + 1))[:size]


# Made once: an answer is a slice of it.
lorem = repeated(Path(__file__).with_name("lorem.txt").read_bytes(), MAX_FILE_BYTES)


def within_bound(text: str) -> str:
    if int(text) > MAX_FILE_BYTES:
        raise ValueError(f"more than {MAX_FILE_BYTES} bytes")
    return text


Size = Annotated[str, Query(pattern="^[0-9]{1,8}$"), AfterValidator(within_bound)]


async def whole_body(request: Request) -> bytes:
    """The body, or 413: FastAPI's own max_body_size would answer that with a text."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return bytes(body)


@router.get("/")
async def root(request: Request) -> Response:
    await whole_body(request)
    return Response()


@router.get("/no-read")
async def no_read() -> Response:
    return Response()


@router.get("/hello")
async def hello_world() -> Response:
    return PlainTextResponse("Hello world")


@router.get("/file")
async def file(size: Size = "1048576") -> Response:
    return Response(lorem[: int(size)], media_type="application/octet-stream")


@router.post("/load")
async def load(request: Request) -> Response:
    return PlainTextResponse(b64encode(await whole_body(request)))
