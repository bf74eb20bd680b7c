"""What an audit may know beside the files: the base model, what will be asked of the submission, what was tried.

Every field may be missing; a rule that needs a missing one says nothing. Source: rules K of the acceptance cases.
"""

from typing import Any

from msgspec.structs import replace

from prill.record import Record
from prill.spec import BaseModel


class Context(Record, frozen=True, kw_only=True):
    """Facts from outside the folder."""

    need_tokens: int | None = None
    """New tokens that a reply may have."""
    prompt_tokens: int | None = None
    """The longest prompt's tokens."""
    base_config: dict[str, Any] | None = None
    """The base model's `config.json`."""
    architecture: str | None = None
    """The base model's class, where its whole config is not at hand."""
    probe_finish_reasons: tuple[str, ...] = ()
    """How probe replies ended: "stop" or "length"."""
    all_tensors_equal_base: bool = False
    all_tensors_equal_model: str | bool | None = None
    """The name of a known model, not the base, whose weights these are (or true where it has no name)."""
    reader_schema: str | None = None
    """How the engine reads RoPE settings: "rope_theta" (only a field of its own) or "rope_parameters" (both)."""


def of(model: BaseModel, context: Context) -> Context:
    """The context with what the model's definition says, where it says more."""
    if context.architecture or context.base_config:
        return context
    return replace(context, architecture=model.architecture)
