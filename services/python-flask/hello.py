"""The contract hello, in the mode platform: a thread of the pool runs the handler and sleeps."""

import logging
import re
import sys
import time

from flask import Blueprint, Response, request

ENTRIES = 50_000
MAX_SLEEP_SECONDS = 60
SECONDS = re.compile(r"[0-9]{1,2}(\.[0-9]{1,3})?")

blueprint = Blueprint("hello", __name__)
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


@blueprint.get("/hello/platform")
def hello() -> Response:
    seconds = parse_sleep(request.args.get("sleep", "0"))
    log = request.args.get("log", "false")
    if seconds is None or log not in ("true", "false"):
        return Response(status=400)
    key = request.args.get("key", "1")
    if log == "true":
        logger.info("hello mode=platform key=%s", key)
    if seconds > 0:
        time.sleep(seconds)
    value = cache.get(key)
    if value is None:
        return Response(status=404)
    return Response(f"Hello from REST {value}", mimetype="text/plain")


def parse_sleep(text: str) -> float | None:
    """The seconds to wait, or None where the text is not in its form or over its bound."""
    if not SECONDS.fullmatch(text):
        return None
    seconds = float(text)
    return seconds if seconds <= MAX_SLEEP_SECONDS else None
