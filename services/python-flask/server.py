"""Runs the application on Tornado: one process for one core, one per core for more.

Tornado's event loop reads requests and writes answers; a ThreadPoolExecutor runs the application.
"""

import asyncio
import logging
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flask import Flask
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.netutil import bind_sockets
from tornado.process import fork_processes
from tornado.wsgi import WSGIContainer

from app import create_app

# Tornado's 128 would turn connections away in a burst.
BACKLOG = 1024

# What CPython gives a pool on one core, as each process has one. Without a size, the pool would
# count the machine's cores.
POOL_THREADS = 5

# How long requests under way may take to end after SIGTERM.
GRACE_SECONDS = 0.5


class Container(WSGIContainer):
    """Tells the application that a chunked body ends by itself: Tornado has read it whole."""

    def environ(self, request: HTTPServerRequest) -> dict[str, Any]:
        return super().environ(request) | {"wsgi.input_terminated": True}


def main() -> None:
    host, port = os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8080"))
    cpus = int(os.environ.get("CPUS", "1"))
    logging.getLogger("tornado.access").disabled = True
    app = create_app()
    sockets = bind_sockets(port, address=host, backlog=BACKLOG)
    print(f"listening on {host}:{port}", flush=True)
    parent = fork_workers(cpus) if cpus > 1 else None
    asyncio.run(serve(app, sockets, parent))


def fork_workers(count: int) -> socket.socket:
    """Forks the workers and returns in each of them, with a socket that ends when the parent does.

    The parent stays inside fork_processes, which keeps the workers' ids to itself: so it cannot
    signal them, and closes its end of the pair instead.
    """
    lifeline, end = socket.socketpair()
    signal.signal(signal.SIGTERM, lambda *_: end.close())
    fork_processes(count)
    end.close()
    return lifeline


async def serve(app: Flask, sockets: list[socket.socket], parent: socket.socket | None) -> None:
    """Serves until SIGTERM, or until the parent ends."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    if parent is not None:
        loop.add_reader(parent, stopped.set)
    server = HTTPServer(Container(app, ThreadPoolExecutor(POOL_THREADS)))
    server.add_sockets(sockets)
    await stopped.wait()
    if parent is not None:
        loop.remove_reader(parent)
    server.stop()
    await asyncio.sleep(GRACE_SECONDS)
    # The interpreter's ordinary end would wait for pool threads that still sleep.
    os._exit(0)


if __name__ == "__main__":
    main()
