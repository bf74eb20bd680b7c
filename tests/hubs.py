"""A played hub, the host of its large files, and an open front before them."""

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from prill.gateway.hub import HubFront

COMMIT = "a" * 40
WEIGHTS = os.urandom(300_000)
README = b"""---
configs:
- config_name: main
  data_files:
  - {split: train, path: main/train-*}
  - {split: test, path: main/test-*}
---
"""


def table() -> bytes:
    """A file of rows, as data sets have them."""
    rows = [{"question": f"{number} and {number}", "answer": str(2 * number)} for number in range(200)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


ROWS = table()
TINY = {"config.json": b'{"model_type": "tiny"}', "model.safetensors": WEIGHTS, "sub/notes.txt": b"a note"}
REPOS: dict[str, dict[str, bytes]] = {
    "models/org/tiny": TINY,
    "models/org/tiny-instruct": TINY,
    "models/org/gated": TINY,
    "datasets/org/maths": {"README.md": README, "main/train-0.jsonl": ROWS, "main/test-0.jsonl": ROWS},
    "datasets/org/exam": {"data.jsonl": b"{}\n"},
}
DENIED = {
    "Org/Tiny-Instruct": "lineage: a relative",
    "org/maths (split test)": "contamination: holds items",
    "org/exam": "contamination: holds items",
}
FLAGGED = {"*/gated": "lineage: looks like one"}
TOKEN = "hf_secret"


def git_sha1(content: bytes) -> str:
    """A content's name in git."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The hub, as far as clients need it: small files by a redirect of its own, large ones by one to another host."""

    seen: list[tuple[str, str, str | None]]
    large: str

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """An answer."""
        self.send_response(status)
        for name, text in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        """Like GET, with a body that says which paths."""
        self.asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def do_GET(self) -> None:
        """Everything that is there to be had."""
        self.seen.append((self.command, self.path, self.headers.get("Authorization")))
        path = unquote(self.path.partition("?")[0]).strip("/")
        if path.startswith("datasets/old/exam"):
            self.say(307, Location="/" + path.replace("old/", "org/"))
        elif path == "api/datasets":
            link = f'<http://{self.headers["Host"]}/api/datasets?cursor=2>; rel="next"'
            self.say(200, b"[]", Content_Type="application/json", Link=link)
        elif path.startswith("api/resolve-cache/"):
            kind, owner, name, _, file = path.split("/", 6)[2:]
            self.small(REPOS[f"{kind}/{owner}/{name}"][file])
        else:
            self.repository(path)

    def repository(self, path: str) -> None:
        """Facts about a repository or a file of it, for those who may."""
        api = path.startswith("api/")
        kind, _, rest = path.removeprefix("api/").partition("/") if api else ("models", "", path)
        if not api and path.startswith("datasets/"):
            kind, _, rest = path.partition("/")
        owner, name, *more = rest.split("/")
        repo = f"{kind}/{owner}/{name}"
        if repo not in REPOS or (name == "gated" and self.headers.get("Authorization") != f"Bearer {TOKEN}"):
            self.say(401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
        elif api:
            self.facts(repo, more)
        else:
            self.file(repo, "/".join(more[2:]))

    do_HEAD = do_GET

    def small(self, content: bytes) -> None:
        """A file that git keeps itself."""
        self.say(200, content, ETag=f'"{git_sha1(content)}"', X_Repo_Commit=COMMIT, Content_Type="text/plain")

    def file(self, repo: str, file: str) -> None:
        """A file of a repository, at whatever revision."""
        content = REPOS[repo].get(file)
        if content is None:
            self.say(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found", X_Repo_Commit=COMMIT)
            return
        if len(content) < 1000:
            kind, _, name = repo.partition("/")
            self.say(307, Location=f"/api/resolve-cache/{kind}/{name}/{COMMIT}/{file}", X_Repo_Commit=COMMIT)
            return
        sha256 = hashlib.sha256(content).hexdigest()
        self.say(
            302, Location=f"{self.large}/{repo}/{file}", X_Repo_Commit=COMMIT, X_Linked_ETag=f'"{sha256}"',
            X_Linked_Size=str(len(content)), X_Xet_Hash="c" * 64,
            Link='<http://elsewhere.example/xet>; rel="xet-auth"',
        )  # fmt: skip

    def facts(self, repo: str, more: list[str]) -> None:
        """What the API says of a repository."""
        name = repo.partition("/")[2]
        whole = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": file} for file in REPOS[repo]], "tags": []}
        below = "/".join(more[2:])
        entries = [entry for file in REPOS[repo] if (entry := listed(repo, file, below, "recursive=true" in self.path))]
        if more[:1] == ["paths-info"]:
            paths = parse_qs(self.asked.decode()).get("paths", []) or json.loads(self.asked)["paths"]
            entries = [entry for path in paths if path in REPOS[repo] and (entry := listed(repo, path, "", True))]
        if more[:1] == ["tree"] and not entries:
            self.say(404, X_Error_Code="EntryNotFound", X_Error_Message="no such folder")
            return
        body = (
            [*{entry["path"]: entry for entry in entries}.values()] if more[:1] in (["tree"], ["paths-info"]) else whole
        )
        self.say(200, json.dumps(body).encode(), Content_Type="application/json", X_Repo_Commit=COMMIT)


def listed(repo: str, file: str, below: str, deep: bool) -> dict[str, Any] | None:
    """A file as a listing of a folder has it: itself, the folder that it lies in, or not at all."""
    content, front = REPOS[repo][file], f"{below}/" if below else ""
    if not file.startswith(front):
        return None
    if not deep and "/" in file.removeprefix(front):
        folder = front + file.removeprefix(front).partition("/")[0]
        return {"type": "directory", "path": folder, "size": 0, "oid": "d" * 40}
    lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}
    entry = {"type": "file", "path": file, "size": len(content), "oid": git_sha1(content)}
    return entry | ({"lfs": lfs} if len(content) > 1000 else {})


class Large(Hub):
    """The other host: large files and nothing else; knows ranges."""

    broken = cut = False

    def do_GET(self) -> None:
        """A file, or a part of it."""
        self.seen.append((self.command, self.path, self.headers.get("Authorization")))
        kind, owner, name, file = unquote(self.path).strip("/").split("/", 3)
        content = REPOS[f"{kind}/{owner}/{name}"][file]
        status, more, sent = 200, {}, content
        if wish := self.headers.get("Range"):
            start, stop = wish.removeprefix("bytes=").split("-")
            sent = content[int(start) : int(stop or len(content)) + 1]
            status, more = 206, {"Content_Range": f"bytes {start}-{stop}/{len(content)}"}
        elif type(self).broken:
            sent = b"x" + content[1:]
        elif type(self).cut:
            type(self).cut = False
            sent, more = content[: len(content) // 2], {"Content_Length": str(len(content))}
        self.say(status, sent, **more)


class World:
    """The played hub, the front before it and a port of this machine that leads to the front, like a box's relay."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder, self.log = folder, folder / "hub.jsonl"
        seen: list[tuple[str, str, str | None]] = []
        self.seen = seen
        self.large = ThreadingHTTPServer(("127.0.0.1", 0), type("Large", (Large,), {"seen": seen}))
        large = f"http://localhost:{self.large.server_address[1]}"
        self.hub = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (Hub,), {"seen": seen, "large": large}))
        self.servers = [self.large, self.hub]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        given = {"denied": DENIED, "flagged": FLAGGED, "key": lambda: TOKEN} | more
        self.front = HubFront(
            upstream=f"http://127.0.0.1:{self.hub.server_address[1]}", cache=folder / "cache", log=self.log,
            socket=folder / "hub.sock", step=lambda: 3, **given,
        )  # fmt: skip

    def close(self) -> None:
        """End the played servers."""
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
        """An answer of the front to a path that is sent as it stands."""
        connection = HTTPConnection("hub")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(20)
        connection.sock.connect(os.fspath(self.folder / "hub.sock"))
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, text in headers.items():
            connection.putheader(name.replace("_", "-"), text)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log's lines of that event, once everything that was asked has ended."""
        until = time.monotonic() + 20
        while True:
            found = list(map(json.loads, self.log.read_text().splitlines()))
            events = [line["event"] for line in found]
            if events.count("asked") == events.count("ended") or time.monotonic() > until:
                return [line for line in found if line["event"] == event]
            time.sleep(0.01)


@contextmanager
def opened(folder: Path, **more: Any) -> Iterator[World]:
    """A world with its front open."""
    world = World(folder, **more)
    try:
        with world.front:
            yield world
    finally:
        world.close()
