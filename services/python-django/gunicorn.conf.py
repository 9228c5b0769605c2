"""What Gunicorn is told: the mode is MODE's, the number of workers and threads that of CPUS."""

import os

mode = os.environ.get("MODE", "platform")
cpus = int(os.environ.get("CPUS", "1"))

bind = f"{os.environ.get('HOST', '127.0.0.1')}:{os.environ.get('PORT', '8080')}"
if mode == "reactive":
    wsgi_app = "project.asgi:application"
    worker_class = "uvicorn_worker.UvicornWorker"
    # A loop keeps one core busy by itself.
    workers = cpus
else:
    wsgi_app = "project.wsgi:application"
    worker_class = "gthread"
    # Gunicorn's guide: while some workers wait, others compute.
    workers = 2 * cpus + 1
    threads = 4 * cpus

# Loaded once, before the workers fork: a mistake in it ends the start at once.
preload_app = True

# Longer than clients and proxies keep an idle connection (60 to 90 s), so that it is they who
# close it: a server that closes first resets the request that is just on its way.
keepalive = 120

# How long requests under way may take to end after SIGTERM.
graceful_timeout = 1

# A socket in the home directory for gunicornc, which nobody calls here.
control_socket_disable = True
