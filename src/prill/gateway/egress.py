"""The proxy through which a box reaches other hosts: each is judged by the suite's policy and written to a log.

HTTP on a UNIX socket: `CONNECT` for TLS, whole `http://` addresses for plain requests. A name is looked up once and
only the address that was checked is connected to, so a name that changes its mind leads nowhere. A tunnel must open
with TLS that names the very host it was asked for.

Not covered: what passes inside a tunnel (a host behind a large network's shared front may be reached under another
name, where that network allows it; an encrypted inner name cannot be seen), what an allowed host passes on, data that
hides in the names asked for, a policy that allows too much, and a machine that reaches the world only through another
proxy: `connect` is where that would be taught.
"""

import asyncio
import contextlib
import itertools
import re
import socket as sockets
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from prill.gateway import asked, hello
from prill.gateway.background import BACKLOG, Background, end
from prill.gateway.hosts import Address, Ruling, address, judge, normal, not_public
from prill.gateway.logbook import Logbook
from prill.outside import HostPolicy

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]
Resolve = Callable[[str, int], list[str]]

CONNECTIONS = 128
HEAD_BYTES = 32 << 10
HEAD_SECONDS = 30.0
LOOKUP_SECONDS = 15.0
CONNECT_SECONDS = 20.0
IDLE_SECONDS = 600.0
PIECE = 64 << 10
TRIES = 3
"""Addresses of a host that are tried."""


class Refused(Exception):
    """What was asked for is not done."""

    def __init__(self, status: int, rule: str, why: str) -> None:
        """`status`: 403 where the policy speaks, another where it cannot be done."""
        super().__init__(why)
        self.status, self.rule, self.why = status, rule, why


