"""The state of an account, as frozen values. `account` reads them, `decide` and `doctor` evaluate them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STAGES: Final = ("staging", "prod")
"""The stages of an account; `local` is the laptop's."""

STACKS: Final = ("data", "identity", "mcp", "chat", "page")
"""The stacks of a stage in the order of their deployment; ``mcp`` and ``page`` are optional."""

KEYS: Final = MappingProxyType(
    {
        "anthropic": "ANTHROPIC_API_KEY",
        "voyage": "VOYAGE_API_KEY",
        "context7": "CONTEXT7_API_KEY",
        "github": "GITHUB_TOKEN",
    }
)
"""The keys that can be stored: the parameter's name and the environment variable with the value."""


def prefix(stage: str) -> str:
    """The beginning of every physical name (`infra.stages.StageSettings.prefix`)."""
    return f"dualtrack-{stage}"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose credentials these are."""

    account: str
    arn: str


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack as CloudFormation describes it; ``reason`` is the first failure of its latest change."""

    name: str
    status: str
    reason: str = ""
    outputs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class User:
    """A user of the pool; ``status`` is Cognito's (CONFIRMED, FORCE_CHANGE_PASSWORD …)."""

    name: str
    status: str
