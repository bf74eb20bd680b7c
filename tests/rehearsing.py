"""Clients of the scripted provider, one for each wire and each as small as can be, and the provider in a thread."""

import asyncio
import contextlib
import http.client
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prill.rehearsal.scenario import read
from prill.rehearsal.server import Provider, serve

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
RESULT = "hello\n"


class Client:
    """Asks on one wire: what the model said before and its calls' results, as `turns` played already."""

    def __init__(self, wire: str, root: str) -> None:
        """`root`: where the provider listens."""
        self.wire, self.root = wire, root

    def request(self, turns: int, stream: bool, tools: bool = True) -> tuple[str, dict[str, Any]]:
        """Path and body."""
        return getattr(self, self.wire)(turns, stream, tools)

    def anthropic(self, turns: int, stream: bool, tools: bool) -> tuple[str, dict[str, Any]]:
        """Anthropic Messages."""
        said: list[Any] = [{"role": "user", "content": "Begin."}]
        for n in range(turns):
            said.append(
                {"role": "assistant", "content": [{"type": "tool_use", "id": f"{n}", "name": "Bash", "input": {}}]}
            )
            results = [{"type": "tool_result", "tool_use_id": f"{n}", "content": [{"type": "text", "text": RESULT}]}]
            said.append({"role": "user", "content": results})
        offered = [{"name": "Bash", "input_schema": SHELL}] if tools else []
        return "/v1/messages", {"model": "m", "max_tokens": 900, "stream": stream, "messages": said, "tools": offered}

    def responses(self, turns: int, stream: bool, tools: bool) -> tuple[str, dict[str, Any]]:
        """OpenAI Responses."""
        said: list[Any] = [{"type": "message", "role": "user", "content": "Begin."}]
        for n in range(turns):
            said.append({"type": "reasoning", "summary": []})
            said.append({"type": "function_call", "call_id": f"{n}", "name": "shell", "arguments": "{}"})
            said.append({"type": "function_call_output", "call_id": f"{n}", "output": RESULT})
        offered = [{"type": "function", "name": "shell", "parameters": SHELL}] if tools else []
        return "/v1/responses", {"model": "m", "stream": stream, "input": said, "tools": offered}

    def chat(self, turns: int, stream: bool, tools: bool) -> tuple[str, dict[str, Any]]:
        """OpenAI Chat Completions."""
        said: list[Any] = [{"role": "user", "content": "Begin."}]
        for n in range(turns):
            said += [
                {"role": "assistant", "tool_calls": []},
                {"role": "tool", "tool_call_id": f"{n}", "content": RESULT},
            ]
        offered = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}] if tools else []
        body = {"model": "m", "stream": stream, "messages": said, "tools": offered}
        return "/v1/chat/completions", body | ({"stream_options": {"include_usage": True}} if stream else {})

    def gemini(self, turns: int, stream: bool, tools: bool) -> tuple[str, dict[str, Any]]:
        """Gemini."""
        said: list[Any] = [{"role": "user", "parts": [{"text": "Begin."}]}]
        for _ in range(turns):
            said.append({"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {}}}]})
            answered = {"name": "run_shell_command", "response": {"output": RESULT}}
            said.append({"role": "user", "parts": [{"functionResponse": answered}]})
        declared = [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": SHELL}]}]
        how = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/m:{how}", {"contents": said, "tools": declared if tools else []}

    def ask(self, turns: int, stream: bool, tools: bool = True, **more: Any) -> tuple[int, bytes]:
        """Status and bytes of the reply; 0 and what came where the connection broke."""
        path, body = self.request(turns, stream, tools)
        return post(self.root + path, json.dumps(body | more).encode())

    def heard(self, turns: int, stream: bool, tools: bool = True) -> tuple[str, list[Any], dict[str, Any]]:
        """Text, calls and usage of a reply."""
        status, raw = self.ask(turns, stream, tools)
        assert status == 200, raw
        return HEARD[self.wire](events(raw) if stream else [json.loads(raw)])


def post(url: str, body: bytes, key: str = "the-key") -> tuple[int, bytes]:
    """Status and bytes of a reply; 0 and what came where the connection broke."""
    request = urllib.request.Request(url, body, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except http.client.IncompleteRead as error:
        return 0, error.partial
    except (ConnectionError, http.client.HTTPException, urllib.error.URLError):
        return 0, b""


def whole(raw: bytes) -> bool:
    """Whether it is a JSON object to its end."""
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(raw), dict)
    return False


def events(raw: bytes) -> list[Any]:
    """The objects of a stream of events."""
    lines = [line.removeprefix(b"data: ") for line in raw.splitlines() if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def heard_anthropic(objects: list[Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Of a message, or of its events put together."""
    if len(objects) == 1:
        blocks = objects[0]["content"]
        return (
            "".join(b.get("text", "") for b in blocks),
            [b["input"] for b in blocks if "input" in b],
            objects[0]["usage"],
        )
    text = "".join(e["delta"].get("text", "") for e in objects if e["type"] == "content_block_delta")
    parts = [e["delta"].get("partial_json", "") for e in objects if e["type"] == "content_block_delta"]
    usage = next(e["usage"] for e in objects if e["type"] == "message_delta")
    first = next(e["message"]["usage"] for e in objects if e["type"] == "message_start")
    assert {k: v for k, v in first.items() if k != "output_tokens"} == {
        k: v for k, v in usage.items() if k != "output_tokens"
    }
    return text, [json.loads("".join(parts))] if any(parts) else [], usage


def heard_responses(objects: list[Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Of a response, or of the last event, which holds it."""
    whole = objects[-1].get("response", objects[-1])
    if len(objects) > 1:
        said = "".join(e["delta"] for e in objects if e["type"] == "response.output_text.delta")
        assert said == "".join(c["text"] for i in whole["output"] if i["type"] == "message" for c in i["content"])
        assert [e["sequence_number"] for e in objects] == list(range(len(objects)))
    items = whole["output"]
    text = "".join(c["text"] for i in items if i["type"] == "message" for c in i["content"])
    return text, [json.loads(i["arguments"]) for i in items if i["type"] == "function_call"], whole["usage"]


def heard_chat(objects: list[Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Of a completion, or of its chunks put together."""
    parts = [c.get("message", c.get("delta")) for o in objects for c in o["choices"]]
    calls = [json.loads(c["function"]["arguments"]) for p in parts for c in p.get("tool_calls") or ()]
    return "".join(p.get("content") or "" for p in parts), calls, objects[-1]["usage"]


def heard_gemini(objects: list[Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """Of all bodies together; each tells the whole usage."""
    parts = [p for o in objects for p in o["candidates"][0]["content"]["parts"]]
    calls = [p["functionCall"]["args"] for p in parts if "functionCall" in p]
    assert objects[-1]["candidates"][0]["finishReason"] == "STOP"
    return "".join(p.get("text", "") for p in parts), calls, objects[-1]["usageMetadata"]


HEARD = {"anthropic": heard_anthropic, "responses": heard_responses, "chat": heard_chat, "gemini": heard_gemini}
USAGE = {
    "anthropic": {
        "input_tokens": 1200,
        "cache_read_input_tokens": 400,
        "cache_creation_input_tokens": 100,
        "output_tokens": 60,
    },
    "responses": {"input_tokens": 1700, "output_tokens": 60, "total_tokens": 1760},
    "chat": {"prompt_tokens": 1700, "completion_tokens": 60, "total_tokens": 1760},
    "gemini": {
        "promptTokenCount": 1700,
        "cachedContentTokenCount": 400,
        "candidatesTokenCount": 40,
        "thoughtsTokenCount": 20,
    },
}
WIRES = tuple(HEARD)


@contextlib.contextmanager
def served(scenario: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The provider in a thread of this process: where it listens, and the file of its truth."""
    truth, places, loop = folder / "truth.jsonl", queue.Queue[str](), asyncio.new_event_loop()
    serving = serve(Provider(read(scenario), truth), None, 0, places.put)
    task = loop.create_task(serving)
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait([task])))
    thread.start()
    try:
        yield places.get(timeout=20), truth
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
