"""The loop: workers pull questions off one iterator, longest expected first and never in waves; answers are kept.

One process, one thread, one connection a worker. Not covered: sharing a server fairly with another client.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from prill.asking import wires
from prill.asking.kept import Kept
from prill.asking.reading import Answer, Lapse, complaint, read
from prill.errors import DefinitionError, InfraError
from prill.outside import Wire
from prill.sockets import Value

T = TypeVar("T")
REPLY_BYTES = 10 << 20


class Asking(Value, frozen=True, kw_only=True):
    """Of whom, how many at a time, and how patiently."""

    url: str
    """OpenAI-compatible root, ending in `/v1`."""
    model: str
    connections: int
    request_seconds: float
    """For one request, from sending to the last byte."""
    reply_bytes: int = REPLY_BYTES
    """No reply is read further than this; what is longer counts as cut off, because only a model's text grows."""
    attempts: int = 4
    """For what the machine owns; a wait that the server asks for uses up patience instead."""
    backoff_seconds: float = 0.5
    """Before the second attempt; doubles each time, 8 s at most."""
    patience_seconds: float = 300.0
    """How long one question waits, in all."""
    key: str | None = None
    """Sent as a bearer token, for servers that want one."""
    wire: Wire = "chat"
    """Whose words the server understands; see `wires.py`."""
    own: bool = False
    """Whether the server is the submission's own: what it spoils is then an answer, `server`, and the time for one
    request is for all attempts together. Source: the wallet trial, where a request over its time or still failing is
    wrong, however many are."""


class Question(Value, frozen=True, kw_only=True):
    """One request: where it goes and what it says. `body` is made when its turn comes."""

    id: str
    body: Callable[[], Mapping[str, Any]]
    path: str = "/chat/completions"
    expected: float = 0.0
    """How long the reply may take, in any unit; the longest are asked first."""


class Tally(Value, frozen=True, kw_only=True):
    """How the asking went."""

    total: int
    resumed: int
    """Answers that were there before."""
    stops: Mapping[str, int]
    retries: Mapping[str, int]
    """What the machine did wrong and made good when asked again, by kind."""
    wall_seconds: float


class Pace(Value, frozen=True, kw_only=True):
    """How far it is."""

    done: int
    total: int
    per_second: float | None
    seconds_left: float | None


def pace(done: int, total: int, since: float, before: int = 0) -> Pace:
    """How far it is, at the rate of this process: `before` were done when it began at `since`, by the steady clock."""
    passed = time.monotonic() - since
    rate = (done - before) / passed if done > before and passed > 0 else None
    return Pace(done=done, total=total, per_second=rate, seconds_left=(total - done) / rate if rate else None)


def counted(things: Iterable[T], total: int, tell: Callable[[Pace], None]) -> Iterator[T]:
    """Each of some things as it comes; `tell` hears of it first, last, and about every second in between."""
    began = spoke = time.monotonic()
    tell(pace(0, total, began))
    for done, each in enumerate(things, 1):
        if done == total or time.monotonic() - spoke >= 1.0:
            tell(pace(done, total, began))
            spoke = time.monotonic()
        yield each


class NoMemory(InfraError):
    """The server ran out of memory; with fewer tokens it may not."""


def ask(
    questions: Sequence[Question], how: Asking, file: Path, settings: str, tell: Callable[[Pace], None] = lambda _: None
) -> Tally:
    """Ask what has no answer in `file` yet, longest expected first; `tell` hears of it about every second.

    Raises `InfraError` if any question is left without an answer, after asking all others; at once if the server no
    longer answers anything. `NoMemory` if it said that it has none left.
    """
    twice = [id for id, count in Counter(question.id for question in questions).items() if count > 1]
    if twice:
        raise DefinitionError(f"{len(twice)} ids are not unique, the first: {twice[0]!r}; give each item its own")
    began = time.monotonic()
    kept = Kept(file, settings)
    try:
        todo = sorted((q for q in questions if q.id not in kept.ids), key=lambda question: -question.expected)
        resumed = len(questions) - len(todo)
        asker = Asker(how, kept, len(questions), resumed, tell)
        if todo:
            asyncio.run(asker.run(todo))
    finally:
        kept.close()
    return Tally(
        total=len(questions),
        resumed=resumed,
        stops=dict(kept.stops),
        retries=dict(asker.lapses),
        wall_seconds=time.monotonic() - began,
    )


