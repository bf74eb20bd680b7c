"""The conformance suite of engines: what every `Engine` must do, as checks that anyone can run over theirs.

    @pytest.mark.parametrize(("name", "check"), engine_conformance(plugin, sandbox, good=folder, bad=folders))
    def test_my_engine(name, check): check()

`good` is a model folder that the engine serves, `bad` some that it cannot. Each check opens its own box and says its
truth in its docstring. Not covered: what a model answers, and speed.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prill import runtime
from prill.sockets import Box, Command, Endpoint, Engine, Mount, Need, NotServed, Sandbox
from prill.spec import BaseModel

MODEL = BaseModel(name="any", title="Any", architecture="any", parameters=0, digest="sha256:0", path="any", licence="")
CLIENT = """
import json, sys, urllib.error, urllib.request
url, body = sys.argv[1], sys.argv[2].encode()
request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
try:
    with urllib.request.urlopen(request, timeout=120) as answer:
        print(json.dumps([answer.status, json.load(answer)]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, None]))
except OSError as error:
    print(json.dumps([None, str(error)]))
"""


class Place:
    """A box with a model folder in it."""

    def __init__(self, box: Box, logs: Path) -> None:
        self.box, self.logs = box, logs

    def ask(self, endpoint: Endpoint, path: str, body: Mapping[str, Any]) -> tuple[int | None, Any]:
        """Status and answer of one request, sent from inside the box; no status where nobody listens."""
        sent = json.dumps({"model": endpoint.model, **body})
        command = Command(argv=("python3", "-c", CLIENT, f"{endpoint.url}/{path}", sent), cwd=self.box.path("/tmp"))
        said = self.logs / "asked.txt"
        ended = self.box.run(command, stdout=said, stderr=self.logs / "asked.err.txt", limit_seconds=180)
        assert ended.exit_code == 0, (self.logs / "asked.err.txt").read_text()
        status, answer = json.loads(said.read_bytes())
        return status, answer


class EngineChecks:
    """What every engine does: each method is a check."""

    def __init__(self, engine: Engine, sandbox: Sandbox, good: Path) -> None:
        self.engine, self.sandbox, self.good = engine, sandbox, good

    @contextmanager
    def place(self, folder: Path) -> Iterator[Place]:
        """A fresh box around a folder, as `measure` opens one."""
        with tempfile.TemporaryDirectory() as name:
            logs = Path(name)
            shown = (*runtime.folders(), runtime.package_root(), *self.engine.folders())
            need = Need(
                mounts=(Mount(source=folder, target="/model"),),
                runtime=tuple(dict.fromkeys(shown)),
                env={**runtime.environment(), "PYTHONPATH": str(runtime.package_root())},
            )
            with self.sandbox.open(need) as box:
                yield Place(box, logs)

    def answers_and_stops(self) -> None:
        """Once it is ready it answers chat and completions, each reply says why it ended, and afterwards nobody
        listens there any more."""
        with self.place(self.good) as place:
            with self.engine.serve("/model", MODEL, place.box, place.logs) as endpoint:
                assert endpoint.url.startswith("http") and endpoint.url.endswith("/v1")
                assert endpoint.settings["engine"]
                chat = {"messages": [{"role": "user", "content": "2 + 3"}], "max_tokens": 4, "temperature": 0}
                status, answer = place.ask(endpoint, "chat/completions", chat)
                assert status == 200, answer
                assert isinstance(answer["choices"][0]["message"]["content"], str)
                assert answer["choices"][0]["finish_reason"] in ("stop", "length")
                status, answer = place.ask(endpoint, "completions", {"prompt": "2 + 3", "max_tokens": 4})
                assert status == 200 and isinstance(answer["choices"][0]["text"], str), answer
            status, _ = place.ask(endpoint, "chat/completions", chat)
            assert status is None

    def stops_when_the_asking_fails(self) -> None:
        """An exception inside the context passes through it, and the server is gone."""
        with self.place(self.good) as place:
            try:
                with self.engine.serve("/model", MODEL, place.box, place.logs) as endpoint:
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
            assert place.ask(endpoint, "chat/completions", {"messages": []})[0] is None


def engine_conformance(
    engine: Engine, sandbox: Sandbox, *, good: Path, bad: Mapping[str, Path]
) -> list[tuple[str, Callable[[], None]]]:
    """The name and the check of everything that an engine must do."""
    checks = EngineChecks(engine, sandbox, good)

    def refuses(folder: Path) -> Callable[[], None]:
        def check() -> None:
            """A folder that cannot be served is `NotServed`, in words that say why, and nothing stays behind."""
            with checks.place(folder) as place:
                try:
                    with engine.serve("/model", MODEL, place.box, place.logs):
                        raise AssertionError(f"{folder.name} was served")
                except NotServed as error:
                    assert len(str(error)) > len("the server ended: "), error

        return check

    always = [("answers_and_stops", checks.answers_and_stops), ("stops_on_error", checks.stops_when_the_asking_fails)]
    return [*always, *((f"refuses_{name}", refuses(folder)) for name, folder in bad.items())]
