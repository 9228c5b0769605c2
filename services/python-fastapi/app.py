"""The FastAPI application: its settings, its routes and its errors."""

from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import compute
import hello
import http_contract

# The contract names each path that there is: no docs, and none with a slash more or less.
app = FastAPI(openapi_url=None, redirect_slashes=False)
for router in (hello.router, http_contract.router, compute.router):
    app.include_router(router)


@app.get("/health")
async def health() -> Response:
    return Response()


@app.exception_handler(RequestValidationError)
async def bad_parameter(request: Request, error: RequestValidationError) -> Response:
    """FastAPI's own answer is 422 with the reasons as JSON."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


@app.exception_handler(HTTPException)
async def empty_error(request: Request, error: HTTPException) -> Response:
    """An error is its status alone; a known path with another method is an unknown one."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    return Response(status_code=error.status_code)


@app.exception_handler(Exception)
async def failed(request: Request, error: Exception) -> Response:
    """Uvicorn logs the error, which is raised again after this answer."""
    return Response(status_code=HTTPStatus.INTERNAL_SERVER_ERROR)