class Asker:
    """One asking under way."""

    def __init__(self, how: Asking, kept: Kept, total: int, before: int, tell: Callable[[Pace], None]) -> None:
        self.how, self.kept, self.total, self.before, self.tell = how, kept, total, before, tell
        self.began, self.others = time.monotonic(), len(kept.ids) - before
        """The file may hold answers to questions that are not asked now."""
        self.lapses: Counter[str] = Counter()
        self.failed: list[tuple[str, Lapse]] = []
        self.streak = 0
        """Questions that failed since the last answer came."""
        self.alive = 0.0
        """When a reply last came, whatever was in it."""
        self.session: Any = None
        self.probing = asyncio.Lock()

    async def run(self, todo: Sequence[Question]) -> None:
        """Workers pull questions off one iterator until it is empty or the server is given up."""
        async with self.connected():
            waiting = iter(todo)
            workers = [asyncio.create_task(self.work(waiting)) for _ in range(min(self.how.connections, len(todo)))]
            telling = asyncio.create_task(self.keep_telling())
            try:
                await asyncio.gather(*workers)
            finally:
                for task in (*workers, telling):
                    task.cancel()
                await asyncio.gather(*workers, telling, return_exceptions=True)
        self.tell(self.pace())
        if self.failed:
            raise self.given_up()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """A pool of as many connections as there are workers, and one to see whether the server lives."""
        import aiohttp

        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.how.connections + 1),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"}
            | wires.HEADERS.get(self.how.wire, {})
            | ({"Authorization": f"Bearer {self.how.key}"} if self.how.key else {}),
            auto_decompress=False,
        )
        async with self.session:
            yield

    async def work(self, waiting: Iterator[Question]) -> None:
        """One worker."""
        for question in waiting:
            try:
                self.kept.add(await (self.owned(question) if self.how.own else self.persist(question)))
                self.streak = 0
            except Lapse as lapse:
                self.failed.append((question.id, lapse))
                self.streak += 1
                if lapse.kind == "memory" or self.streak > self.how.connections:
                    raise self.given_up() from None

    async def owned(self, question: Question) -> Answer:
        """Ask a submission's own server, which answers for whatever comes of it."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.how.request_seconds):
                return await self.persist(question)
        except TimeoutError:
            spoilt = Answer(id=question.id, stop="timeout", why=f"no reply in {self.how.request_seconds:g} s")
        except Lapse as lapse:
            spoilt = Answer(id=question.id, stop="server", why=str(lapse))
        return msgspec.structs.replace(spoilt, seconds=time.monotonic() - began)

    async def persist(self, question: Question) -> Answer:
        """Ask until the model has answered, or patience or attempts are used up."""
        attempt, patience = 1, self.how.patience_seconds
        while True:
            began = time.monotonic()
            try:
                answer = await self.exchange(question)
                return msgspec.structs.replace(answer, seconds=time.monotonic() - began, attempts=attempt)
            except Lapse as lapse:
                wait = lapse.wait
                if wait is None:
                    wait = min(8.0, self.how.backoff_seconds * 2 ** (attempt - 1))
                    attempt += 1
                patience -= max(wait, 0.1)
                if not lapse.again or attempt > self.how.attempts or patience < 0:
                    raise
                self.lapses[lapse.kind] += 1
                await asyncio.sleep(wait)

    async def exchange(self, question: Question) -> Answer:
        """One request and what came of it."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.how.request_seconds):
                status, headers, body = await self.post(question.path, question.body())
        except TimeoutError:
            await self.look_alive(question.path, began)
            return Answer(id=question.id, stop="timeout", why=f"no reply in {self.how.request_seconds:g} s")
        self.alive = time.monotonic()
        if body is None:
            return Answer(id=question.id, stop="length", why=f"cut off: a reply of over {self.how.reply_bytes} bytes")
        if status != 200:
            return complaint(question.id, status, headers, body)
        return read(question.id, wires.completion(self.how.wire, body))

    async def post(self, path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes | None]:
        """Status, headers and body, which is `None` if it is longer than the cap."""
        import aiohttp

        url, sent = wires.request(self.how.wire, self.how.url, path, self.how.model, body)
        data = msgspec.json.encode(sent)
        try:
            async with self.session.post(url, data=data, allow_redirects=False) as response:
                pieces, size = [], 0
                async for piece in response.content.iter_any():
                    size += len(piece)
                    if size > self.how.reply_bytes:
                        response.close()
                        return response.status, response.headers, None
                    pieces.append(piece)
                return response.status, response.headers, b"".join(pieces)
        except aiohttp.ClientConnectorError as error:
            raise Lapse("no connection", str(error)) from None
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise Lapse("dropped stream", f"{type(error).__name__} {error}") from None
        except aiohttp.ClientError as error:
            raise Lapse("not HTTP", f"{type(error).__name__} {error}") from None

    async def look_alive(self, path: str, since: float) -> None:
        """Whose a timeout is: the model's if the server has answered anything since, or one token now."""
        async with self.probing:
            if self.alive > since:
                return
            late = f"no reply in {self.how.request_seconds:g} s"
            chat = {"messages": [{"role": "user", "content": "1"}]}
            token = {**(chat if path.endswith("/chat/completions") else {"prompt": "1"}), "max_tokens": 1}
            token |= {"max_completion_tokens": 16} if self.how.wire != "chat" else {}
            try:
                async with asyncio.timeout(self.how.request_seconds):
                    status, _, _ = await self.post(path, token)
            except TimeoutError:
                raise Lapse("hangs", f"{late}, nor one token in as long again", again=False) from None
            except Lapse as lapse:
                raise Lapse("hangs", f"{late}, and then {lapse}", again=False) from None
            if status != 200:
                raise Lapse("hangs", f"{late}, and then status {status}", again=False)
            self.alive = time.monotonic()

    def given_up(self) -> InfraError:
        """The error for questions that are left without an answer."""
        kinds = Counter(lapse.kind for _, lapse in self.failed)
        id, first = next(((id, lapse) for id, lapse in self.failed if lapse.kind == "memory"), self.failed[0])
        listed = ", ".join(f"{count} × {kind}" for kind, count in kinds.most_common())
        told = (
            f"the server failed on {len(self.failed)} of {self.total} questions ({listed}); item {id}: {first}; "
            f"{len(self.kept.ids)} answers are kept, the same command again asks the others"
        )
        return NoMemory(told) if "memory" in kinds else InfraError(told)

    def pace(self) -> Pace:
        """How far it is. The rate is of this process; one that carries on starts at nothing."""
        return pace(len(self.kept.ids) - self.others, self.total, self.began, self.before)

    async def keep_telling(self) -> None:
        """Every second until cancelled: tell how far it is, and have what was kept on disk."""
        while True:
            self.tell(self.pace())
            await asyncio.to_thread(self.kept.sync)
            await asyncio.sleep(1.0)
