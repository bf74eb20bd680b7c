"""A Python program's text → what it would reach, write, run and read if it is run. Parsed, never executed.

Texts are followed through names, defaults, sums, formats and base64, as far as they are written out.
Not covered: what is computed, decrypted or fetched; code that is built and passed to `exec` (it is marked as unread).
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prill.conduct.clients import (
    ASKING,
    CLIENTS,
    DIRECT,
    HUB,
    KEYS,
    LOCAL_MODELS,
    MAKERS,
    MODELS,
    MOVERS,
    NETWORK,
    SERVERS,
    SHELLS,
    TAKERS,
    WEB,
    WRITERS,
)
from prill.conduct.names import ENVIRON, Names

LONGEST = 1_000_000
KEYWORDS = frozenset(("api_key", "openai_api_key", "anthropic_api_key", "token"))
"""By which a client is given a key."""
URL = re.compile(r"https?://[^\s\"'`<>\\{}|^\x00-\x20)\]]{3,2000}")
COMMENTS = re.compile(r"(?m)(?:^|(?<=\s))#.*$")


RUNS = ("exec", "eval", "runpy.run_path", "runpy.run_module", "importlib.import_module", "__import__")
"""What starts code that stands elsewhere."""
SHOWS = ("print", "logging.info", "logger.info", "log", "print_exc", "warnings.warn")


@dataclass
class Text:
    """What a program's text says that it does."""

    reaches: list[tuple[str, str, bool, int, frozenset[str]]] = field(default_factory=list)
    """Address, by what, whether that is sure, the line, and the variables whose values go there."""
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    shells: list[str] = field(default_factory=list)
    """Command lines that it runs."""
    names: set[str] = field(default_factory=set)
    """Variables of the environment whose values it takes."""
    imports: set[str] = field(default_factory=set)
    dumps: bool = False
    """Whether it takes all of the environment."""
    unread: str = ""
    """Why a part of it is not known."""


def read(code: str, env: Mapping[str, str] | None = None, words: tuple[str, ...] = ()) -> Text:
    """What a program says. `env`: variables that are set for it; `words`: its arguments. Total."""
    try:
        tree = ast.parse(code[:LONGEST])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return guessed(code)
    return _Reader(tree, env or {}, words).text


def guessed(code: str) -> Text:
    """What a text that is no Python seems to say; none of it is sure."""
    bare = COMMENTS.sub("", code[:LONGEST])
    found = Text(unread="it is not Python that can be parsed")
    for match in URL.finditer(bare):
        found.reaches.append((match[0], "an address in its text", False, 0, frozenset()))
    for name, (url, _) in CLIENTS.items():
        if re.search(rf"(?m)^\s*(?:from|import)\s+{re.escape(name)}\b", bare):
            found.reaches.append((url, name, False, 0, frozenset()))
    return found


