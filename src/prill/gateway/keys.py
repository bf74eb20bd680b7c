"""The real key, read when it is needed: from a variable, or from a file that a login renews while a run goes on."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from prill.errors import InfraError
from prill.outside import Provider

PLACES = ("claudeAiOauth.accessToken", "tokens.access_token", "access_token", "token")
"""Where programs keep the token in their file, where it is JSON."""


def keys(provider: Provider, environment: Mapping[str, str] = os.environ) -> Callable[[], str | None]:
    """What gives the provider's key at any moment; `None` where its variable is not set.

    Raises `InfraError` when called, where the file of a subscription cannot be read or holds no token.
    """
    if provider.key_file is None:
        return lambda: environment.get(provider.key or "")
    name = provider.key_file
    return lambda: token(Path(environment[name]), name) if environment.get(name) else None


def token(file: Path, variable: str) -> str:
    """The token that a file holds now: its text, or the known place in its JSON."""
    try:
        words = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InfraError(f"{variable}: its file cannot be read ({error}); log in again") from None
    if not words.startswith("{"):
        found = words
    else:
        try:
            whole = msgspec.json.decode(words)
        except msgspec.DecodeError:
            raise InfraError(f"{variable}: its file is damaged JSON; log in again") from None
        found = next((inner for place in PLACES if isinstance(inner := at(whole, place), str)), "")
    if not found or not found.isprintable() or not found.isascii() or " " in found:
        raise InfraError(f"{variable}: its file holds no token; log in again")
    return found


def at(value: object, place: str) -> object:
    """What is at a place such as `a.b`, or nothing."""
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
