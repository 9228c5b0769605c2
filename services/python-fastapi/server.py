"""Runs the application on uvicorn: one process for one core, one per core for more."""

import os

import uvicorn

# Longer than clients and proxies keep an idle connection (60 to 90 s), so that it is they who
# close it: a server that closes first resets the request that is just on its way.
KEEP_ALIVE_SECONDS = 120

# How long requests under way may take to end after SIGTERM.
GRACE_SECONDS = 1


def certificate() -> dict[str, str]:
    """What uvicorn takes of TLS; nothing where HTTP/1.1 is spoken in the clear."""
    protocol = os.environ.get("PROTOCOL", "http")
    if protocol == "https":
        return {
            "ssl_certfile": os.environ["TLS_CERT"],
            "ssl_keyfile": os.environ["TLS_KEY"],
        }
    if protocol != "http":
        raise SystemExit(f"PROTOCOL={protocol}: this service speaks http and https")
    return {}


def main() -> None:
    uvicorn.run(
        # Named, not imported: each worker process imports it for itself.
        "app:app",
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "8080")),
        workers=int(os.environ.get("CPUS", "1")),
        # These are what "auto" picks where they are installed; named, their absence is an error.
        loop="uvloop",
        http="httptools",
        # The contract has no WebSockets, and nothing is logged per request.
        ws="none",
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        **certificate(),
    )


if __name__ == "__main__":
    main()
