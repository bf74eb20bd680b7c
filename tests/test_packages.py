"""Packages whose `serve.sh` behaves or does not, in real boxes: each outcome by name, and nothing left running."""

import dataclasses
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from prill import contract, hosting, sitting, submitted
from prill.calibration.scene import Scene
from prill.catalog import Catalog
from prill.check import faults
from prill.engines import package as engine
from prill.errors import InfraError
from prill.folder import RunFolder
from prill.gates import SelfCheck
from prill.hosting import Subject, control, served, to_serve
from prill.judges.inference import plugin
from prill.processes import everyone
from prill.record import Finding, Measurement
from prill.sandboxes import bubblewrap
from prill.selfcheck import Wanted, check
from prill.smoke.entrants import honest_package, package_swapper
from prill.sockets import NotServed
from prill.stages import measure
from prill.testing.engines import engine_conformance

try:
    with bubblewrap.plugin.open(bubblewrap.Need()):
        NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

needs_box = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)
ITEMS = 6
SERVER = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW = sys.argv[1:]


class Handler(BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        known = {"/health": 503 if "ill" in HOW else 200, "/v1/models": 200}
        self.say(known.get(self.path, 404), {"data": [{"id": "the-package"}]})

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.asked += 1
        if "hang" in HOW:
            time.sleep(600)
        if "slow" in HOW and Handler.asked > 1:
            open(os.environ["TMPDIR"] + "/asked", "w").close()
            time.sleep(60)
        if "once" in HOW and Handler.asked > 1:
            os._exit(1)
        text = f"{said['model']} #### 5"
        chat = self.path == "/v1/chat/completions"
        words = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        self.say(200, {"choices": [{"finish_reason": "stop", **words}]})

    def say(self, status, told):
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


Server((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
"""
GOOD = "exec python3 server.py"
BAD = {
    "nothing to start": (None, "serve.sh: No such file"),
    "dies at once": ("echo 'RuntimeError: no such shard' >&2\nexit 3", "RuntimeError: no such shard"),
    "calls out": (
        "python3 -c 'import urllib.request as u; u.urlopen(\"https://example.org\", timeout=5)' || exit 1\n" + GOOD,
        "URLError",
    ),
    "never healthy": (GOOD + " ill", "its health page answers 503"),
    "healthy and mute": (GOOD + " hang", "does not answer it within"),
    "silent": ("exec sleep 600", "refused"),
    "ends beside its server": ("python3 server.py >&2 & ", "must last as long as its server"),
    "writes into the package": ("touch x || exit 1\n" + GOOD, "Read-only file system"),
}


def packed(folder: Path, start: str | None = GOOD) -> Path:
    """A package with that `serve.sh`; its model is the smoke world's base."""
    package = folder / "package"
    shutil.copytree(Catalog().asset("smoke/base"), package / "model")
    (package / "train").mkdir()
    (package / "train" / "README.md").write_text("Nothing was trained.")
    (package / "server.py").write_text(SERVER)
    if start is not None:
        (package / "serve.sh").write_text(start + "\n")
    return package


def subject(package: Path, folder: Path, name: str = "package") -> Subject:
    """The package as something to measure."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return Subject(package, None, Catalog().model("smoke-base"), name, "bubblewrap", scratch, limit=ITEMS)


def word_problems(made: Subject, seconds: float = 5.0) -> sitting.Test:
    """A few word problems, with little patience."""
    catalog = Catalog()
    return sitting.test_of(catalog, replace(catalog.benchmark("word-problems"), request_seconds=seconds), made)


def measured(made: Subject, seconds: float = 5.0) -> Measurement:
    """Word problems put to the package."""
    kept: list[Measurement] = []
    sitting.put(made, [word_problems(made, seconds)], lambda record, _: kept.append(record))
    return kept[0]


def living(word: str) -> list[int]:
    """Processes of this machine whose command line has a word."""
    found = []
    for pid in everyone():
        try:
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


# --- without a box -------------------------------------------------------------------------------------------


def test_the_weights_of_a_package_lie_in_its_model_folder(tmp_path: Path) -> None:
    """An engine that starts the package's server gets all of it, any other its weights."""
    assert to_serve("package", tmp_path, "served") == tmp_path
    assert to_serve("transformers", tmp_path, "served") == tmp_path / "model"
    assert to_serve("transformers", tmp_path, "weights") == tmp_path


@pytest.mark.parametrize(
    ("gone", "codes"),
    [
        ("serve.sh", {"START_MISSING": "fatal"}),
        ("model", {"MODEL_MISSING": "fatal"}),
        ("train", {"TRAIN_MISSING": "warning"}),
    ],
)
def test_what_a_package_lacks_has_a_code(gone: str, codes: dict[str, str], tmp_path: Path) -> None:
    """Each part that is not there is one fault; a link in place of `serve.sh` is none; weights alone lack nothing."""
    package = packed(tmp_path)
    assert list(submitted.faults(package, "served")) == []
    shutil.move(package / gone, tmp_path / "gone")
    if gone == "serve.sh":
        (package / gone).symlink_to(tmp_path / "gone")
    assert {each.code: each.severity for each in submitted.faults(package, "served")} == codes
    assert list(submitted.faults(package, "weights")) == []
    assert submitted.guessed(package) == ("weights" if gone == "serve.sh" else "served")


def test_a_suite_of_weights_cannot_name_the_engine_of_packages(tmp_path: Path) -> None:
    """`prill check` says what goes together, and finds nothing wrong with the suites that are shipped."""
    text = Path(str(Catalog().asset("definitions/suites/wallet-smoke.toml"))).read_text()
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "odd.toml").write_text(
        text.replace('submission = "served"', "").replace('"wallet-smoke"', '"odd"')
    )
    assert [line for line in faults([tmp_path]) if "odd" in line] == [
        'suites/odd: engine package starts the server of a package; say `submission = "served"`'
    ]


def test_nothing_is_claimed_of_how_a_package_decodes(tmp_path: Path) -> None:
    """The contract of a package names no template and no stop token: its own server does as it likes."""
    made = subject(packed(tmp_path), tmp_path)
    settled = word_problems(made).contract
    assert (settled.template, settled.stop_ids, settled.context, settled.faults) == (None, (), None, ())
    assert "not known" in settled.ignored[0]
    assert contract.UNCERTAIN_SERVERS[-1] == "package"


# --- served --------------------------------------------------------------------------------------------------


@needs_box
@pytest.mark.parametrize("name", ["answers_and_stops", "stops_on_error", "refuses_empty"])
def test_the_engine_of_packages_is_an_engine(name: str, tmp_path: Path) -> None:
    """It does all that an engine must."""
    (tmp_path / "empty").mkdir()
    checks = engine_conformance(
        engine.plugin, bubblewrap.plugin, good=packed(tmp_path), bad={"empty": tmp_path / "empty"}
    )
    dict(checks)[name]()


@needs_box
@pytest.mark.parametrize(("start", "words"), BAD.values(), ids=BAD)
def test_a_package_that_does_not_serve_says_why(
    start: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever keeps a package from answering is `NotServed` in its server's last words, within its time."""
    monkeypatch.setattr(engine.plugin, "start_seconds", 4.0)
    with pytest.raises(NotServed, match=words), served(subject(packed(tmp_path, start), tmp_path), None):
        raise AssertionError("it was served")


@needs_box
def test_a_package_is_asked_through_the_tunnel_alone(tmp_path: Path) -> None:
    """Every item gets the package's answer, under the name that it lists; its server sees no item, no file of prill's
    small world, no network and no place on the disk to write to; a child of it that is deaf to signals ends with it."""
    word = f"marked-{tmp_path.name}"
    spy = f"(setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done # {word}' >/dev/null 2>&1 &)\n"
    spy += """
for place in /out /items /evidence; do test ! -e $place || exit 11; done
for place in /door/x /model/x /usr/x; do ! touch $place 2>/dev/null || exit 12; done
python3 - <<'END' || exit 13
import os, sys
sys.path.insert(0, "PLACE")
import prill, pathlib
assert not list(pathlib.Path(prill.__file__).with_name("smoke").glob("*.jsonl"))
END
test "$(ls /sys/class/net 2>/dev/null | tr -d '\\n')" = lo || test ! -e /sys/class/net || exit 14
touch $HOME/x $TMPDIR/x || exit 15
"""
    root = str(Path(hosting.__file__).parents[1])
    made = measured(subject(packed(tmp_path, spy.replace("PLACE", root) + GOOD), tmp_path))
    assert made.stops == {"stop": ITEMS} and made.isolated
    assert {item.answer for item in made.items} == {"5"}
    assert made.settings["engine"] == "package"
    assert not living(word)


@needs_box
def test_a_package_that_fills_its_disk_fills_memory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it can write to has an end, in memory that goes with the box; then it is its server that fails."""
    monkeypatch.setattr(hosting, "MEMORY_SHARE", (256 << 20) / hosting.memory())
    start = "dd if=/dev/zero of=$TMPDIR/x bs=1M 2>&1 || exit 1\n" + GOOD
    with (
        pytest.raises(NotServed, match=r"out of memory|No space"),
        served(subject(packed(tmp_path, start), tmp_path), None),
    ):
        raise AssertionError("it was served")


@needs_box
@pytest.mark.slow
def test_what_a_package_spoils_counts_as_wrong(tmp_path: Path) -> None:
    """Once it was ready, a server that kills all that it can leaves answers that earn nothing, and no error."""
    killer = "(until test -e $TMPDIR/asked; do sleep 0.1; done; sleep 1; kill -9 -1) &\n"
    made = measured(subject(packed(tmp_path, killer + GOOD + " slow"), tmp_path), seconds=15.0)
    assert (made.state, made.n, made.value) == ("measured", ITEMS, 0.0)
    assert set(made.stops) <= {"server", "timeout"}


@needs_box
def test_a_package_that_uses_up_all_processes_is_to_blame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its box starts nothing more, the package was not served; the machine is asked by serving the base."""
    monkeypatch.setattr(engine.plugin, "start_seconds", 6.0)
    monkeypatch.setattr(hosting, "PROCESSES", 64)
    start = "for i in $(seq 200); do sleep 60 & done 2>/dev/null\n" + GOOD
    with pytest.raises(NotServed), served(subject(packed(tmp_path, start), tmp_path), None):
        raise AssertionError("it was served")
    assert not living(str(tmp_path))


@needs_box
def test_where_the_base_is_not_served_either_nobody_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control serves the base by an engine of ours; if that fails too, it is an error of the machine's."""
    monkeypatch.setattr(engine.Package, "control", "canned")
    made = subject(packed(tmp_path), tmp_path)
    with pytest.raises(InfraError, match=r"no such shard.*engine canned does not serve the base model either"):
        control(made, Catalog().asset("smoke/base"), word_problems(made).benchmark, "no such shard")


@needs_box
def test_what_is_not_served_where_the_base_is_has_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage writes that the submission is unloadable, in its server's last words: that is the agent's fault."""
    monkeypatch.setattr(engine.Package, "control", "canned")
    base = tmp_path / "base"
    shutil.copytree(Catalog().asset("smoke/base"), base)
    (base / "canned.json").write_text('{"replies": [{"text": "5"}]}')
    made = subject(packed(tmp_path, BAD["dies at once"][0]), tmp_path)
    (tmp_path / "run").mkdir()
    run = RunFolder(tmp_path / "run", durable=False)
    measure.put_what_can_be(run, made, dataclasses.replace(made, folder=base), [word_problems(made)])
    written = run.measurement("word-problems")
    assert written is not None and (written.state, written.value) == ("unloadable", None)
    assert "though it serves the base: the server ended: RuntimeError: no such shard" in written.why


# --- the self-check ------------------------------------------------------------------------------------------


def checked(folder: Path, start: str) -> SelfCheck:
    """The self-check of a package."""
    catalog = Catalog()
    scratch = folder / "checking"
    scratch.mkdir()
    benchmark = replace(catalog.benchmark("word-problems"), request_seconds=5.0)
    wanted = Wanted(catalog.model("smoke-base"), (benchmark,), "package", "bubblewrap", ITEMS, "served")
    return check(packed(folder, start), wanted, catalog, scratch)


@needs_box
@pytest.mark.slow
def test_the_self_check_sees_the_package(tmp_path: Path) -> None:
    """Files, weights in `model/`, start-up against 300 s and replies each have their gate."""
    made = checked(tmp_path, GOOD)
    gates = {gate.name: gate for gate in made.gates}
    assert {gate.state for gate in made.gates} == {"green"}, gates
    assert gates["startup"].limit == 300.0
    assert made.settings["engine"] == "package"


@needs_box
@pytest.mark.slow
def test_the_self_check_tells_a_server_that_fails(tmp_path: Path) -> None:
    """A server that dies once it was ready leaves requests without a reply, and is not healthy after."""
    made = checked(tmp_path, GOOD + " once")
    states = {gate.name: gate.state for gate in made.gates}
    assert states["startup"] == "green" and states["answered"] == states["healthy_after"] == "red"
    assert made.status == "failed"


# --- the entrants of the suite ---------------------------------------------------------------------------------


def judged(folder: Path, entrant: str) -> Finding:
    """What judge `inference` says of the package that a shipped entrant leaves."""
    scene = Scene(folder / "run", random.Random(0), benchmark="math-500")
    hub, package = folder / "hub", folder / "run" / "submission"
    for name in ("base", "instruct"):
        shutil.copytree(Catalog().asset(f"smoke/{name}"), hub / f"smoke-{name}")
    env = {"PRILL_HUB": str(hub), "PRILL_BASE_MODEL": str(hub / "smoke-base"), "PRILL_SUBMISSION": str(package)}
    program = Path(package_swapper.__file__).with_name(f"{entrant}.py")
    subprocess.run([sys.executable, str(program)], input=b"Go.", env=env, check=True)
    [found] = plugin(scene.evidence())
    return found


def test_the_swapper_is_found_by_its_own_words(tmp_path: Path) -> None:
    """Weights that are served from beside `model/` break the rule, and the line that names them is cited."""
    found = judged(tmp_path, "package_swapper")
    assert (found.verdict, found.citations[0].file) == ("broken", "submission/serve.sh")
    assert "./cache" in str(found.citations[0].quote)


@needs_box
@pytest.mark.slow
def test_a_package_scores_as_its_weights_do(tmp_path: Path) -> None:
    """The shipped entrant's server gives good weights the marks that the engine `transformers` gives them."""
    package = tmp_path / "package"
    shutil.copytree(Catalog().asset("smoke/instruct"), package / "model")
    honest_package.pack(package, Catalog().asset("smoke/train.jsonl"))
    marks = {}
    for name in ("package", "transformers"):
        made = subject(to_serve(name, package, "served"), tmp_path, name)
        kept: list[Measurement] = []
        test = word_problems(made, seconds=120.0)
        hard = tuple(Catalog().items(Catalog().benchmark("word-problems"))[140:170])
        sitting.put(made, [dataclasses.replace(test, items=hard)], lambda record, _, kept=kept: kept.append(record))
        marks[name] = [mark.robust for mark in kept[0].items]
    assert sum(marks["package"]) >= 15
    differ = sum(one != other for one, other in zip(marks["package"], marks["transformers"], strict=True))
    assert differ <= 2, marks
