"""The front of the model and data hub for a box, on a UNIX socket: what `HF_ENDPOINT` points to.

It sees which repository, revision and file is asked for, refuses what a suite denies in words that the hub's clients
show, writes all of it to a log, and keeps files in a cache that runs share. The box never sees another host nor the
hub's key: redirects are followed here, and what would lead around it (Xet, uploads, git) is not there.

Not covered: copies of a denied repository under another name; what a file holds; a hub that lies about a commit.
"""

import asyncio
import itertools
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from prill.gateway.background import BACKLOG, Background
from prill.gateway.blobs import MOST_BYTES, Blobs, Known, Part
from prill.gateway.hosts import Ruling
from prill.gateway.hubfacts import facts_of, span
from prill.gateway.hubpaths import COMMIT, Wanted, rule, wanted
from prill.gateway.logbook import Logbook

if TYPE_CHECKING:
    from aiohttp import ClientResponse, web

PIECE = 1 << 20
HOPS = 6
CONNECTIONS = 128
REQUESTS = 64
BODY_BYTES = 1 << 20
UPSTREAM_SECONDS = 120.0
CLIENT_SECONDS = 600.0
PASSED = (
    "content-type last-modified content-disposition accept-ranges x-repo-commit x-error-code x-error-message"
    " x-total-count retry-after ratelimit ratelimit-policy x-request-id"
)
"""Headers of the hub that reach the box as they are. Those of Xet do not: files come by plain download."""
NOT_HERE = "this front has no such place: it serves models' and data sets' files and the facts about them"
READ_ONLY = "nothing can be sent to the hub from here"


