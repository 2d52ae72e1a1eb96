"""The state of an account, as frozen values. `account` reads them, `decide` and `doctor` evaluate them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.settings import keys

if TYPE_CHECKING:
    from collections.abc import Mapping

STAGES: Final = ("staging", "prod")
"""The stages of an account; `local` is the laptop's."""

STACKS: Final = ("data", "identity", "vectors", "mcp", "chat", "page")
"""The stacks of a stage in the order of their deployment; ``vectors``, ``mcp`` and ``page`` are optional."""

KEYS: Final = keys()
"""The keys that can be stored, by the last part of their parameters' names."""


def prefix(stage: str) -> str:
    """The beginning of every physical name (`dualtrack_stack.stages.StageSettings.prefix`)."""
    return f"dualtrack-{stage}"


def tags_of(stage: str) -> Mapping[str, str]:
    """The tags of everything that belongs to a stage (`dualtrack_stack.app.build`)."""
    return {"application": "dualtrack", "stage": stage}


def is_tagged(tags: Mapping[str, str], stage: str) -> bool:
    """Whether tags say that something belongs to the stage."""
    return tags_of(stage).items() <= tags.items()


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
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class StackResource:
    """One resource of a stack: CloudFormation's type, physical id and status. ``is_kept``: it outlives the stack."""

    kind: str
    id: str
    status: str = "CREATE_COMPLETE"
    is_kept: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the stack still has it. Skipped: taken out of the template, and not deleted."""
        return self.status not in ("DELETE_COMPLETE", "DELETE_SKIPPED")


@dataclass(frozen=True, slots=True)
class PoolUser:
    """A user of the pool; ``status`` is Cognito's (CONFIRMED, FORCE_CHANGE_PASSWORD …)."""

    name: str
    status: str
