"""A server that takes as long as it is told: `python -m bench.mock_server`; the first line it prints is its port.

The last message of a chat request is the seconds to wait; the reply is always the same 60 KB. One process, no limit on
what it does at a time, so that only the client decides how long a list of requests takes. `POST /report` tells how long
each request since the last report really took here, which on a busy machine is longer than it was told. Not covered:
HTTP beyond what three clients send.
"""

import asyncio
import json
import sys
import time

TEXT = "word " * 12_000
CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 12_000, "total_tokens": 12_005}
REPLY = json.dumps(
    {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [CHOICE], "usage": USAGE}
).encode()
TOOK: list[float] = []


def answer(body: bytes) -> bytes:
    """A 200 with this body."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests of one connection, one after the other."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            began, body = time.perf_counter(), await reader.readexactly(length)
            if head.startswith(b"post /report"):
                writer.write(answer(json.dumps(TOOK).encode()))
                TOOK.clear()
                continue
            asked = json.loads(body)
            content = asked["messages"][-1]["content"]
            await asyncio.sleep(float(content if isinstance(content, str) else content[0]["text"]))
            writer.write(answer(REPLY))
            TOOK.append(time.perf_counter() - began)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
