"""The bytes of a call that was let out: to the provider, and its reply to the client as it comes.

A reply is read to its end in a task of its own, whether the client stays or not, and is paid as the provider counts it.
Where a provider's silence leaves it open what a call cost, the whole hold is paid. Not covered: a provider that bills
a call whose connection it closed before the first byte of a reply came for another sum than our bound.
"""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from multidict import CIMultiDict
from yarl import URL

from prill.errors import InfraError
from prill.gateway.door import HOP, WIRES, Door, Request, Visit
from prill.gateway.replies import Reading
from prill.gateway.wire import Refused, Seen

STALLED_SECONDS = 120.0
"""For a client to take what was written to it; then it counts as gone."""
CONNECT_SECONDS = 30.0
GONE = (ConnectionError, TimeoutError, RuntimeError)
"""What writing to a client raises that has hung up, or does not read."""
Response = Any
"""aiohttp's `StreamResponse`."""


class Carrier:
    """Serves a door: one connection pool to the provider, one task for each call under way."""

    def __init__(self, door: Door, session: Any, patience_seconds: float) -> None:
        import aiohttp

        self.door, self.tasks = door, set[asyncio.Task[Any]]()
        self._session, self._host = session, urlsplit(door.upstream).netloc
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=patience_seconds)

    async def drained(self, seconds: float) -> None:
        """Wait for what is still coming; then end it, paid in full."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=seconds)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, *self.door.writing, return_exceptions=True)

    async def handle(self, request: Request) -> Response:
        """One request of a client, from its head to the end of its reply."""
        visit = self.door.visit(request)
        try:
            body = await self.door.admit(visit)
            headers = self.door.headers(visit)
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the client hung up while its call waited for money")
        except Refused as no:
            self.door.refuse(visit, no)
            return answer(self.door, visit, no.status, str(no))
        except InfraError as error:
            self.door.give_back(visit, str(error))
            return answer(self.door, visit, 503, str(error))
        except ConnectionResetError as error:
            self.door.give_back(visit, str(error))
            raise
        except Exception as error:
            return self._fault(visit, error)
        task = asyncio.get_running_loop().create_task(self._carry(visit, body, headers))
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _fault(self, visit: Visit, error: Exception) -> Response:
        """A bug of ours: told in words, and in the ledger by its name, so that it is not taken for the agent's."""
        words = f"the gateway failed: {type(error).__name__}"
        self.door.give_back(visit, words)
        self.door.fault(visit, words)
        return answer(self.door, visit, 500, words)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        asyncio.get_running_loop().run_in_executor(None, self.door.sync)

    async def _carry(self, visit: Visit, body: bytes, headers: CIMultiDict[str]) -> Response:
        """Send, and bring the reply; every way out of here settles the call once."""
        import aiohttp

        door, visit.host = self.door, self._host
        url = URL(door.upstream.rstrip("/") + visit.request.raw_path, encoded=True)
        try:
            async with self._session.request(
                visit.request.method,
                url,
                data=body or None,
                headers=headers,
                allow_redirects=False,
                timeout=self._timeout,
            ) as reply:
                return await self._bring(visit, reply)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            status = 504 if isinstance(error, TimeoutError) else 502
            door.settle(visit, None, door.passed(visit, status))
            return answer(door, visit, status, "the provider cannot be reached")
        except TimeoutError:
            door.settle(visit, Seen(), door.passed(visit, 504, cut="time"))
            return answer(door, visit, 504, "the provider did not answer in time")
        except (aiohttp.ClientError, OSError):
            door.settle(visit, Seen(), door.passed(visit, 502, cut="provider"))
            return answer(door, visit, 502, "the provider closed the connection without an answer")
        except asyncio.CancelledError:
            door.settle(visit, Seen(), door.passed(visit, 0, cut="shutdown"))
            raise
        except Exception as error:
            door.settle(visit, Seen(), door.passed(visit, 500))
            return self._fault(visit, error)

    async def _bring(self, visit: Visit, reply: Any) -> Response:
        """The reply to the client, unchanged and as it comes, and what it told of its cost to the ledger."""
        import aiohttp
        from aiohttp import web

        kept = [(name, value) for name, value in reply.headers.items() if name.lower() not in HOP]
        response = web.StreamResponse(status=reply.status, reason=reply.reason, headers=CIMultiDict(kept))
        kinds = reply.headers.get("content-type", ""), reply.headers.get("content-encoding", "").lower()
        reading = Reading(visit.wire.take, *kinds) if visit.wire is not None and reply.status < 400 else None
        received, cut, stays = 0, "", True

        def settle() -> None:
            passed = self.door.passed(visit, reply.status if stays else 0, received, cut or ("" if stays else "client"))
            self.door.settle(visit, reading.end() if reading is not None else None, passed)

        try:
            if visit.held is not None:
                await visit.held
            stays = await told(response.prepare(visit.request))
            async for piece in reply.content.iter_any():
                received += len(piece)
                if reading is not None:
                    reading.feed(piece)
                if received == reply.content_length:
                    settle()  # before the client can know that it has all, and asks what is left
                if stays and not await told(response.write(piece)):
                    stays = False
                    abort(visit.request)
        except TimeoutError:
            cut = "time"
        except (aiohttp.ClientError, OSError):
            cut = "provider"
        except asyncio.CancelledError:
            cut = "shutdown"
            raise
        finally:
            if not visit.settled:
                settle()
        if cut:
            abort(visit.request)
        elif stays:
            await told(response.write_eof())
        return response


async def told(writing: Any) -> bool:
    """Whether the client took what was written."""
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            await writing
    except GONE:
        return False
    return True


def abort(request: Request) -> None:
    """Cut a client's connection, so that it does not take half a reply for a whole one."""
    if request.transport is not None:
        request.transport.abort()


def answer(door: Door, visit: Visit, status: int, words: str) -> Response:
    """An answer of ours in the provider's shape; that of its first wire where the path tells none."""
    from aiohttp import web

    wires = door.provider.wires if door.provider else ()
    wire = visit.wire or WIRES[wires[0] if wires else "chat"]
    headers = {"x-should-retry": "false"} if status < 500 else {}
    if status in (408, 413):
        headers["connection"] = "close"
    return web.json_response(wire.refusal(status, words), status=status, headers=headers)
