"""The contract hello, in the mode reactive: the event loop runs the handler, a timer waits."""

import asyncio
import logging
import sys
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse
from pydantic import AfterValidator

ENTRIES = 50_000
MAX_SLEEP_SECONDS = 60
SECONDS = r"^[0-9]{1,2}(\.[0-9]{1,3})?$"

router = APIRouter()
cache = {str(number): f"value-{number}" for number in range(1, ENTRIES + 1)}


def line_logger() -> logging.Logger:
    """A logger of whole lines to standard output, each with its thread's name: the loop's."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s thread=%(threadName)s"))
    logger = logging.getLogger("hello")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False
    return logger


logger = line_logger()


def within_bound(text: str) -> str:
    if float(text) > MAX_SLEEP_SECONDS:
        raise ValueError(f"more than {MAX_SLEEP_SECONDS} seconds")
    return text


# Text first: a parameter of the type float would take 1e3 and 1., too.
Sleep = Annotated[str, Query(pattern=SECONDS), AfterValidator(within_bound)]


@router.get("/hello/reactive")
async def hello(
    sleep: Sleep = "0", log: Literal["true", "false"] = "false", key: str = "1"
) -> Response:
    if log == "true":
        logger.info("hello mode=reactive key=%s", key)
    seconds = float(sleep)
    if seconds > 0:
        await asyncio.sleep(seconds)
    value = cache.get(key)
    if value is None:
        return Response(status_code=404)
    return PlainTextResponse(f"Hello from REST {value}")
