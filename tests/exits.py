"""An open egress proxy with everything around it: what the tests of the proxy and of the relay speak to."""

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prill.gateway import egress
from prill.outside import Host, HostPolicy

PUBLIC = "93.184.216.34"
NAMES = {
    "private.example": ["10.1.2.3"], "local.example": ["127.0.0.1", "::1"], "cloud.example": ["169.254.169.254"],
    "mixed.example": ["10.0.0.1", PUBLIC], "mapped.example": ["::ffff:127.0.0.1"], "mirror.example": ["127.0.0.1"],
    "nobody.example": [],
}  # fmt: skip
LINES = {
    "api.hosted.example": ("deny", "hosted_api"), "*.hosted.example": ("flag", "hosted_api"),
    "mirror.example": ("allow", "mirror"),
}  # fmt: skip
POLICY = HostPolicy(
    name="test",
    title="Test",
    otherwise="allow",
    hosts=tuple(Host(name=name, verdict=said, rule=rule, why="it is so") for name, (said, rule) in LINES.items()),
)


class Far(BaseHTTPRequestHandler):
    """The far side of plain http: says back what it was asked and sent."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        """Path, host and body as JSON."""
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        body += self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunked = self.path == "/chunked"
        said = json.dumps({"path": self.path, "host": self.headers["Host"], "body": body.decode()}).encode()
        self.send_response(200)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            said = b"%x\r\n%s\r\n0\r\n\r\n" % (len(said), said)
        else:
            self.send_header("Content-Length", str(len(said)))
        self.send_header("Connection", "keep-alive")
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(said)

    do_POST = do_GET


class World:
    """An open proxy, what it connected to, and two far sides: one that speaks HTTP and one that echoes bytes."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder, self.door, self.log = folder, folder / "egress.sock", folder / "egress.jsonl"
        self.connected: list[tuple[str, int]] = []
        self.far = ThreadingHTTPServer(("127.0.0.1", 0), Far)
        self.echo = socket.create_server(("127.0.0.1", 0))
        for target in (lambda: self.far.serve_forever(0.02), self._echo):
            threading.Thread(target=target, daemon=True).start()
        self.looked_up: list[str] = []
        self.egress = egress.Egress(
            policy=POLICY, log=self.log, socket=self.door, step=lambda: 7,
            connect=self._connect, resolve=self._resolve, **more,
        )  # fmt: skip

    def _resolve(self, host: str, port: int) -> list[str]:
        self.looked_up.append(host)
        return NAMES.get(host, [PUBLIC])

    async def _connect(self, address: str, port: int) -> egress.Streams:
        self.connected.append((address, port))
        near = self.far.server_address if port == 80 else self.echo.getsockname()
        return await asyncio.open_connection("127.0.0.1", near[1])

    def _echo(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=echo, args=(self.echo.accept()[0],), daemon=True).start()

    def close(self) -> None:
        """End the far sides."""
        self.far.shutdown()
        self.far.server_close()
        self.echo.close()

    def ask(self, *pieces: bytes) -> bytes:
        """All that the proxy says to these bytes and the end of them."""
        with self.client() as client:
            with suppress(OSError):
                for piece in pieces:
                    client.sendall(piece)
                client.shutdown(socket.SHUT_WR)
            return everything(client)

    def client(self) -> socket.socket:
        """A connection to the proxy."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(os.fspath(self.door))
        return client

    def lines(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """The log's lines of that event, once there are so many."""
        until = time.monotonic() + 20
        while True:
            found = [json.loads(line) for line in self.log.read_text().splitlines()]
            found = [line for line in found if line["event"] == event]
            if len(found) >= count or time.monotonic() > until:
                return found
            time.sleep(0.01)


def echo(client: socket.socket) -> None:
    """Send back all that comes, then the end."""
    with client, suppress(OSError):
        while piece := client.recv(65536):
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)


def everything(client: socket.socket) -> bytes:
    """All that comes until the end; a reset is an end too."""
    found = b""
    with suppress(ConnectionResetError):
        while piece := client.recv(65536):
            found += piece
    return found


@contextmanager
def opened(folder: Path, **more: Any) -> Iterator[World]:
    """A world with its proxy open."""
    world = World(folder, **more)
    try:
        with world.egress:
            yield world
    finally:
        world.close()


def tunnel(host: str, port: int = 443) -> bytes:
    """A request for a tunnel."""
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
