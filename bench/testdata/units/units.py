"""A service as main.go: each request takes UNITS equal units of CPU time beside the cost of asyncio."""

import asyncio
import os

UNITS = int(os.environ.get("UNITS", "0"))
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"


def work(units: int) -> int:
    x = units + 88675123
    for _ in range(units * 2):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    return x


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        *heads, self.rest = (self.rest + data).split(b"\r\n\r\n")
        for _ in heads:
            work(UNITS)
            self.transport.write(RESPONSE)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", int(os.environ["PORT"]))
    await server.serve_forever()


asyncio.run(main())
