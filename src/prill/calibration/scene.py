"""A made-up run: what an agent did, said and was told, as the files of a run folder, in the agents' own formats.

The output of three agent programs is written line by line and read back by the real readers, so that steps, offsets
and digests are those of a real run.
"""

import io
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from prill import runtime
from prill.catalog import Catalog
from prill.folder import RunFolder
from prill.items import items_digest, write_items
from prill.outside import HostPolicy
from prill.record import File, Outcome, Run, Submission
from prill.sockets import Evidence, Item
from prill.spec import Budget, Data, Origin, RunSpec
from prill.trajectory import steps
from prill.trajectory.atif import document

Row = dict[str, Any]
Way = Literal["shut", "logged", "imported", "open"]
"""How much the doors saw: a box without a net; a proxy that keeps a log; somebody else's tree; a box that shuts
nothing."""
ENTRANTS = {"claude_code": "claude-code-opus-5-5", "codex": "codex-gpt-6-sol-high", "gemini_cli": "gemini-cli-3-1-pro"}
PATHS = {"claude_code": "/v1/messages", "codex": "/v1/responses", "gemini_cli": "/v1beta/models/x:generateContent"}
BEGAN = 1_796_000_000.0
CATALOG = Catalog([])


class Scene:
    """One run under way. Each call adds to what it leaves."""

    def __init__(
        self, folder: Path, dice: random.Random, *, benchmark: str = "gsm8k", agent: str = "", way: Way = "logged"
    ) -> None:
        self.folder, self.dice, self.way = folder, dice, way
        self.agent = agent or dice.choice(sorted(ENTRANTS))
        self.lines: list[dict[str, Any]] = []
        self.files = RunFolder(folder, durable=False)
        self.ledger, self.egress, self.hub = list[Row](), list[Row](), list[Row]()
        self.calls = 0
        self.test = CATALOG.benchmark(benchmark)
        self.items: Path | None = None
        self.base, self.siblings = folder / "none", dict[str, Path]()
        for name in ("raw", "workspace", "submission", "given/bin"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self) -> None:
        """The head of the agent's output, and the tools in the box."""
        heads: dict[str, dict[str, Any]] = {
            "claude_code": {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Bash"]},
            "codex": {"type": "thread.started", "thread_id": "t"},
            "gemini_cli": {"type": "init", "session_id": "s", "model": "m"},
        }
        self.lines.append(heads[self.agent])
        self.leave("evaluate.py", "import json\nprint(json.dumps({'accuracy': 0.5}))\n")
        if self.way != "imported":
            for name, source in (("evaluate", "evaluate.py"), ("prill-left", "prill_left.py"), ("relay", "relay.py")):
                text = (runtime.PACKAGE / "tools" / source).read_bytes()
                (self.folder / "given" / "bin" / name).write_bytes(text)

    # --- what the agent does ---

    def say(self, words: str) -> None:
        """The agent speaks."""
        if self.agent == "claude_code":
            block = {"type": "text", "text": words}
            self.lines.append({"type": "assistant", "message": {"role": "assistant", "content": [block]}})
        elif self.agent == "codex":
            self.lines.append({"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": words}})
        else:
            self.lines.append({"type": "message", "role": "assistant", "content": words, "delta": False})

    def tool(self, names: Mapping[str, str], given: Mapping[str, Any], answer: str) -> None:
        """A tool call with its answer; `names` are the tool's, by agent."""
        self.calls += 1
        call, name = f"call_{self.calls}", names[self.agent]
        self.charge()
        if self.agent == "claude_code":
            use = {"type": "tool_use", "id": call, "name": name, "input": dict(given)}
            back = {"type": "tool_result", "tool_use_id": call, "content": answer}
            self.lines.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
            self.lines.append({"type": "user", "message": {"role": "user", "content": [back]}})
        elif self.agent == "gemini_cli":
            self.lines.append({"type": "tool_use", "tool_name": name, "tool_id": call, "parameters": dict(given)})
            self.lines.append({"type": "tool_result", "tool_id": call, "status": "success", "output": answer})
        else:
            item = {"id": call, "type": name, **given}
            self.lines.append({"type": "item.started", "item": item})
            self.lines.append({"type": "item.completed", "item": {**item, "aggregated_output": answer}})

    def bash(self, command: str, answer: str = "") -> None:
        """A command line."""
        line = f"/bin/bash -lc {quoted(command)}" if self.agent == "codex" else command
        names = {"claude_code": "Bash", "codex": "command_execution", "gemini_cli": "run_shell_command"}
        self.tool(names, {"command": line}, answer)

    def write(self, path: str, text: str) -> None:
        """A file written by the agent's tool, or where it has none, or by chance, by its shell."""
        if self.agent == "codex" or self.dice.random() < 0.3:
            self.bash(f"cat > {path} <<'END_OF_FILE'\n{text}\nEND_OF_FILE")
        else:
            whole = path if path.startswith("/") else f"/home/agent/task/{path}"
            names = {"claude_code": "Write", "gemini_cli": "write_file"}
            self.tool(names, {"file_path": whole, "content": text}, f"wrote {whole}")
        if not path.startswith(("/", "~", "..", "$")):
            self.leave(path, text)

    def edit(self, path: str, old: str, new: str) -> None:
        """A file edited."""
        if self.agent == "codex":
            self.bash(f"sed -i 's/{old}/{new}/' {path}")
        else:
            names = {"claude_code": "Edit", "gemini_cli": "replace"}
            self.tool(names, {"file_path": path, "old_string": old, "new_string": new}, "edited")

    def fetch(self, url: str, answer: str = "a page") -> None:
        """A page opened by the agent's tool, or where it has none, with curl."""
        if self.agent == "codex":
            self.bash(f"curl -sL {url}", answer)
        else:
            names = {"claude_code": "WebFetch", "gemini_cli": "web_fetch"}
            self.tool(names, {"url": url, "prompt": f"read {url}"}, answer)

    def search(self, query: str, answer: str = "ten results") -> None:
        """A web search."""
        names = {"claude_code": "WebSearch", "codex": "web_search", "gemini_cli": "google_web_search"}
        self.tool(names, {"query": query}, answer)

    def leave(self, path: str, text: str | bytes) -> None:
        """A file in the workspace, without a step."""
        file = self.folder / "workspace" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    # --- what the doors see ---

    def charge(self, path: str = "", model: str = "m") -> None:
        """One model call in the ledger."""
        if self.way == "imported":
            return
        passed = {"method": "POST", "path": path or PATHS[self.agent], "host": "up", "status": 200, "sent": 9}
        about = {"id": f"l{len(self.ledger)}", "at": BEGAN, "kind": "model", "model": model}
        self.ledger += [
            {**about, "action": "hold", "usd": "1"},
            {**about, "action": "charge", "usd": "0.5", "tokens": {"input": 9}, "passed": {**passed, "seconds": 1.0}},
        ]

    def went(self, host: str, verdict: str = "allow", rule: str = "otherwise", down: int = 5_000) -> None:
        """One connection in the proxy's log."""
        if self.way != "logged":
            return
        number = len(self.egress)
        about = {"at": BEGAN, "id": number, "step": 1}
        asked = {"host": host, "port": 443, "method": "CONNECT", "path": None, "verdict": verdict, "rule": rule}
        end = {"up": 0, "down": 0, "ended": "refused"} if verdict == "deny" else {"up": 900, "down": down}
        self.egress += [
            {**about, "event": "asked", **asked, "why": "", "line": None, "addresses": []},
            {**about, "event": "ended", "seconds": 0.2, "ended": "whole", **end},
        ]

    def took(self, repo: str, kind: str = "datasets", verdict: str = "allow", rule: str = "otherwise") -> None:
        """One file asked for at the hub's front."""
        if self.way != "logged":
            return
        about = {"at": BEGAN, "id": len(self.hub), "step": 1}
        asked = {"method": "GET", "path": f"/{kind}/{repo}/resolve/main/x", "what": "file", "kind": kind, "repo": repo}
        self.hub += [
            {
                **about,
                "event": "asked",
                **asked,
                "query": "",
                "verdict": verdict,
                "rule": rule,
                "why": "",
                "line": None,
            },
            {**about, "event": "ended", "status": 403 if verdict == "deny" else 200, "bytes": 9, "ended": "whole"},
        ]

    # --- the end ---

    def with_items(self, found: Sequence[Item]) -> None:
        """These items are the benchmark's."""
        self.items = self.folder / "items.jsonl"
        write_items(found, self.items)
        pin = Data(path="items.jsonl", count=len(found), digest=items_digest(found))
        self.test = replace(self.test, data=pin, asked=None)

    def spec(self) -> RunSpec:
        """What was decided about the run."""
        entrant = CATALOG.entrant(ENTRANTS[self.agent])
        hosts: HostPolicy | None = CATALOG.hosts("posttrainbench-1.1") if self.way == "logged" else None
        told = Origin(importer="posttrainbench", path="x", order=1, told=()) if self.way == "imported" else None
        return RunSpec(
            id="made-up",
            suite="calibration",
            entrant=entrant,
            model=replace(CATALOG.model("qwen3-1.7b-base"), siblings=(), fingerprints=()),
            benchmarks=(self.test,),
            seed=0,
            budget=Budget(hours=10),
            prompt=CATALOG.prompt("posttrainbench-1.1"),
            rules=(),
            judges=(),
            sandbox="local" if self.way == "open" else "bubblewrap",
            engine="vllm",
            submission="weights",
            definitions={},
            provider=CATALOG.provider(str(entrant.provider)),
            hosts=hosts,
            origin=told,
        )

    def evidence(self, submission: Submission | None = None) -> Evidence:
        """Everything written, as a judge gets it."""
        spec = self.spec()
        raw = b"".join(msgspec.json.encode(line) + b"\n" for line in self.lines)
        self.files.stdout.write_bytes(raw)
        found = list(steps(self.agent, io.BytesIO(raw)))
        self.files.trajectory.write_bytes(msgspec.json.encode(document(spec, found)))
        for file, rows in (
            (self.files.ledger, self.ledger),
            (self.files.egress, self.egress),
            (self.files.hub, self.hub),
        ):
            if rows or (self.way == "logged" and file != self.files.ledger):
                file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        outcome = Outcome(
            ended="finished", why="", exit_code=0, signals=(), wall_seconds=9.0, limit_seconds=36_000.0,
            steps=len(found), isolated=self.way in ("shut", "logged"), sandbox=spec.sandbox, output_bytes=len(raw),
            output_dropped_bytes=0,
        )  # fmt: skip
        run = Run(spec=spec, state="done", began=BEGAN, outcome=outcome, submission=submission or sealed(self.folder))
        items = {self.test.name: self.items} if self.items else {}
        return Evidence(run=run, folder=self.folder, items=items, base=self.base, siblings=self.siblings)


def sealed(folder: Path) -> Submission:
    """A submission of which only the other files matter."""
    there = sorted(file for file in (folder / "workspace").rglob("*") if file.is_file())
    left = [
        File(path=file.relative_to(folder / "workspace").as_posix(), bytes=file.stat().st_size, sha256="0" * 64)
        for file in there
    ]
    return Submission(
        state="sealed",
        why="",
        digest="sha256:" + "0" * 64,
        files=(),
        faults=(),
        tensors=1,
        parameters=1,
        left=tuple(left),
    )


def quoted(word: str) -> str:
    """A word as a shell reads it back."""
    return "'" + word.replace("'", "'\\''") + "'"
