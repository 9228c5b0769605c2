"""The contract compute. Django's JsonResponse makes JSON of a dict."""

import random
import string
import threading
from dataclasses import asdict, dataclass

from django.http import HttpRequest, JsonResponse

ALPHABET = string.ascii_letters + string.digits
CONCAT_LENGTH = 10_000
FIBONACCI_OF = 30


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


def compact(data: dict) -> JsonResponse:
    """Django's own JSON, without the spaces."""
    return JsonResponse(data, json_dumps_params={"separators": (",", ":")})


def data(request: HttpRequest) -> JsonResponse:
    return compact({"data": [asdict(product) for product in products]})


def concat(request: HttpRequest) -> JsonResponse:
    return compact({"concat": "".join(own.random.choices(ALPHABET, k=CONCAT_LENGTH))})


def fibonacci(request: HttpRequest) -> JsonResponse:
    return compact({"fibonacci": fib(FIBONACCI_OF)})


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)