class HubFront(Background):
    """Serves while it is open; see the module. The log's lines are told in docs/reference/egress.md."""

    def __init__(
        self,
        *,
        upstream: str,
        cache: Path,
        log: Path,
        socket: Path,
        denied: Mapping[str, str],
        flagged: Mapping[str, str],
        key: Callable[[], str | None],
        step: Callable[[], int | None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`denied` and `flagged` as `hubpaths.rule` reads them; `key` gives the hub's token, for each request anew."""
        self.upstream, self.log, self.socket = upstream.rstrip("/"), log, socket
        self.denied, self.flagged, self.key, self.step = dict(denied), dict(flagged), key, step
        self._cache, self._most = cache, most_bytes
        self._numbers, self._under_way, self._arriving = itertools.count(1), 0, 0

    async def _open(self) -> None:
        import aiohttp
        from aiohttp import web

        self._stack = AsyncExitStack()
        self._book = Logbook(self.log)
        self._stack.callback(self._book.close)
        self.blobs = Blobs(self._cache, self._most)
        times = aiohttp.ClientTimeout(total=None, connect=UPSTREAM_SECONDS, sock_read=UPSTREAM_SECONDS)
        self.session = aiohttp.ClientSession(
            timeout=times, auto_decompress=False, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()
        )
        self._stack.push_async_callback(self.session.close)
        quiet = logging.Logger("quiet", logging.CRITICAL + 1)  # what a box sends malformed is no news to anybody
        server = web.Server(self._serve, access_log=None, logger=quiet)
        self._stack.push_async_callback(server.shutdown, 0.5)

        def arrived() -> asyncio.BaseProtocol:
            if len(server.connections) + self._arriving >= CONNECTIONS:
                return TurnedAway()
            self._arriving += 1  # a connection counts itself one turn of the loop later, and many may come at once
            self.loop.call_soon(self._arrived)
            handler: asyncio.BaseProtocol = server()
            return handler

        listening = await self.loop.create_unix_server(arrived, self.socket, backlog=BACKLOG)
        self._stack.callback(listening.close)

    def _arrived(self) -> None:
        self._arriving -= 1

    async def _close(self) -> None:
        if hasattr(self, "_stack"):
            await self._stack.aclose()

    async def _serve(self, request: "web.BaseRequest") -> "web.StreamResponse":
        if self._under_way >= REQUESTS or self._book.full():
            return refusal(503, "busy", "too many requests at a time, or a full log: try again later")
        self._under_way += 1
        try:
            return await Answer(self, request).give()
        finally:
            self._under_way -= 1


class TurnedAway(asyncio.Protocol):
    """A connection too many: it is closed at once, before it takes more of this machine than its number."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()


class Denied(Exception):
    """A redirect leads to a repository that is not to be had."""

    def __init__(self, asked: Wanted, ruling: Ruling) -> None:
        super().__init__(ruling.why)
        self.ruling, self.words = ruling, f"{asked.repo}: {ruling.why}"


class Answer:
    """One request and what comes of it."""

    def __init__(self, front: HubFront, request: "web.BaseRequest") -> None:
        self.front, self.request = front, request
        self.number, self.began = next(front._numbers), time.monotonic()
        self.sent, self.cached, self.begun = 0, False, False
        self.commit: str | None = None
        self.raw, _, self.query = request.raw_path.partition("?")

    async def give(self) -> "web.StreamResponse":
        """The answer, with a line in the log before it and one after."""
        import aiohttp

        ended = "cut by us"
        answer: web.StreamResponse | None = None
        try:
            asked, refused = self._ruled()
            answer = refused or await (self._file(asked) if asked.what == "file" else self._facts(asked))
            ended = "refused" if refused is not None else "whole"
        except Denied as denied:
            ended, answer = "refused", refusal(403, denied.ruling.rule, denied.words)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            ended = f"the hub: {type(error).__name__}: {error}"
            if self.begun:
                raise ConnectionResetError("the hub broke off") from None  # the client must not take it for whole
            answer = refusal(502, "upstream", "the hub cannot be reached or answers strangely; try again")
        except ConnectionError:
            ended = "the client hung up"
            raise
        finally:
            seconds, status = round(time.monotonic() - self.began, 3), answer.status if answer is not None else None
            about = {"commit": self.commit, "cached": self.cached, "bytes": self.sent, "seconds": seconds}
            self._line("ended", status=status, **about, ended=ended)
        return answer

    def _line(self, event: str, **fields: Any) -> None:
        at, step = round(time.time(), 3), self.front.step()
        self.front._book.write(at=at, id=self.number, event=event, step=step, **fields)

    def _ruled(self) -> "tuple[Wanted, web.StreamResponse | None]":
        """What is asked for and, if it is not to be had, the refusal."""
        method, asked = self.request.method, Wanted(what="nothing")
        try:
            asked = wanted(self.raw)
            ruling = rule(asked, self.front.denied, self.front.flagged)
            status = 404 if asked.what == "nothing" else 403 if ruling.verdict == "deny" else 0
            if asked.what == "nothing":
                ruling = Ruling(host="", verdict="deny", rule="unknown", why=NOT_HERE)
        except ValueError as error:
            status, ruling = 400, Ruling(host="", verdict="deny", rule="malformed", why=str(error))
        listing = method == "POST" and asked.what == "facts" and asked.file.startswith("paths-info")
        if method not in ("GET", "HEAD") and not listing:
            status, ruling = 403, Ruling(host=asked.repo, verdict="deny", rule="upload", why=READ_ONLY)
        about = {"kind": asked.kind, "repo": asked.repo, "revision": asked.revision, "file": asked.file}
        said = {"verdict": ruling.verdict, "rule": ruling.rule, "why": ruling.why, "line": ruling.line}
        self._line("asked", method=method, path=self.raw, query=self.query, what=asked.what, **about, **said)
        return asked, refusal(status, ruling.rule, f"{asked.repo or self.raw[:200]}: {ruling.why}") if status else None

    async def _ask(self, method: str, asked: Wanted, stack: AsyncExitStack, **more: Any) -> "list[ClientResponse]":
        """What the hub says, redirects followed: one response for each hop, the last one to be read.

        `Denied` where a hop leads to a repository that is; `ValueError` where hops lead nowhere.
        """
        from yarl import URL

        front = self.front
        hops: list[ClientResponse] = []
        url = f"{front.upstream}{asked.path}" + (f"?{self.query}" if self.query else "")
        home = urlsplit(front.upstream)[:2]
        while len(hops) < HOPS:
            headers = {"Accept-Encoding": "identity", "User-Agent": "prill", **more.get("headers", {})}
            key = front.key()
            if key and urlsplit(url)[:2] == home:
                headers["Authorization"] = f"Bearer {key}"
            asking = front.session.request(
                method, URL(url, encoded=True), headers=headers, data=more.get("data"), allow_redirects=False
            )
            hops.append(await stack.enter_async_context(asking))
            target = hops[-1].headers.get("Location")
            if hops[-1].status not in (301, 302, 303, 307, 308) or not target:
                return hops
            url = urljoin(url, target)
            if urlsplit(url)[:2] == home:
                self._still_allowed(url)
            elif method == "HEAD":
                return hops  # all that is asked is said; the other host need not be asked
            elif urlsplit(url).scheme not in ("https", home[0]):
                raise ValueError("a redirect that leaves https")
        raise ValueError("too many redirects")

    def _still_allowed(self, url: str) -> None:
        """Renamed repositories are reached by a redirect: the name that counts is the last one."""
        asked = wanted(urlsplit(url).path.removeprefix(urlsplit(self.front.upstream).path))
        ruling = rule(asked, self.front.denied, self.front.flagged)
        if ruling.verdict != "allow":
            self._line("renamed", repo=asked.repo, verdict=ruling.verdict, rule=ruling.rule, why=ruling.why)
        if ruling.verdict == "deny":
            raise Denied(asked, ruling)

    async def _facts(self, asked: Wanted) -> "web.StreamResponse":
        """Facts about a repository, passed on as they come."""
        method = self.request.method
        more: dict[str, Any] = {}
        if method == "POST":
            body = await self.request.content.read(BODY_BYTES + 1)
            while len(body) <= BODY_BYTES and (piece := await self.request.content.read(BODY_BYTES)):
                body += piece
            if len(body) > BODY_BYTES:
                return refusal(413, "malformed", "a request has at most a megabyte")
            kind = self.request.headers.get("Content-Type", "application/json")
            more = {"data": body, "headers": {"Content-Type": kind}}
        async with AsyncExitStack() as stack:
            hops = await self._ask(method, asked, stack, **more)
            last = hops[-1]
            headers = self._headers(hops)
            if link := last.headers.get("Link"):
                headers["Link"] = link.replace(self.front.upstream, self._root())
            return await self._stream(last.status, headers, last.content.iter_any(), last.content_length)

    def _root(self) -> str:
        """This front as the client spells it."""
        return f"http://{self.request.headers.get('Host', '127.0.0.1')[:200]}"

    def _headers(self, hops: "list[ClientResponse]") -> dict[str, str]:
        found: dict[str, str] = {}
        for name in PASSED.split():
            for hop in hops:
                if name in hop.headers:
                    found[name] = hop.headers[name]
        return found

    async def _file(self, asked: Wanted) -> "web.StreamResponse":
        """A file: out of the cache where it is there, else from the hub, and then into the cache."""
        blobs = self.front.blobs
        known = None
        if asked.commit and asked.revision:
            known = blobs.known(asked.kind, asked.repo, asked.revision, asked.file)
        if known is None:
            async with AsyncExitStack() as stack:
                hops = await self._ask("HEAD", asked, stack)
                if hops[-1].status >= 400:
                    return await self._stream(hops[-1].status, self._headers(hops), None, 0)
                known = facts_of([hop.headers for hop in hops])
                self.commit = known.commit
                if COMMIT.fullmatch(known.commit):
                    blobs.note(asked.kind, asked.repo, asked.file, known)
        self.commit = known.commit
        headers = {"Content-Type": known.type, "ETag": f'"{known.etag}"', "X-Repo-Commit": known.commit}
        headers["Accept-Ranges"] = "bytes"
        if known.linked:
            headers |= {"X-Linked-Etag": f'"{known.etag}"', "X-Linked-Size": str(known.size)}
        if self.request.method == "HEAD":
            self.cached = blobs.open(known.etag, known.size) is not None
            return await self._stream(200, headers, None, known.size)
        wish = self.request.headers.get("Range")
        if self.request.headers.get("If-Range", f'"{known.etag}"') != f'"{known.etag}"':
            wish = None
        start, stop = span(wish, known.size)
        if start > stop and known.size:
            return await self._stream(416, {"Content-Range": f"bytes */{known.size}"}, None, 0)
        if wish and (start, stop) != (0, known.size - 1):
            headers["Content-Range"] = f"bytes {start}-{stop}/{known.size}"
        status = 206 if "Content-Range" in headers else 200
        size = stop - start + 1
        content = blobs.open(known.etag, known.size)
        if content is not None:
            self.cached = True
            with content:
                content.seek(start)
                return await self._stream(status, headers, read(content, size), size)
        return await self._download(asked, known, (start, stop), status, headers)

    async def _download(
        self, asked: Wanted, known: Known, part: tuple[int, int], status: int, headers: dict[str, str]
    ) -> "web.StreamResponse":
        """From the hub to the client and, if it is the whole file, into the cache."""
        start, stop = part
        size = stop - start + 1
        whole = size == known.size
        kept: Part | None = self.front.blobs.part(known) if whole else None
        try:
            async with AsyncExitStack() as stack:
                wish = {} if whole else {"headers": {"Range": f"bytes={start}-{stop}"}}
                at = asked.at(known.commit) if COMMIT.fullmatch(known.commit) else asked
                last = (await self._ask("GET", at, stack, **wish))[-1]
                if last.status != (200 if whole else 206) or last.content_length not in (None, size):
                    raise ValueError(f"status {last.status} for a file that was there")
                pieces = last.content.iter_any()
                answer = await self._stream(status, headers, tee(pieces, kept), size)
                if self.sent != size:
                    raise ValueError(f"{self.sent} bytes of {size}")
            if kept is not None:
                await asyncio.to_thread(kept.finish)
            return answer
        finally:
            if kept is not None:
                kept.drop()

    async def _stream(
        self, status: int, headers: dict[str, str], pieces: AsyncIterator[bytes] | None, size: int | None
    ) -> "web.StreamResponse":
        """Send it, no faster than it is taken."""
        from aiohttp import web

        answer = web.StreamResponse(status=status, headers=headers)
        if size is not None:
            answer.content_length = size
        self.begun = True
        await answer.prepare(self.request)
        if pieces is not None and self.request.method != "HEAD":
            async for piece in pieces:
                await asyncio.wait_for(answer.write(piece), CLIENT_SECONDS)
                self.sent += len(piece)
        await answer.write_eof()
        return answer


def refusal(status: int, rule: str, why: str) -> "web.StreamResponse":
    """A refusal as the hub words its own, so that its clients show the reason and do not try again.

    A repository that is denied is told as a gated one: the clients' other refusals are shown as a lost connection.
    """
    from aiohttp import web

    words = re.sub(r"[^\x20-\x7e]", "?", f"prill: {rule}: {why}")[:500]
    headers = {"X-Error-Message": words} | ({"X-Error-Code": "GatedRepo"} if status == 403 else {})
    return web.json_response({"error": words}, status=status, headers=headers)


async def read(content: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """So many bytes of a file, by and by."""
    while size and (piece := await asyncio.to_thread(content.read, min(PIECE, size))):
        size -= len(piece)
        yield piece


async def tee(pieces: AsyncIterator[bytes], kept: Part | None) -> AsyncIterator[bytes]:
    """The same bytes, kept on the way."""
    async for piece in pieces:
        if kept is not None:
            kept.write(piece)
        yield piece
