"""The routes of the process's mode, and the errors."""

from collections.abc import Callable

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from project.views import compute, hello, http_contract


def route(method: str, where: str, view: Callable) -> URLPattern:
    """A path for one method: with another it is an unknown one, where Django's own is 405.

    A view without a wait becomes a coroutine in the mode reactive: Django would run it on a thread.
    """
    if iscoroutinefunction(view):

        async def answer(request: HttpRequest) -> HttpResponse:
            return await view(request) if request.method == method else not_found(request)

    elif settings.MODE == "reactive":

        async def answer(request: HttpRequest) -> HttpResponse:
            return view(request) if request.method == method else not_found(request)

    else:

        def answer(request: HttpRequest) -> HttpResponse:
            return view(request) if request.method == method else not_found(request)

    return path(where, answer)


def health(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponse(status=413 if isinstance(exception, RequestDataTooBig) else 400)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return HttpResponse(status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=500)


handler400 = bad_request
handler404 = not_found
handler500 = server_error

urlpatterns = [
    route("GET", f"hello/{settings.MODE}", hello.views[settings.MODE]),
    route("GET", "", http_contract.root),
    route("GET", "no-read", http_contract.no_read),
    route("GET", "hello", http_contract.hello_world),
    route("GET", "file", http_contract.file),
    route("POST", "load", http_contract.load),
    route("GET", "data", compute.data),
    route("GET", "concat", compute.concat),
    route("GET", "fibonacci", compute.fibonacci),
    route("GET", "health", health),
]
