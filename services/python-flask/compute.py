"""The contract compute. A dict that a handler returns becomes JSON by Flask's provider."""

import random
import string
import threading
from dataclasses import dataclass

from flask import Blueprint

ALPHABET = string.ascii_letters + string.digits
CONCAT_LENGTH = 10_000
FIBONACCI_OF = 30

blueprint = Blueprint("compute", __name__)


@dataclass(frozen=True)
class Product:
    id: str
    name: str
    price: float
    weight: int


class ThreadsOwn(threading.local):
    """A generator for each thread, seeded by the thread's first use, after the workers fork."""

    def __init__(self) -> None:
        self.random = random.Random()


own = ThreadsOwn()
products = (
    Product("prod3568", "Egg Whisk", 3.99, 150),
    Product("prod7340", "Tea Cosy", 5.99, 100),
    Product("prod8643", "Spatula", 1, 80),
)


@blueprint.get("/data")
def data() -> dict:
    return {"data": products}


@blueprint.get("/concat")
def concat() -> dict:
    return {"concat": "".join(own.random.choices(ALPHABET, k=CONCAT_LENGTH))}


@blueprint.get("/fibonacci")
def fibonacci() -> dict:
    return {"fibonacci": fib(FIBONACCI_OF)}


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)
