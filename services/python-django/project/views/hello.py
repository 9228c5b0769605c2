"""The contract hello: a worker's thread blocks in the one mode, a timer waits in the other."""

import asyncio
import logging
import re
import sys
import time

from django.http import HttpRequest, HttpResponse

ENTRIES = 50_000
MAX_SLEEP_SECONDS = 60
SECONDS = re.compile(r"[0-9]{1,2}(\.[0-9]{1,3})?")

cache = {str(number): f"value-{number}" for number in range(1, ENTRIES + 1)}


def line_logger() -> logging.Logger:
    """A logger of whole lines to standard output, each with its thread's name."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s thread=%(threadName)s"))
    logger = logging.getLogger("hello")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False
    return logger


logger = line_logger()


def platform(request: HttpRequest) -> HttpResponse:
    seconds = parsed(request, "platform")
    if seconds is None:
        return HttpResponse(status=400)
    if seconds > 0:
        time.sleep(seconds)
    return looked_up(request)


async def reactive(request: HttpRequest) -> HttpResponse:
    seconds = parsed(request, "reactive")
    if seconds is None:
        return HttpResponse(status=400)
    if seconds > 0:
        await asyncio.sleep(seconds)
    return looked_up(request)


views = {"platform": platform, "reactive": reactive}


def parsed(request: HttpRequest, mode: str) -> float | None:
    """The seconds to wait, or None for a bad parameter; logs the line if it is asked for."""
    seconds = parse_sleep(request.GET.get("sleep", "0"))
    log = request.GET.get("log", "false")
    if seconds is None or log not in ("true", "false"):
        return None
    if log == "true":
        logger.info("hello mode=%s key=%s", mode, request.GET.get("key", "1"))
    return seconds


def parse_sleep(text: str) -> float | None:
    """The seconds to wait, or None where the text is not in its form or over its bound."""
    if not SECONDS.fullmatch(text):
        return None
    seconds = float(text)
    return seconds if seconds <= MAX_SLEEP_SECONDS else None


def looked_up(request: HttpRequest) -> HttpResponse:
    value = cache.get(request.GET.get("key", "1"))
    if value is None:
        return HttpResponse(status=404)
    return HttpResponse(f"Hello from REST {value}", content_type="text/plain")
