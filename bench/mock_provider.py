"""A provider that answers chat requests at once or as a paced stream: `python -m bench.mock_provider`; the first line
it prints is its port.

A request with `"stream": true` gets its first piece after 0.2 s, then nine more, 20 ms apart. One process. Not covered:
HTTP beyond what the benches send.
"""

import asyncio
import json
import sys

WAIT_SECONDS, GAP_SECONDS, PIECES = 0.2, 0.02, 10
USAGE = {"prompt_tokens": 50, "completion_tokens": 100, "total_tokens": 150}
CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "word " * 100}}
HEAD = {"id": "x", "created": 0, "model": "m"}
REPLY = json.dumps(HEAD | {"object": "chat.completion", "choices": [CHOICE], "usage": USAGE}).encode()


def chunk(rest: dict[str, object]) -> bytes:
    """One event of a stream, as a chunk of HTTP."""
    data = b"data: " + json.dumps(HEAD | {"object": "chat.completion.chunk"} | rest).encode() + b"\n\n"
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


WORD = chunk({"choices": [{"index": 0, "delta": {"content": "word " * 10}}]})
LAST = chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + chunk({"choices": [], "usage": USAGE})
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n\r\n".encode() + REPLY


async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Requests of one connection, one after the other."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
            body = await reader.readexactly(int(length or 0))
            if not json.loads(body or b"{}").get("stream"):
                writer.write(WHOLE)
            else:
                await asyncio.sleep(WAIT_SECONDS)
                writer.write(STREAM + WORD)
                for _ in range(PIECES - 1):
                    await asyncio.sleep(GAP_SECONDS)
                    writer.write(WORD)
                writer.write(LAST + b"0\r\n\r\n")
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
