"""The cache of agents' programs: whole or not there, the pinned version or none; a small program plays npm."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prill import npm
from prill.errors import DefinitionError, InfraError

NPM = """#!/bin/sh
# Plays `npm install … PACKAGE@VERSION`: a package with a stub, and its native program in an optional dependency.
echo "$@" >> {log}
test -n "$FAIL" && echo "npm error 404 no such package" >&2 && exit 1
mkdir -p node_modules/.bin node_modules/tool/bin node_modules/tool-native/bin
printf '{{"version": "%s", "bin": {{"tool": "bin/stub"}}, "optionalDependencies": {{"tool-native": "1.0.0"}},' \\
  "$VERSION" > node_modules/tool/package.json
echo '"scripts": {{"postinstall": "exit 9"}}}}' >> node_modules/tool/package.json
echo '{{"packages": {{"": {{}}, "node_modules/tool": {{"integrity": "sha512-abc"}},' > package-lock.json
echo '"node_modules/other-cpu": {{}}}}}}' >> package-lock.json
echo 'exit 9' > node_modules/tool/bin/stub
ln -s ../tool/bin/stub node_modules/.bin/tool
chmod +x node_modules/tool/bin/stub
test -n "$NATIVE" || exit 0
printf '#!/bin/sh\\necho native' > node_modules/tool-native/bin/tool
chmod +x node_modules/tool-native/bin/tool
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and an npm that keeps what it was asked."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in {"npm": NPM.format(log=tmp_path / "asked"), "node": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PRILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VERSION", "1.2.3")
    monkeypatch.setenv("NATIVE", "yes")
    return tmp_path / "asked"


def test_what_is_pinned_is_installed_once(log: Path) -> None:
    """A version is fetched once, without scripts; its stub gives way to the native program; its digest is kept."""
    told: list[str] = []
    first = npm.install("tool", "1.2.3", told.append)
    assert first == npm.install("tool", "1.2.3", told.append) == npm.installed("tool", "1.2.3")
    assert first.integrity == {"tool": "sha512-abc"} and first.commands == ("tool",)
    assert len(told) == 2 and len(log.read_text().splitlines()) == 1
    assert "--ignore-scripts" in log.read_text() and "tool@1.2.3" in log.read_text()
    command = npm.folder("tool", "1.2.3") / npm.COMMANDS / "tool"
    assert subprocess.run([command], capture_output=True).stdout == b"native\n"
    assert not command.readlink().is_absolute(), "the folder can be shown at another place"
    assert npm.version("tool", "1.2.3") == "1.2.3"


def test_several_at_once_install_once(log: Path) -> None:
    """Processes that want the same version wait for the one that fetches it."""
    code = "from prill import npm; print(npm.install('tool', '1.2.3').version)"
    with ThreadPoolExecutor(3) as threads:
        runs = [threads.submit(subprocess.run, [sys.executable, "-c", code], capture_output=True) for _ in range(3)]
        assert [run.result().stdout for run in runs] == [b"1.2.3\n"] * 3
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("FAIL", "yes", "npm install tool@1.2.3: npm error 404 no such package"),
        ("VERSION", "1.2.4", "npm brought version 1.2.4"),
        ("NATIVE", "", "its command tool is no program on this machine"),
    ],
)
def test_a_failed_install_leaves_nothing(
    log: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    """What npm cannot bring, another version, or a stub alone: an error in words, and nothing in the cache."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(InfraError, match=words):
        npm.install("tool", "1.2.3")
    assert npm.installed("tool", "1.2.3") is None
    assert [file.name for file in npm.place("tool", "1.2.3").parent.iterdir() if file.is_dir()] == []


def test_what_is_not_there_says_what_to_do(log: Path) -> None:
    """A folder that is not installed is an error that names the command that installs it."""
    with pytest.raises(InfraError, match="`prill agents install`"):
        npm.folder("tool", "1.2.3")


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("tool", "latest"),
        ("tool", "^1.2.3"),
        ("../x", "1.0.0"),
        ("a/b", "1.0.0"),
        ("tool", "1.0.0/.."),
        ("", "1.0.0"),
    ],
)
def test_only_exact_versions_are_names(package: str, version: str) -> None:
    """What is no exact version of a package is refused before anything is done with it."""
    with pytest.raises(DefinitionError, match="not an exact version"):
        npm.place(package, version)


def test_without_npm_it_says_so(log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no npm, or no node, the error says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match="npm is not on the PATH; install Node"):
        npm.install("tool", "1.2.3")
    with pytest.raises(InfraError, match="node is not on the PATH; install Node"):
        npm.runtime_folders()


def test_node_outside_usr_is_shown_to_the_box(log: Path, tmp_path: Path) -> None:
    """Where node lives outside /usr, a box needs the folder above its `bin`, and the commands have node beside them."""
    assert npm.runtime_folders() == (tmp_path,)
    npm.install("tool", "1.2.3")
    assert (npm.folder("tool", "1.2.3") / npm.COMMANDS / "node").readlink() == tmp_path / "programs" / "node"


def test_a_broken_record_is_no_installation(log: Path) -> None:
    """A folder whose record cannot be read is made again."""
    npm.install("tool", "1.2.3")
    (npm.place("tool", "1.2.3") / npm.RECORD).write_text("{")
    assert npm.installed("tool", "1.2.3") is None
    assert npm.install("tool", "1.2.3").version == "1.2.3"


# --- what can be typed -----------------------------------------------------------------------------------------------


def prill(*words: str) -> subprocess.CompletedProcess[str]:
    """One command, as a person would give it."""
    return subprocess.run([sys.executable, "-m", "prill.cli", *words], capture_output=True, text=True)


def test_agents_are_listed_with_their_versions(log: Path) -> None:
    """Each version that an entrant pins is listed with its entrants and whether it is there."""
    done = prill("agents", "list")
    assert done.returncode == 0, done.stderr
    assert "scripted: needs no package\n" in done.stdout
    codex = next(line for line in done.stdout.splitlines() if line.startswith("codex: @openai/codex@"))
    assert ", not installed; " in codex and "rehearsal-codex" in codex


def test_an_unknown_agent_is_told(log: Path) -> None:
    """An agent that does not exist is refused with those that do, and nothing is fetched."""
    done = prill("agents", "install", "codx")
    assert done.returncode == 2 and "no agent named 'codx'; did you mean 'codex'?" in done.stderr
    assert not log.exists()


def test_a_scenario_is_played_by_hand(tmp_path: Path) -> None:
    """`prill provider` plays an asset of the catalog on a port until it is ended, and wants one place only."""
    argv = [sys.executable, "-m", "prill.cli", "provider", "scenarios/hello.toml"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("ready http://127.0.0.1:")
        program.terminate()
        assert program.wait() == 0
    done = prill("provider", "scenarios/hello.toml", "--port", "1", "--socket", str(tmp_path / "s"))
    assert done.returncode == 2 and "not both" in done.stderr
