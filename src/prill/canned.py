"""A small real server that plays back replies, well or badly: `python -m prill.canned FILE PORT`.

FILE is JSON: `{"replies": [REPLY, …], "log": PATH}`. The first REPLY that fits answers a request:

    {"if": "words", "text": "42"}       fits where the request's messages contain these words; without "if", always
    {"text": ["a", "b"]}                one after the other, the last for ever
    {"text": "4", "finish": "length"}   why it stopped
    {"times": 2, "do": "500"}           fits only so many times
    {"do": "hang"}                      misbehaves: see `MISBEHAVIOUR`; "text" is what an error says
    {"do": "429", "retry_after": "1"}   with that header; "text" is then what the error says

PORT 0 takes a free port; the first line on standard output is the port. `log` gets each request as a JSON line.
It needs nothing but the standard library. Not covered: streaming.
"""

import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MISBEHAVIOUR = {
    "hang": "takes the request and says nothing",
    "hang-200": "sends 200 and its headers and no body",
    "drip": "sends 200 and then one byte now and again",
    "drop": "closes the connection in the middle of the body",
    "html": "a web page with status 200",
    "json": "JSON of another shape",
    "not-json": "half of a JSON object",
    "not-utf8": "bytes that are no text",
    "big": "a reply of ten megabytes",
    "empty": "a reply without text",
    "400": "refuses the request", "401": "wants a key", "404": "knows no such model", "429": "too many requests",
    "500": "broke", "503": "is still loading",
}  # fmt: skip
HELD = threading.Event()
"""Never set: what hangs waits for it, until the process ends."""


class Replies:
    """What to say, and what was asked."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.replies: list[dict[str, Any]] = script["replies"]
        self.log = Path(script["log"]) if script.get("log") else None
        self.used: Counter[int] = Counter()
        self.lock = threading.Lock()
        for reply in self.replies:
            if reply.get("do", "400") not in MISBEHAVIOUR:
                raise ValueError(f"no such misbehaviour: {reply['do']!r} (there are: {', '.join(MISBEHAVIOUR)})")

    def next(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request, with its `text` as one text."""
        words = asked.get("prompt") or "\n".join(str(each.get("content")) for each in asked.get("messages", ()))
        with self.lock:
            if self.log is not None:
                with self.log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps(asked) + "\n")
            for number, reply in enumerate(self.replies):
                if reply.get("if", "") in str(words) and self.used[number] < reply.get("times", 1 << 60):
                    at = self.used[number]
                    self.used[number] += 1
                    text = reply.get("text", "")
                    return {**reply, "text": text if isinstance(text, str) else text[min(at, len(text) - 1)]}
        return {"do": "404"}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    replies: Replies
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        """The list of models; anything else is healthy."""
        self.send(200, json.dumps({"object": "list", "data": [{"id": "canned"}]}).encode())

    def do_POST(self) -> None:
        """One request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            asked = json.loads(body)
        except ValueError:
            self.send(400, b'{"error": {"message": "not JSON"}}')
            return
        reply = self.replies.next(asked)
        self.misbehave(reply["do"], asked, reply) if reply.get("do") else self.send(200, self.answer(asked, reply))

    def answer(self, asked: dict[str, Any], reply: dict[str, Any]) -> bytes:
        """A reply as a server says it: a token is a word."""
        text = reply.get("text", "")
        choice: dict[str, Any] = {"index": 0, "finish_reason": reply.get("finish", "stop")}
        if self.path.endswith("/chat/completions"):
            choice["message"] = {"role": "assistant", "content": text, **reply.get("message", {})}
        else:
            choice["text"] = text
        words = len(text.split())
        prompt = len(json.dumps(asked).split())
        usage = {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words}
        usage |= reply.get("usage", {})
        answer = {"id": "canned", "object": "chat.completion", "created": 0, "model": asked.get("model", "canned")}
        return json.dumps({**answer, "choices": [choice], "usage": usage}).encode()

    def misbehave(self, how: str, asked: dict[str, Any], reply: dict[str, Any]) -> None:
        """See `MISBEHAVIOUR`."""
        if how.isdecimal():
            message = reply.get("text") or f"{how}: {MISBEHAVIOUR[how]}"
            wait = {"Retry-After": reply["retry_after"]} if "retry_after" in reply else {}
            self.send(int(how), json.dumps({"error": {"message": message}}).encode(), headers=wait)
        elif how == "hang":
            HELD.wait()
        elif how in ("hang-200", "drip", "drop"):
            self.send(200, b"", length=1000)
            if how == "drop":
                self.wfile.write(b'{"choices": [')
                self.close_connection = True
                return
            while not HELD.wait(0.5):
                if how == "drip":
                    self.wfile.write(b" ")
                    self.wfile.flush()
        else:
            bodies = {
                "html": b"<html><body>It works!</body></html>",
                "json": b'{"ok": true}',
                "not-json": b'{"choices": [{"message"',
                "not-utf8": b'{"choices": [{"message": {"content": "\xff\xfe"}, "finish_reason": "stop"}]}',
            }
            words = "word " * (2 << 20) if how == "big" else ""
            self.send(200, bodies[how] if how in bodies else self.answer(asked, {"text": words}))

    def send(self, status: int, body: bytes, length: int | None = None, headers: dict[str, str] | None = None) -> None:
        """Status, headers and body."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """Many connections at once; threads end with the process."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


def main(argv: list[str]) -> int:
    """Serve until killed."""
    try:
        Handler.replies = Replies(json.loads(Path(argv[0]).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError) as error:
        print(f"Error: {argv[0]}: no file of replies ({type(error).__name__}: {error})", file=sys.stderr)
        return 2
    with Server(("127.0.0.1", int(argv[1])), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