class Egress(Background):
    """Serves while it is open; see the module. The log's lines are told in docs/reference/egress.md."""

    def __init__(
        self,
        *,
        policy: HostPolicy,
        log: Path,
        socket: Path,
        step: Callable[[], int | None],
        connect: Connect | None = None,
        resolve: Resolve | None = None,
        idle_seconds: float = IDLE_SECONDS,
        connections: int = CONNECTIONS,
    ) -> None:
        """`step` tells the step of the agent's trajectory. `connect` and `resolve` stand in for the system's own."""
        self.policy, self.log, self.socket = policy, log, socket
        self._step, self._connect = step, connect or asyncio.open_connection
        self._resolve, self._idle, self._most = resolve or lookup, idle_seconds, connections
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def _open(self) -> None:
        self._book = Logbook(self.log)
        self._threads = ThreadPoolExecutor(8, "prill-lookup")
        self._server = await asyncio.start_unix_server(self._client, self.socket, limit=HEAD_BYTES, backlog=BACKLOG)

    async def _close(self) -> None:
        if hasattr(self, "_server"):
            self._server.close()
            await end(self._tasks)
        if hasattr(self, "_book"):
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._book.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        busy = len(self._tasks) >= self._most
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            if busy or self._book.full():
                why = "too many connections at a time" if busy else "the log is full: nothing more is let out"
                await say(writer, 503, "busy" if busy else "log", why)
            else:
                await Exchange(self, reader, writer).serve()
        except (OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass  # whoever asked is gone, or we are; the log has said how it ended
        finally:
            writer.close()

    async def find(self, host: str, port: int, ruling: Ruling) -> list[str]:
        """Addresses of a host that may be connected to, of a single lookup; `Refused` where there are none."""
        number = address(host)
        if number is not None:
            found = [number]
        else:
            try:
                work = self.loop.run_in_executor(self._threads, self._resolve, host, port)
                found = [ip_address(each) for each in await asyncio.wait_for(work, LOOKUP_SECONDS)]
            except (OSError, TimeoutError, UnicodeError) as error:
                raise Refused(502, "lookup_failed", f"no address is known for {host} ({error or 'too slow'})") from None
            if not found:
                raise Refused(502, "lookup_failed", f"no address is known for {host}")
        faults = {each: None if ruling.literal else not_public(each) or own(each) for each in found}
        good = [str(each) for each in dict.fromkeys(found) if faults[each] is None]
        if not good:
            raise Refused(403, "private", f"{host} is at {found[0]}, {faults[found[0]]}")
        return good[:TRIES]

    async def reach(self, host: str, port: int, places: list[str]) -> tuple[str, Streams]:
        """A connection to the first of these addresses that answers."""
        last: Exception | None = None
        for place in places:
            try:
                return place, await asyncio.wait_for(self._connect(place, port), CONNECT_SECONDS)
            except (OSError, TimeoutError) as error:
                last = error
        raise Refused(502, "unreachable", f"{host} does not answer at {', '.join(places)} ({last or 'too slow'})")


class Exchange:
    """One connection of the box and what comes of it."""

    def __init__(self, egress: Egress, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.egress, self.reader, self.writer = egress, reader, writer
        self.number, self.began = next(egress._numbers), time.monotonic()
        self.up = self.down = 0
        self.stands = False
        """Whether a tunnel was promised, in which no words of ours can be sent."""
        self.last = self.began
        self.log = egress._book.write

    async def serve(self) -> None:
        """From the head to the last byte; always with a line at its end."""
        ended, more = "cut by us", {}
        try:
            wanted = await self._head()
            ruling, places = await self._judge(wanted)
            place, (far, away) = await self.egress.reach(wanted.host, wanted.port, places)
            try:
                if wanted.method == "CONNECT":
                    self.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    self.stands = True
                    more = await self._first_words(wanted, ruling, away)
                    ended = await self._both(self._pipe(self.reader, away, "up"), far, wanted)
                else:
                    away.write(wanted.head)
                    ended = await self._both(self._carry(self.reader, away, wanted.body, "up"), far, wanted)
            finally:
                more = {**more, "address": place}
                away.close()
        except Refused as refused:
            ended = "refused" if refused.status == 403 else "failed"
            more = {**more, "rule": refused.rule, "why": refused.why}
            if not self.stands:
                await say(self.writer, refused.status, refused.rule, refused.why)
        except (ConnectionError, asyncio.IncompleteReadError):
            ended = "broken"
        except TimeoutError:
            ended = "idle"
        except ValueError as error:
            ended = f"not understood: {error}"
        finally:
            seconds = round(time.monotonic() - self.began, 3)
            self._line("ended", up=self.up, down=self.down, seconds=seconds, ended=ended, **more)

    def _line(self, event: str, **fields: Any) -> None:
        self.log(at=round(time.time(), 3), id=self.number, event=event, step=self.egress._step(), **fields)

    async def _head(self) -> asked.Asked:
        try:
            head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            return asked.read(head)
        except asyncio.LimitOverrunError:
            wrong = f"a head has at most {HEAD_BYTES} bytes"
        except ValueError as error:
            wrong = str(error)
        raise Refused(400, "malformed", wrong)

    async def _judge(self, wanted: asked.Asked) -> tuple[Ruling, list[str]]:
        """The policy's word, with its line in the log before anything is connected to."""
        path = wanted.path if wanted.head else None
        ruling = judge(self.egress.policy, wanted.host, path)
        about = {"host": wanted.host, "port": wanted.port, "method": wanted.method, "path": path}
        refused = Refused(403, ruling.rule, f"{wanted.host}: {ruling.why}") if ruling.verdict == "deny" else None
        places: list[str] = []
        if refused is None:
            try:
                places = await self.egress.find(wanted.host, wanted.port, ruling)
            except Refused as error:
                refused = error
        verdict = "deny" if refused and refused.status == 403 else ruling.verdict
        rule, why = (refused.rule, refused.why) if refused else (ruling.rule, ruling.why)
        self._line("asked", **about, verdict=verdict, rule=rule, why=why, line=ruling.line, addresses=places)
        if refused:
            raise refused
        return ruling, places

    async def _first_words(self, wanted: asked.Asked, ruling: Ruling, away: asyncio.StreamWriter) -> dict[str, Any]:
        """The client's TLS hello, passed on once it is seen to name the host that was asked for."""
        await self.writer.drain()
        said, heard = b"", hello.Hello("more")
        while heard.state == "more":
            piece = await asyncio.wait_for(self.reader.read(PIECE), HEAD_SECONDS)
            if not piece:
                return {"server_name": None}
            said += piece
            heard = hello.read(said)
        about = {"server_name": heard.name, "encrypted_hello": heard.encrypted}
        wrong = hello_fault(wanted.host, heard)
        self._line("hello", **about, verdict="deny" if wrong else ruling.verdict, why=wrong)
        if wrong:
            raise Refused(403, "tunnel", wrong)
        away.write(said)
        self.up += len(said)
        return about

    async def _both(self, up: Coroutine[Any, Any, None], far: asyncio.StreamReader, wanted: asked.Asked) -> str:
        """Both directions until both have ended, or the answer to a plain request; the word for how."""
        tunnel = wanted.method == "CONNECT"
        down = self._pipe(far, self.writer, "down") if tunnel else self._answer(wanted, far)
        upward, downward = asyncio.create_task(up), asyncio.create_task(down)
        tasks = waiting = {upward, downward}
        self.last = time.monotonic()
        try:
            while waiting if tunnel else not downward.done():
                rest = self.egress._idle - (time.monotonic() - self.last)
                if rest <= 0:
                    return "idle"
                done, waiting = await asyncio.wait(waiting, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            return "whole"
        finally:
            await end(tasks)

    async def _pipe(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, way: str) -> None:
        """Bytes of one direction, no faster than they are taken, then its end."""
        while piece := await source.read(PIECE):
            target.write(piece)
            await target.drain()
            self._count(way, len(piece))
        if target.can_write_eof():
            with contextlib.suppress(OSError):
                target.write_eof()

    async def _answer(self, wanted: asked.Asked, far: asyncio.StreamReader) -> None:
        """The answer to a plain request. Its head is made to say that the connection ends with it, as it does."""
        head = b"HTTP/1.1 1"
        while head.startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            try:
                head = await far.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                raise ValueError("an answer without an end to its head") from None
            lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
            kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
            self.writer.write(b"\r\n".join([*kept, b"Connection: close", b"", b""]))
            self._count("down", len(head))
        size = 0 if wanted.method == "HEAD" or head[9:12] in (b"204", b"304") else asked.length(lines)
        await self._carry(far, self.writer, size, "down")

    def _count(self, way: str, size: int) -> None:
        self.last = time.monotonic()
        if way == "up":
            self.up += size
        else:
            self.down += size

    async def _carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, size: asked.Size, way: str
    ) -> None:
        """A body, exactly: what comes after a request's would be another request, and none is taken."""
        if size is None:
            await self._pipe(source, target, way)
        elif size == "chunked":
            while size := await self._chunk(source):
                target.write(b"%x\r\n" % size)
                await self._exactly(source, target, size, way)
                if await source.readexactly(2) != b"\r\n":
                    raise ValueError("a chunk longer than it says")
                target.write(b"\r\n")
            target.write(b"0\r\n\r\n")  # trailers are left out
        else:
            await self._exactly(source, target, size, way)

    @staticmethod
    async def _chunk(source: asyncio.StreamReader) -> int:
        try:
            return asked.chunk(await source.readuntil(b"\r\n"))
        except asyncio.LimitOverrunError:
            raise ValueError("a chunk without a size") from None

    async def _exactly(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, size: int, way: str) -> None:
        while size:
            piece = await source.read(min(size, PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", size)
            target.write(piece)
            await target.drain()
            size -= len(piece)
            self._count(way, len(piece))


def hello_fault(host: str, heard: hello.Hello) -> str:
    """What is wrong with the first words in a tunnel to a host; empty where nothing is."""
    if heard.state != "whole":
        return "a tunnel carries TLS and nothing else; ask for plain http with whole addresses"
    if heard.name is None:
        return "" if address(host) is not None else "the TLS hello does not name the host"
    try:
        named = normal(heard.name)
    except ValueError:
        named = ""
    return "" if named == host else f"the TLS hello names another host than {host}: {heard.name[:100]}"


def lookup(host: str, port: int) -> list[str]:
    """Every address that the system knows of a host. Blocks."""
    found = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)
    return [str(each[4][0]).partition("%")[0] for each in found]


def own(found: Address) -> str | None:
    """Why an address is one of this machine's own: a socket can be bound to it."""
    family = sockets.AF_INET if found.version == 4 else sockets.AF_INET6
    with contextlib.suppress(OSError), sockets.socket(family, sockets.SOCK_DGRAM) as trial:
        trial.bind((str(found), 0))
        return "an address of this machine"
    return None


async def say(writer: asyncio.StreamWriter, status: int, rule: str, why: str) -> None:
    """An answer of our own, with its reason in the status line too: most clients show no more than that."""
    words = re.sub(r"[^\x20-\x7e]", "?", why)[:300]
    body = f"prill: {rule}: {words}\n".encode()
    head = f"HTTP/1.1 {status} prill: {rule}: {words}\r\nContent-Type: text/plain\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.drain(), HEAD_SECONDS)
