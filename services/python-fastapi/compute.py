"""The contract compute. A model that a handler returns becomes JSON by FastAPI, with Pydantic."""

import random
import string

from fastapi import APIRouter
from pydantic import BaseModel

ALPHABET = string.ascii_letters + string.digits
CONCAT_LENGTH = 10_000
FIBONACCI_OF = 30

router = APIRouter()


class Product(BaseModel):
    id: str
    name: str
    # Either of the two: as a float alone, the price of 1 would be written 1.0.
    price: int | float
    weight: int


class Data(BaseModel):
    data: list[Product]


class Concat(BaseModel):
    concat: str


class Fibonacci(BaseModel):
    fibonacci: int


products = [
    Product(id="prod3568", name="Egg Whisk", price=3.99, weight=150),
    Product(id="prod7340", name="Tea Cosy", price=5.99, weight=100),
    Product(id="prod8643", name="Spatula", price=1, weight=80),
]


@router.get("/data")
async def data() -> Data:
    return Data(data=products)


@router.get("/concat")
async def concat() -> Concat:
    # The module's own generator: there is one thread in a process, and none to share it with.
    return Concat(concat="".join(random.choices(ALPHABET, k=CONCAT_LENGTH)))


@router.get("/fibonacci")
async def fibonacci() -> Fibonacci:
    return Fibonacci(fibonacci=fib(FIBONACCI_OF))


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)
