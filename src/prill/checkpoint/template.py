"""A chat template read as a syntax tree: is it a template, does it open the assistant's turn, and what ends a turn?

Templates are programs that strangers wrote. They are parsed and never run, so nothing they compute can cost anything.
What ends a turn is looked for among the known tokens that are written behind a message's content.
Not covered: a turn end that only running would show, such as one put together from pieces or read from a table.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prill.checkpoint.documents import printable
from prill.record import Record

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

CONTENT, EOS = object(), object()
"""Marks in the flattened template: here stands a message's content; here stands the tokenizer's eos_token."""
KNOWN_ENDS = ("<|im_end|>", "<|endoftext|>", "<end_of_turn>", "<|eot_id|>", "</s>", "<|end|>", "<|end_of_text|>")
"""Turn ends of common formats: looked for even where the tokenizer has no such token, which is then the fault."""
DEEPEST = 300
"""Levels of nesting; rendering compiles with about three calls a level, of which Python allows a thousand."""
MOST_TOKENS = 8192
"""Tokens that are looked for; Gemma 3 adds 6,242."""


class Template(Record, frozen=True, kw_only=True):
    """What a template is, as far as its text tells."""

    why: str = ""
    """Why it is no template; empty where it is one."""
    opens: bool = False
    """Whether it asks for `add_generation_prompt`."""
    ends: tuple[str, ...] = ()
    """Known tokens that are written behind some message's content, by first appearance; `""` is the eos_token."""

    @property
    def turn(self) -> str | None:
        """The token that most likely ends a turn."""
        return next((end for end in self.ends if end in ("", *KNOWN_ENDS)), self.ends[0] if self.ends else None)


def read_template(text: str, tokens: frozenset[str]) -> Template:
    """Look at a template; `tokens` are those that could end a turn: the tokenizer's special ones."""
    from jinja2 import TemplateError, nodes

    environment = grammar()
    try:
        tree = environment.parse(text)
    except TemplateError as error:
        return Template(why=printable(str(error), 200))
    except RecursionError:
        return Template(why="nested too deep")
    parts = list(every(tree))
    if max(depth for _, depth in parts) > DEEPEST:
        return Template(why="nested too deep")
    found = [part for part, _ in parts]
    unknown = [part.name for part in found if isinstance(part, nodes.Filter) and part.name not in environment.filters]
    unknown += [part.name for part in found if isinstance(part, nodes.Test) and part.name not in environment.tests]
    if unknown:
        return Template(why=f"there is no filter or test named {printable(unknown[0], 40)!r}")
    opens = any(isinstance(part, nodes.Name) and part.name == "add_generation_prompt" for part in found)
    return Template(opens=opens, ends=tuple(ends(Flat(tree).written(), tokens)))


def every(top: "nodes.Node") -> "Iterator[tuple[nodes.Node, int]]":
    """Every node below one, and itself, with its depth, in the order of the text. A loop: the depth is a stranger's."""
    waiting = [(top, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in node.iter_child_nodes()][::-1]


def grammar() -> "Environment":
    """The syntax that transformers renders: loop controls, and `generation` blocks round what is trained on."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}…{% endgeneration %}` is its content."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            """Nothing but the body."""
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])


class Flat:
    """A template as the sequence of what it may write, in the order of its text."""

    def __init__(self, tree: "nodes.Template") -> None:
        from jinja2 import nodes

        self.tree, self.nodes = tree, nodes
        self.aliases = {"content"}
        for found, _ in every(tree):
            # a variable that is made out of a message's content, or runs over its parts, stands for it
            if isinstance(found, nodes.Assign | nodes.For) and isinstance(found.target, nodes.Name):
                source = found.iter if isinstance(found, nodes.For) else found.node
                if self.mentions(source):
                    self.aliases.add(found.target.name)

    def mentions(self, node: "nodes.Node") -> bool:
        """Whether an expression is made out of a message's content."""
        return any(self.is_content(part) for part, _ in every(node))

    def is_content(self, node: "nodes.Node") -> bool:
        """`message.content`, `message["content"]`, a variable made out of it, or the text of one of its parts."""
        kinds = self.nodes
        while True:
            if isinstance(node, kinds.Name):
                return node.name in self.aliases
            if isinstance(node, kinds.Getattr):
                name: object = node.attr
            elif isinstance(node, kinds.Getitem) and isinstance(node.arg, kinds.Const):
                name = node.arg.value
            else:
                return False
            if name != "text":
                return name == "content"
            node = node.node

    def written(self) -> list[object]:
        """Text, `CONTENT` and `EOS` in order. Conditions write nothing, nor do variables that hold no content."""
        kinds = self.nodes
        found: list[object] = []
        waiting: list[nodes.Node] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, kinds.TemplateData):
                found.append(node.data)
            elif isinstance(node, kinds.Const):
                found += [node.value] if isinstance(node.value, str) else []
            elif self.is_content(node):
                found.append(CONTENT)
            elif isinstance(node, kinds.Name):
                found += [EOS] if node.name == "eos_token" else []
            elif isinstance(node, kinds.Assign):
                waiting += [node.node] if self.mentions(node.node) else []
            elif not isinstance(node, kinds.Compare | kinds.Getitem | kinds.Getattr | kinds.Slice):
                asked = (getattr(node, "test", None), getattr(node, "iter", None))
                written = [child for child in node.iter_child_nodes() if not any(child is part for part in asked)]
                waiting += written[::-1]
        return found


def ends(flat: list[object], tokens: frozenset[str]) -> list[str]:
    """The tokens behind the first content, in order of first appearance."""
    behind = flat[flat.index(CONTENT) + 1 :] if CONTENT in flat else []
    text = "\0".join("\1" if piece is EOS else str(piece) for piece in behind if piece is not CONTENT)
    known = [*KNOWN_ENDS, *sorted(tokens.difference(KNOWN_ENDS))[:MOST_TOKENS]]
    found = {token: at for token in known if token and (at := text.find(token)) >= 0}
    if "\1" in text:
        found[""] = text.index("\1")
    return sorted(found, key=lambda token: (found[token], -len(token)))