class _Reader(Names):
    """One pass over a syntax tree."""

    def __init__(self, tree: ast.Module, env: Mapping[str, str], words: tuple[str, ...]) -> None:
        super().__init__(env)
        self.text = Text(imports=self.imports)
        self.given = [match[0] for word in words for match in URL.finditer(word)]
        nodes = list(ast.walk(tree))
        for node in nodes:
            self.bind(node)
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.asks = any(self.dotted(call.func).rpartition(".")[2] in ASKING for call in calls)
        self.urls = [match[0] for each in self.texts(tree, nodes) for match in URL.finditer(each)]
        for node in nodes:
            self.environment(node)
        for call in calls:
            self.call(call)
        self.bare(nodes, calls)
        self.text.names -= {"", *self.env}

    def texts(self, tree: ast.Module, nodes: list[ast.AST]) -> Iterator[str]:
        """Texts of the program that are no documentation."""
        bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
                yield node.value[:5_000]

    def bare(self, nodes: list[ast.AST], calls: list[ast.Call]) -> None:
        """Addresses that stand in the program as texts of their own and go no way that is understood."""
        shown = {id(each) for call in calls if self.dotted(call.func) in SHOWS for each in ast.walk(call)}
        gone = {url for url, *_ in self.text.reaches}
        for node in nodes:
            value = node.value if isinstance(node, ast.Constant) and id(node) not in shown else None
            if not isinstance(value, str) or not URL.fullmatch(value) or any(url.startswith(value) for url in gone):
                continue
            self.add(value, "an address in its text", False, node)

    # --- what is done ---

    def environment(self, node: ast.AST) -> None:
        """Variables that are taken."""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if ENVIRON.fullmatch(self.dotted(node.value)) and (name := self.fold(node.slice)):
                self.text.names.add(name)
        elif isinstance(node, ast.Call):
            name = self.dotted(node.func)
            if name.endswith(("environ.get", "getenv", "environ.pop")) and node.args:
                self.text.names.add(self.fold(node.args[0]) or "")
            elif name in ("print", "dict", "json.dumps", "json.dump", "pprint.pprint", "sorted", "str") and node.args:
                inner = node.args[0]
                whole = inner if not isinstance(inner, ast.Call) else (inner.args or [inner.func])[0]
                self.text.dumps |= self.dotted(whole) in ("os.environ", "environ", "os.environ.items")

    def call(self, node: ast.Call) -> None:
        """One call: to a model's client, over the net, to a shell, to a file."""
        name = self.dotted(node.func)
        last = name.rpartition(".")[2]
        words = {word.arg: word.value for word in node.keywords if word.arg}
        if self.client(node, name, last, words) or self.shell(node, name):
            return
        if last in TAKERS and (place := self.taken(node, words)) is not None:
            kind = "datasets/" if self.fold(words.get("repo_type", node.func)) == "dataset" else TAKERS[last]
            split = self.fold(words["split"]) if "split" in words else None
            self.add(HUB + kind + place, last + (f" split {split}" if split else ""), True, node)
        elif last in NETWORK:
            self.network(node, name, last, words)
        elif last == "open" or last in WRITERS or name in MOVERS:
            self.file(node, name, last, words)
        elif name in RUNS and node.args:
            self.started(node.args[0])

    def started(self, given: ast.expr) -> None:
        """Code that is started from a file, a module or a text; a file of the agent's own is read like an import."""
        opened = next((each for each in ast.walk(given) if isinstance(each, ast.Call) and each.args), None)
        text = self.fold(opened.args[0] if opened is not None else given)
        if text and re.fullmatch(r"[\w./-]+", text):
            self.imports.add(text.removesuffix(".py").replace("/", "."))
        elif not isinstance(given, ast.Constant):
            self.text.unread = "it runs code that it makes itself"

    def taken(self, node: ast.Call, words: Mapping[str, ast.expr]) -> str | None:
        """The repository that is taken from the hub; `None` for a folder."""
        values = [
            words[name] for name in ("repo_id", "path", "model", "pretrained_model_name_or_path") if name in words
        ]
        for value in [*node.args[:2], *values]:
            text = self.fold(value)
            if text and re.fullmatch(r"[\w.-]+/[\w.-]+|openai_humaneval|gsm8k|mbpp", text) and not text.startswith("."):
                return text
        return None

    def client(self, node: ast.Call, name: str, last: str, words: Mapping[str, ast.expr]) -> bool:
        """A client of a model provider, and where it goes."""
        if name.endswith("client") and "boto3" in name:
            if "bedrock" in (self.fold(node.args[0]) or "" if node.args else ""):
                self.add("https://bedrock-runtime.amazonaws.com/model", "boto3", self.asks, node)
            return True
        if "huggingface_hub" in name and last in ("InferenceClient", "AsyncInferenceClient"):
            at = self.server(node, words)
            self.add(at or "https://router.huggingface.co/v1/chat/completions", name, at is not None or self.asks, node)
            return True
        module = next((each for each in sorted(CLIENTS, key=len, reverse=True) if name.startswith(each + ".")), None)
        if module is None or not (
            MAKERS.fullmatch(last) or (last in DIRECT and name.count(".") <= module.count(".") + 2)
        ):
            return False
        model = self.fold(words["model"]) if "model" in words else self.fold(node.args[0]) if node.args else None
        if module in ("litellm", "dspy") and model:
            if model.startswith(LOCAL_MODELS):
                return True
            module = next((to for start, to in MODELS.items() if model.startswith(start)), module)
        if module.startswith("distilabel") and "Anthropic" in last:
            module = "anthropic"
        elif module.startswith("distilabel") and ("vLLM" in last or "Transformers" in last):
            return True
        home, sent = CLIENTS[module]
        place = self.server(node, words)
        if place is None:
            place = next((self.env[each] for each in sent if each in self.env), home)
        elif place == "":
            self.elsewhere(f"{name} at an address that is not written out", node)
            return True
        own = KEYWORDS & set(words) or module not in KEYS or KEYS[module] in self.env
        extra = frozenset() if own or (self.local(place) and place not in self.env.values()) else {KEYS[module]}
        self.add(place, name, self.asks or last in DIRECT, node, frozenset(extra))
        return True

    def server(self, node: ast.Call, words: Mapping[str, ast.expr]) -> str | None:
        """The address that a client is given; empty where it is not written out, `None` where none is given."""
        for each in SERVERS:
            if each in words and not (isinstance(words[each], ast.Constant) and words[each].value is None):  # type: ignore[attr-defined]
                if any("://" in url and self.local(url) for url in self.given):
                    return self.given[0]
                return self.fold(words[each]) or ""
        return "" if any(word.arg is None for word in node.keywords) else None

    @staticmethod
    def local(url: str) -> bool:
        """Whether an address is this machine's."""
        return bool(re.match(r"https?://(localhost|127\.|0\.0\.0\.0|\[::1?\])", url))

    def elsewhere(self, how: str, node: ast.Call) -> None:
        """An address that is not written out where it is used: any that the program or its arguments name."""
        urls = self.given or self.urls
        for url in urls:
            self.add(url, how, self.asks or bool(self.given), node)
        if not urls:
            self.text.unread = how

    def network(self, node: ast.Call, name: str, last: str, words: Mapping[str, ast.expr]) -> None:
        """A request."""
        values = [*node.args[:2], *(words[each] for each in ("url", "base_url", "host") if each in words)]
        texts = [text for value in values if (text := self.fold(value))]
        if last.endswith("HTTPSConnection") and texts:
            texts = ["https://" + texts[0]]
        web = name.startswith(WEB)
        found = [text for text in texts if text.startswith(("http://", "https://", "ws://", "wss://"))]
        for url in found:
            posts = last in ("post", "Request", "request", "stream") or "data" in words or "json" in words
            self.add(url, f"{name} (sent)" if posts else name, True, node)
        if not found and values and (web or last in ("post", "urlopen")) and not texts:
            self.elsewhere(f"{name} of an address that is not written out", node)

    def shell(self, node: ast.Call, name: str) -> bool:
        """A command line that is run."""
        if name not in SHELLS and not name.endswith((".create_subprocess_shell", ".create_subprocess_exec")):
            return False
        if not node.args:
            return True
        first = node.args[0]
        if isinstance(first, ast.List | ast.Tuple):
            parts = [self.fold(each) for each in first.elts[:200]]
            self.text.shells.append(" ".join(quoted("{}" if part is None else part) for part in parts))
        elif (text := self.fold(first)) is not None:
            self.text.shells.append(text)
        elif name.startswith(("subprocess", "os.")):
            self.text.unread = "it runs a command that is not written out"
        return True

    def file(self, node: ast.Call, name: str, last: str, words: Mapping[str, ast.expr]) -> None:
        """A file that is written or read."""
        if name in MOVERS:
            if len(node.args) > MOVERS[name] and (text := self.fold(node.args[MOVERS[name]])):
                self.text.writes.append(text)
        elif last in WRITERS and isinstance(node.func, ast.Attribute):
            if text := self.fold(node.func.value):
                self.text.writes.append(text)
        elif last == "open":
            own = isinstance(node.func, ast.Attribute) and not name.startswith(("io.", "codecs.", "gzip.", "os."))
            place = node.func.value if own and isinstance(node.func, ast.Attribute) else (node.args or [None])[0]  # type: ignore[list-item]
            modes = node.args[0:1] if own else node.args[1:2]
            mode = self.fold(words.get("mode") or (modes[0] if modes else ast.Constant("r"))) or "r"
            text = self.fold(place) if place is not None else None
            if text:
                (self.text.writes if set(mode) & set("wax+") else self.text.reads).append(text)

    def add(self, url: str, how: str, sure: bool, node: ast.AST, extra: frozenset[str] = frozenset()) -> None:
        """One more address."""
        if len(self.text.reaches) < 1_000:
            names = self.taken_in(node)
            if isinstance(node, ast.Call) and not {"headers", "auth", *KEYWORDS} & {word.arg for word in node.keywords}:
                names |= self.text.names if how.startswith(WEB) or "(sent)" in how else set()
            self.text.reaches.append((url, how, sure, getattr(node, "lineno", 0), frozenset(names | extra)))


def quoted(word: str) -> str:
    """A word as a shell reads it back."""
    return "'" + word.replace("'", "'\\''") + "'"
