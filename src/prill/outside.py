"""What is decided about the world outside a box: who answers model calls, what they cost, which hosts may be reached.

Plain frozen values, read from TOML by `catalog.py` and kept whole in each run's spec, so that a run explains itself.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Wire = Literal["anthropic", "responses", "chat", "gemini"]
"""How a model is asked: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini."""

Purchase = Literal["model", "gpu", "storage", "teacher", "judge"]
"""What money is spent on: the agent's own model, the machine, what is kept on disk, a teacher's models, judges."""

Dollars = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?$")]
"""An amount as decimal text, such as `2.49`."""

Verdict = Literal["allow", "deny", "flag"]
"""What is done with a host: let through, refused, or let through and brought to a judge's notice."""


class Fact(Struct, frozen=True, forbid_unknown_fields=True):
    """A value with named fields; a field that is not declared is an error, not a silent extra."""


class Provider(Fact, frozen=True, kw_only=True):
    """Who answers an agent's model calls, and how the gateway speaks to it. Keys are only ever names of variables."""

    name: str
    title: str
    url: str
    """Root of its API without a path, such as `https://api.example.com`; empty for a scenario."""
    wires: tuple[Wire, ...]
    key: str | None = None
    """Environment variable of the gateway's process that holds the key; it never enters a box."""
    key_file: str | None = None
    """Environment variable that names a file with the token of a subscription; read anew whenever it changes."""
    header: Literal["x-api-key", "authorization", "x-goog-api-key", "none"] = "authorization"
    """Where the key goes; `authorization` sends it as a bearer token."""
    headers: dict[str, str] = {}
    """Sent with every request, such as a version."""
    base: str = ""
    """What the base URL of a client's library has behind `url`, such as `/api/v1`."""
    free: tuple[str, ...] = ()
    """Paths that cost nothing, such as counting tokens; `*` stands for any part of one."""
    scenario: str | None = None
    """A scenario file in the catalog's folders: a scripted provider plays it on this machine instead of `url`."""


class Tier(Fact, frozen=True, kw_only=True):
    """Dollars per million tokens, as decimal text. What has no price of its own has the price of plain input."""

    input: str
    output: str
    cache_read: str | None = None
    cache_write_5m: str | None = None
    """Written for as long as is usual: five minutes at Anthropic, half an hour at OpenAI."""
    cache_write_1h: str | None = None
    """Written for long: an hour at Anthropic, twelve at OpenAI."""


class Price(Fact, frozen=True, kw_only=True):
    """What a model costs."""

    base: Tier
    above: dict[str, Tier] = {}
    """Prompt tokens, as text → the prices of a whole call with more than that many."""
    max_output_tokens: int
    """The most that one call can give back: what a hold assumes where the request names no limit."""
    context_tokens: int | None = None
    """The most that a prompt can have: what a hold assumes where a request points to more than it holds, such as to a
    file; `None`: such a request is refused."""
    tools: dict[str, str] = {}
    """Server tool, such as `web_search` → dollars for each use; a tool that is not here is refused."""


class Prices(Fact, frozen=True, kw_only=True):
    """A dated list of prices. A model that is not in it is refused, never guessed."""

    name: str
    title: str
    dated: str
    source: str
    models: dict[str, Price]


class Host(Fact, frozen=True, kw_only=True):
    """What is done with hosts of a name; `*.example.com` is every host below it."""

    name: str
    verdict: Verdict
    rule: str
    """The rule that it bears on, such as `hosted_api` or `lookup`."""
    why: str


class HostPolicy(Fact, frozen=True, kw_only=True):
    """Which hosts a box may reach; the first that fits decides."""

    name: str
    title: str
    otherwise: Verdict
    hosts: tuple[Host, ...]
    hub: str | None = None
    """Root of the model and data hub behind the hub front; `None`: there is none."""
