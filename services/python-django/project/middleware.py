"""Middleware for both modes, so that neither sends a request to the other's kind of thread."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware


@sync_and_async_middleware
def content_length(
    get_response: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]],
) -> Callable:
    """Says how long each answer is; without it the server would answer in chunks."""
    if iscoroutinefunction(get_response):

        async def reactive(request: HttpRequest) -> HttpResponse:
            return measured(await get_response(request))

        return reactive

    def platform(request: HttpRequest) -> HttpResponse:
        return measured(get_response(request))

    return platform


def measured(response: HttpResponse) -> HttpResponse:
    response.headers["Content-Length"] = str(len(response.content))
    return response
