"""What a function, and what starts it, is to the stacks. A plug-in's ``stack.py`` says it in these words. Plain values:
nothing here loads the CDK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.settings import ADMISSION, INDEXING, TELLING, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_cdk import aws_iam as iam

    from dualtrack_stack.stacks.permissions import Allow

    Permissions = Callable[[Allow], list[iam.PolicyStatement]]


@dataclass(frozen=True, slots=True)
class Retries:
    """Lambda's own of an asynchronous call whose function raises: how many, two at the most, and for how many seconds.
    What fails at every attempt is in a queue that an operator looks at."""

    attempts: int
    seconds: int


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """One function of ``functions/<name>``.

    ``seconds``: less than the timeout of the state or caller that waits for it (DESIGN 2.10); ``memory``: in MB, the
    measured peak is at most 60 % of it (infra/dualtrack_stack/measured.json; tests/infra/test_memory_sizes.py);
    ``layers``: the dependency layers besides the library; ``environment``: the names of its variables besides those of
    the settings that it uses (`dualtrack.settings`); ``permissions``: its statements besides logs, traces and the keys
    among those settings; ``disk``: MB of ``/tmp``, 512 are free; ``retries``: if it is called asynchronously;
    ``admits``: whether it admits chats, ``tells``: what is in the outbox, ``indexes``: whether it
    makes vectors of texts; so it has the settings for it.
    """

    name: str
    description: str
    seconds: int
    memory: int
    layers: tuple[str, ...]
    environment: tuple[str, ...]
    permissions: Permissions
    handler: str = "handler.handler"
    disk: int = 512
    retries: Retries | None = None
    admits: bool = False
    tells: bool = False
    indexes: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of all its variables, whose values `ChatStack` sets."""
        return (*self.environment, *variables_of(self.in_settings))

    @property
    def in_settings(self) -> tuple[str, ...]:
        """How settings name it in ``used_by``."""
        roles = {ADMISSION: self.admits, TELLING: self.tells, INDEXING: self.indexes}
        return (self.name, *(role for role, has_it in roles.items() if has_it))

    @property
    def serves_http(self) -> bool:
        """Whether it is a web server behind Lambda Web Adapter, not a handler."""
        return self.handler == "run.sh"

    @property
    def construct_id(self) -> str:
        """``CreditReset`` for ``credit_reset``: its name in the template and in the workflow's definition."""
        return "".join(part.capitalize() for part in self.name.split("_"))


@dataclass(frozen=True, slots=True)
class Timer:
    """A schedule that calls a function with an event. ``expression``: of EventBridge Scheduler, in UTC;
    ``retry_attempts``: of a delivery to Lambda that failed."""

    name: str
    expression: str
    function: str
    event: Mapping[str, str]
    retry_attempts: int


BY_TIMER: Final = MappingProxyType({"source": "schedule"})
"""The event of a function that needs none."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """What operators are told of a function, within a quarter of an hour. ``metric``: one of those that it writes, once
    or more often; without one, that it did not run."""

    name: str
    function: str
    about: str
    metric: str = ""


@dataclass(frozen=True, slots=True)
class PluginStack:
    """What a plug-in deploys. ``api_layers``: the layers of packages that its routes need, besides those of `api`;
    ``corpora``: by the kinds of corpora that it brings, the function that works on their jobs."""

    functions: tuple[FunctionSpec, ...] = ()
    timers: tuple[Timer, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    api_layers: tuple[str, ...] = ()
    corpora: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


APPEND: Final = ("GetItem", "PutItem", "Query")
CHANGE: Final = (*APPEND, "UpdateItem")
OWN: Final = (*CHANGE, "DeleteItem", "BatchWriteItem")
PAST: Final = ("BatchGetItem", "ConditionCheckItem")
"""On the history besides: of those who write to a conversation's past while its chat holds the lease, or delete it."""

MEMORY: Final = ("HISTORY_TABLE", "CHATS_TABLE", "BODIES_BUCKET")
