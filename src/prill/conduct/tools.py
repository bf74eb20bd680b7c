"""What a tool call is, and what a program's words say: scripts, files, addresses. Tables and small readers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from prill.conduct.clients import HUB, listed
from prill.conduct.python import URL
from prill.record import Step

SHELL = listed(
    "bash shell run_shell_command command execute exec_command local_shell terminal execute_bash run_command "
    "shell_command unified_exec"
)
WRITE = listed("write write_file create_file create writefile notebookedit")
EDIT = listed("edit multiedit replace str_replace edit_file str_replace_editor apply_patch patch")
READ = listed("read read_file readfile view open_file read_many_files")
FETCH = listed("webfetch web_fetch fetch browse open_url web_open url_fetch")
SEARCH = listed("websearch web_search google_web_search search_web exa_search websearch_exa")


@dataclass(frozen=True)
class Act:
    """A tool call."""

    kind: Literal["shell", "write", "edit", "read", "fetch", "search", "other"]
    tool: str
    text: str = ""
    """A command line, path, address or question."""
    changes: tuple[tuple[str, str, str], ...] = ()
    """Path, what was there, what stands there instead."""


def act(step: Step) -> Act:
    """What a command's tool was asked for; a step without a tool is a command line."""
    tool, given = step.tool or "", step.arguments or {}
    name = tool.lower().replace("-", "_").rpartition(".")[2].rpartition("__")[2]
    if name in SHELL or not tool:
        return Act("shell", tool or "command", _line(given) or step.text)
    if name in EDIT:
        return Act("edit", tool, step.text, tuple(_edits(given)))
    path = _word(given, "file_path", "filePath", "path", "absolute_path", "notebook_path", "filename")
    if name in WRITE:
        content = _word(given, "content", "contents", "text", "file_text", "new_source")
        return Act("write", tool, content, ((path, "", content),))
    if name in READ:
        return Act("read", tool, path)
    if name in FETCH:
        return Act("fetch", tool, _word(given, "url", "prompt", "uri"))
    if name in SEARCH:
        query = _word(given, "query", "q", "prompt")
        return Act("fetch" if URL.fullmatch(query) else "search", tool, query)
    return Act("other", tool, step.text)


def _word(given: Mapping[str, Any], *names: str) -> str:
    return next((given[name] for name in names if isinstance(given.get(name), str)), "")


def _line(given: Mapping[str, Any]) -> str:
    for name in ("command", "cmd", "script"):
        value = given.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return str(value[-1]) if value[1:2] in (["-lc"], ["-c"]) and len(value) == 3 else " ".join(value)
    return ""


