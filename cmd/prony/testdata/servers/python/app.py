"""The smallest ASGI and WSGI applications that count their requests.

GET /count answers the number of other requests. With CLOSE=10, every tenth response announces the
end of its connection.
"""

import os

count = 0
close_after = int(os.environ.get("CLOSE", "0"))


def answer(path):
    """Returns the body and the header fields for a path."""
    global count
    if path == "/count":
        return str(count).encode(), []
    count += 1
    if close_after and count % close_after == 0:
        return b"ok", [("connection", "close")]
    return b"ok", []


async def asgi(scope, receive, send):
    """Answers a request of an ASGI server."""
    if scope["type"] != "http":
        return
    body, fields = answer(scope["path"])
    fields = [("content-length", str(len(body))), *fields]
    await send({
        "type": "http.response.start",
        "status": 200,
        "headers": [(name.encode(), value.encode()) for name, value in fields],
    })
    await send({"type": "http.response.body", "body": body})


def wsgi(environ, start_response):
    """Answers a request of a WSGI server, which handles connections itself."""
    body, _ = answer(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
