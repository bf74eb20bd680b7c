"""What a client asks and what it is answered, whatever the wire; how a scenario's calls become the client's tools."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from prill.outside import Wire
from prill.rehearsal.scenario import Call, Usage

SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "local_shell")
"""What clients call the tool that runs a command."""
SCRIPTS = "exec"
"""Codex's tool that runs JavaScript, from which its other tools are called; for models that it knows to be able to."""
WRITERS = ("Write", "write", "write_file")
PATHS = ("file_path", "filePath", "path")
CONTENTS = ("content", "contents", "text")
MILLISECONDS = ("timeout_ms", "timeout", "yield_time_ms")


class Asked(Struct, frozen=True, kw_only=True):
    """A request, as far as a scenario has to know it."""

    wire: Wire
    model: str
    stream: bool
    tools: Mapping[str, Any]
    """Name → JSON schema of its arguments."""
    heard: tuple[str, ...]
    """For each reply that the model has given before: the results of its calls, as text."""
    schema: Any = None
    """The JSON schema that the reply must keep to, if any."""
    most_output: Any = None
    """The most tokens that a reply may have, if the request names a number."""
    usage_wanted: bool = True
    """Whether a stream should tell its usage."""


class Made(Struct, frozen=True, kw_only=True):
    """A call of one of the client's tools."""

    id: str
    name: str
    arguments: dict[str, Any]
    script: str = ""
    """What a tool that takes plain text gets instead of arguments."""
    namespace: str | None = None


class Answer(Struct, frozen=True, kw_only=True):
    """A reply, whole."""

    number: int
    """Of the request; ids are made of it."""
    model: str
    text: str
    calls: tuple[Made, ...]
    usage: Usage

    def pieces(self) -> list[str]:
        """The text as it is streamed: a few words at a time."""
        return re.findall(r"(?:\s*\S+){1,4}\s*", self.text) or ([self.text] if self.text else [])


def runs(turns: Sequence[tuple[bool, str]]) -> tuple[str, ...]:
    """`Asked.heard` of a conversation's pieces: whether the model made it, and the result of a call that it holds."""
    heard: list[list[str]] = []
    before = False
    for ours, result in turns:
        if ours and not before:
            heard.append([])
        elif not ours and heard and result:
            heard[-1].append(result)
        before = ours
    return tuple("\n".join(results) for results in heard)


def text_of(value: Any) -> str:
    """All text in a piece of JSON, however deep it lies."""
    if isinstance(value, str):
        return value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return "\n".join(filter(None, map(text_of, inner)))


def made(call: Call, tools: Mapping[str, Any], id: str, again: int = 0) -> Made | None:
    """A scenario's call, played `again` in vain before, in the client's own tools; `None` if it has none that fits."""
    if call.tool == "write":
        name = next((name for name in WRITERS if name in tools), None)
        if name is not None:
            known = fields(tools[name])
            given = {next((n for n in PATHS if n in known), PATHS[0]): call.path}
            return Made(
                id=id, name=name, arguments={**given, next((n for n in CONTENTS if n in known), "content"): call.text}
            )
    name = next((name for name in (*SHELLS, SCRIPTS) if name in tools), None)
    if name is None:
        return None
    command = call.command if call.tool == "shell" else f"printf %s {shlex.quote(call.text)} > {shlex.quote(call.path)}"
    command += f"  # look {again + 1}" if again else ""
    if name == SCRIPTS:
        how = msgspec.json.encode({"cmd": command, "yield_time_ms": int(call.seconds * 1000)}).decode()
        script = f"text(await tools.exec_command({how}));"
        return Made(id=id, name=name, arguments={}, script=script, namespace=tools[name].get("namespace"))
    known = fields(tools[name])
    arguments: dict[str, Any] = {"cmd" if "cmd" in known else "command": command}
    if known.get("command", {}).get("type") == "array":
        arguments["command"] = ["bash", "-lc", command]
    if "description" in known:
        arguments["description"] = command.strip().splitlines()[0][:60] if command.strip() else "Nothing"
    time = next((n for n in MILLISECONDS if n in known), None)
    if time is not None:
        arguments[time] = int(call.seconds * 1000)
    return Made(id=id, name=name, arguments=arguments)


def fields(schema: Any) -> dict[str, Any]:
    """Name → schema of the fields of an object's schema."""
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    return {str(n): f if isinstance(f, dict) else {} for n, f in known.items()} if isinstance(known, Mapping) else {}


def sample(schema: Any, deep: int = 8) -> Any:
    """A small value that keeps to a JSON schema, as far as types, choices and required fields go."""
    if not isinstance(schema, Mapping) or not deep:
        return None
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(choice), list) and schema[choice]:
            return sample(schema[choice][0], deep - 1)
    kind = schema.get("type")
    kind = str(kind[0] if isinstance(kind, list) and kind else kind).lower()
    if kind == "object":
        known = fields(schema)
        return {name: sample(known[name], deep - 1) for name in schema.get("required", known) if name in known}
    return {"string": "rehearsal", "number": 0, "integer": 0, "boolean": False, "array": []}.get(kind)