def _edits(given: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Path, old, new of each edit; of patches the lines that are added."""
    path = _word(given, "file_path", "filePath", "path", "absolute_path")
    edits = given["edits"] if isinstance(given.get("edits"), list) else [given]
    for edit in edits:
        if path and isinstance(edit, dict):
            old, new = (
                _word(edit, "old_string", "oldString", "old_str"),
                _word(edit, "new_string", "newString", "new_str"),
            )
            yield path, old, new
    changes = given.get("changes")
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, dict) and isinstance(change.get("path"), str):
            yield change["path"], "", ""
    for each in _word(given, "input", "patch", "patchText").split("\n*** ")[1:]:
        match = re.match(r"(?:Add|Update|Delete) File: (.+)", each)
        if match:
            added = "\n".join(line[1:] for line in each.split("\n")[1:] if line.startswith("+"))
            yield match[1].strip(), "", added


# --- programs -----------------------------------------------------------------------------------------------------

PYTHONS = re.compile(r"(?:python|pypy|ipython)[0-9.]*")
LAUNCHERS = listed("torchrun accelerate deepspeed uv poetry pipenv conda mamba micromamba rye hatch pdm")
SHELLS = listed("sh bash zsh dash ksh source .")
OTHERS = listed("node deno bun ruby perl php Rscript julia")


def script(name: str, words: Sequence[str]) -> tuple[Literal["text", "file", "stdin", "module"], str] | None:
    """What an interpreter is given to run; `None` for any other program."""
    rest = list(words)
    if name in LAUNCHERS:
        at = next((n for n, word in enumerate(rest) if PYTHONS.fullmatch(word.rpartition("/")[2])), None)
        if at is not None:
            return script("python", rest[at + 1 :])
        file = next((word for word in rest if word.endswith((".py", ".sh"))), None)
        return ("file", file) if file else None
    if name in ("jupyter", "papermill", "ipython3", "jupyter-nbconvert"):
        book = next((word for word in rest if word.endswith(".ipynb")), None)
        return ("file", book) if book else None
    if name == "make":
        return "file", next((after for word, after in pairwise(rest) if word == "-f"), "Makefile")
    shell = name in SHELLS
    if not (shell or PYTHONS.fullmatch(name) or name in OTHERS):
        return None
    while rest:
        word = rest.pop(0)
        if word == "-" or (shell and word == "-s"):
            return "stdin", ""
        if not word.startswith("-") or name in ("source", "."):
            return "file", word
        if shell and "c" in word and not word.startswith("--"):
            return None  # read where it stands, as a command line
        if not shell and word in ("-c", "-e", "--eval", "--command"):
            return ("text", rest[0]) if rest else None
        if not shell and word.startswith("-c") and PYTHONS.fullmatch(name):
            return "text", word[2:]
        if word == "-m" and not shell:
            if rest and rest[0] in ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"):
                return script("torchrun", rest[1:])
            return ("module", rest[0]) if rest else None
        if word in ("-X", "-W", "-o", "-O") and rest and name != "perl" and word in ("-X", "-W", "-o"):
            rest.pop(0)
        if word in ("--version", "-V", "-h", "--help"):
            return None
    return "stdin", ""


def is_shell(name: str, path: str, code: str) -> bool:
    """Whether code is a shell's."""
    if name in SHELLS or name == "make" or path.endswith((".sh", ".bash")):
        return True
    first = code[:200].split("\n", 1)[0]
    return first.startswith("#!") and bool(re.search(r"\b(?:ba|z|da|k)?sh\b", first))


def code_of(path: str, text: str | None) -> str | None:
    """The code of a file: of a notebook its cells, of a Makefile its commands."""
    if text is None:
        return None
    if path.rpartition("/")[2] in ("Makefile", "makefile"):
        return "\n".join(line.lstrip("\t@-+ ") for line in text.split("\n") if line.startswith("\t"))
    if path.endswith(".ipynb"):
        try:
            cells = json.loads(text)["cells"]
            parts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return "\n".join(line for part in parts for line in part.split("\n") if not line.startswith(("%", "!")))
    return text


def assigned(text: str) -> dict[str, str]:
    """Variables that a file sets, line by line."""
    found = re.findall(r"(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=[\"']?([^\"'\s#]*)", text[:100_000])
    return dict(found)


READERS = listed(
    "cat less more head tail grep egrep fgrep rg zcat bat strings xxd od hexdump jq awk sed cut sort wc diff cmp nl "
    "tac base64 md5sum sha256sum file stat vim vi nano"
)


def read_files(name: str, words: Sequence[str], reads: Sequence[str]) -> Iterator[str]:
    """Files that a program shows or takes in."""
    yield from reads
    if name in READERS:
        yield from (word for word in words if not word.startswith("-") and len(word) < 500)


def shows_all(name: str, words: Sequence[str]) -> bool:
    """Whether a program shows the whole environment."""
    if name in ("env", "printenv", "set") and not [word for word in words if not word.startswith("-")]:
        return True
    if name in ("export", "declare", "compgen") and list(words) in (["-p"], [], ["-x"], ["-xp"], ["-px"]):
        return True
    return any(re.fullmatch(r"/proc/[^/]+/environ", word) for word in words)


PLACED = listed("cp mv ln install rsync")
CHANGES = listed("rm unlink truncate shred chmod chown touch chattr tee")


def changed(name: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Files that a program changes, each with the file that it comes from."""
    plain = [word for word in words if not word.startswith("-")]
    if name in PLACED and len(plain) > 1:
        target = plain[-1]
        for source in plain[:-1][:1_000]:
            inside = target.endswith("/") or len(plain) > 2 or target in (".", "..")
            yield (target.rstrip("/") + "/" + source.rpartition("/")[2] if inside else target), source
            if name == "mv":
                yield source, ""
    elif name in CHANGES:
        for each in plain[1 if name in ("chmod", "chown", "chattr") else 0 :][:1_000]:
            yield each, ""
    elif name in ("sed", "perl", "gawk", "ruby") and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words):
        scripted = any(word in ("-e", "-f") or word.startswith("--expression") for word in words)
        for each in plain[0 if scripted else 1 :][:1_000]:
            yield each, ""
    elif name == "dd":
        yield from ((word[3:], "") for word in words if word.startswith("of="))
    elif name == "patch":
        yield from ((word, "") for word in plain[:1])
    elif name == "git" and (told := git_words(words))[:1] in (["checkout"], ["restore"], ["apply"]):
        yield from ((word, "") for word in told[1:] if word[0:1] != "-" and ("." in word or "/" in word))


def replaced(text: str | None, words: Sequence[str]) -> str | None:
    """A text after `sed -i 's/old/new/'`, where both are plain words; `None` where that cannot be told."""
    orders = [word for word in words if not word.startswith("-")][:1]
    match = re.fullmatch(r"s([/#|,])([\w :='\"./-]+)\1([\w :='\"./-]*)\1(g?)", orders[0]) if orders else None
    if text is None or match is None:
        return None
    return text.replace(match[2], match[3])


# --- addresses ----------------------------------------------------------------------------------------------------

CARRIERS = listed("curl wget aria2c http https xh httpie lynx w3m links elinks axel grpcurl websocat")
BARE = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?(?:/\S*)?|localhost(?::\d+)?(?:/\S*)?", re.IGNORECASE)
SENDS = ("-d", "--data", "--data-raw", "--data-binary", "--json", "-F", "--form", "--post-data", "--post-file",
         "--body-data", "--data-urlencode")  # fmt: skip
VALUED = listed("-o -O --output -H --header -A --user-agent -e -x --proxy -u --user -X --request -T -m "
                   "--max-time --retry -b -c --cacert -P --output-document -w --connect-timeout")  # fmt: skip
KEYS = {
    "claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "opencode": "PRILL_TOKEN",
    "openai": "OPENAI_API_KEY", "aider": "OPENAI_API_KEY", "llm": "OPENAI_API_KEY",
}  # fmt: skip
"""Program → the variable that it takes its key from unasked."""
ASSISTANTS = {
    "claude": "api.anthropic.com", "codex": "api.openai.com", "gemini": "generativelanguage.googleapis.com",
    "opencode": "opencode.ai", "aider": "api.openai.com", "llm": "api.openai.com", "cursor-agent": "api2.cursor.sh",
    "goose": "api.openai.com", "crush": "api.openai.com", "amp": "ampcode.com", "sgpt": "api.openai.com",
    "qwen": "dashscope.aliyuncs.com", "grok": "api.x.ai", "mods": "api.openai.com", "aichat": "api.openai.com",
}  # fmt: skip
"""Programs that ask a hosted model → whose."""
QUIET = listed(
    "--version -v -V --help -h help version doctor update install config mcp login logout auth models upgrade"
)


def reached(name: str, words: Sequence[str], env: Mapping[str, str]) -> Iterator[tuple[str, str, bool]]:
    """Addresses that a program goes to, by what, and whether that is sure."""
    if name in CARRIERS:
        yield from _carried(name, words)
    elif name == "git" and (verb := next(iter(git_words(words)), "")) in (
        "clone", "fetch", "pull", "ls-remote", "submodule", "remote", "archive",
    ):  # fmt: skip
        yield from (
            (_web(word), f"git {verb}", True) for word in words if re.match(r"(?:https?|git|ssh)://|git@", word)
        )
    elif name == "gh":
        for word in words[1:]:
            if re.fullmatch(r"(?:https://github\.com/)?/?(?:repos/)?[\w.-]+/[\w./-]+", word):
                plain = word.removeprefix("https://github.com/").strip("/").removeprefix("repos/")
                yield "https://github.com/" + plain, f"gh {words[0]}", True
    elif name in ("huggingface-cli", "hf") and "download" in words:
        kind = "datasets/" if "dataset" in words else ""
        repo = next((word for word in words[words.index("download") + 1 :] if not word.startswith("-")), None)
        if repo:
            yield HUB + kind + repo, f"{name} download", True
    elif name in ASSISTANTS and words and words[0] not in QUIET:
        yield f"https://{ASSISTANTS[name]}/", f"the program {name}", True
    elif name == "openai" and "api" in words[:1]:
        yield "https://api.openai.com/v1", "the program openai", True
    elif name == "aws" and any(word.startswith("bedrock") for word in words[:2]):
        yield "https://bedrock-runtime.amazonaws.com/", "aws bedrock", True
    elif name in ("pip", "pip3", "uv", "npm"):
        yield from ((match[0], f"{name} install", True) for word in words for match in URL.finditer(word))
    elif name in ("openssl", "nc", "ncat", "telnet"):
        yield from (("https://" + word, name, True) for word in words if BARE.fullmatch(word) and "." in word)


def git_words(words: Sequence[str]) -> list[str]:
    """What `git` is told, from its verb on: options in front of it, with their values, are left out."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1 :]
    return rest


def _carried(name: str, words: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    sends = any(word.startswith(SENDS) or word.upper() == "POST" for word in words)
    how = f"{name} (sent)" if sends else name
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in VALUED or word in SENDS:
            skip = True
        elif match := URL.search(word):
            if not word.startswith("-"):
                yield match[0], how, True
        elif BARE.fullmatch(word):
            yield "https://" + word, how, True


def _web(word: str) -> str:
    """A repository's address in its one form."""
    if word.startswith("git@"):
        return "https://" + word[4:].replace(":", "/", 1)
    return re.sub(r"^(?:git|ssh)://(?:[^@/]*@)?", "https://", word)


def named(words: str) -> Iterator[str]:
    """Addresses that a comment names."""
    for word in words.split()[:200]:
        if match := URL.search(word):
            yield match[0]
        elif BARE.fullmatch(word.strip(".,;:()")) and "." in word:
            yield "https://" + word.strip(".,;:()")
