"""Every door of a stage: what starts work in it, who may pass, which function serves it, how it is throttled.

Derived from the declarations: the routes (`dualtrack.api.table`), plug-ins' own APIs (`dualtrack.api.streamed`), the
gateway's methods, the state machines, timers and rules, and the functions. Nothing here is written a second time, and
nothing loads the CDK. ``uv run python -m dualtrack_stack.doors`` prints the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.api.route import KEY_PATH
from dualtrack.api.streamed import streamed_apis
from dualtrack.api.table import ROUTES

from dualtrack_stack.gateway import method_of
from dualtrack_stack.machines import CHAT, CORPUS, RULES, TIMERS, tasks_of
from dualtrack_stack.stacks.function_specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dualtrack.vocabulary import Scope

    from dualtrack_stack.gateway import GatewayMethod
    from dualtrack_stack.stages import StageSettings

Kind = Literal["route", "streamed", "timer", "rule", "step", "call"]
"""``route``, ``streamed``: HTTP; ``timer``, ``rule``: EventBridge; ``step``: a state machine; ``call``: another
function."""

Passer = Literal["anyone", "user", "admin", "stage"]
"""Who may pass: ``stage`` for no caller at all."""

_FROM_OUTSIDE: Final = ("route", "streamed", "timer", "rule")


@dataclass(frozen=True, slots=True)
class Door:
    """A door. ``name``: ``POST /v1/chats``, ``timer Sweep``, ``step chat Turn: turn``; ``function``: empty for what the
    gateway answers itself; ``scopes``: with one of them an API key passes, with none no key; ``methods``: of the
    gateway, for tokens and for keys."""

    name: str
    kind: Kind
    function: str
    passes: Passer = "stage"
    scopes: tuple[Scope, ...] = ()
    for_owner: bool = False
    """Whether a service's key names no end user here."""
    methods: tuple[GatewayMethod, ...] = ()

    @property
    def is_http(self) -> bool:
        """Whether it has a method and a path."""
        return self.kind in ("route", "streamed")

    @property
    def method(self) -> str:
        """``POST``."""
        return self.name.partition(" ")[0]

    @property
    def path(self) -> str:
        """``/v1/chats``."""
        return self.name.partition(" ")[2]

    def throttles(self, stage: StageSettings) -> str:
        """How its gateway methods are throttled: ``50/s, burst 200 (shared)``."""
        limits = [(method.limit(stage), method.is_limited_apart) for method in self.methods]
        return "; ".join(
            f"{limit.rate:g}/s, burst {limit.burst}{'' if is_apart else ' (shared)'}"
            for limit, is_apart in limits
        )


def _routes() -> Iterator[Door]:
    for route in ROUTES:
        method = route.method.upper()
        behind_keys = (KEY_PATH + route.path,) if route.scopes else ()
        of_paths = (method_of(path, method) for path in (route.path, *behind_keys))
        methods = tuple(one for one in of_paths if one)
        yield Door(
            f"{method} {route.path}",
            "route",
            methods[0].function,
            "anyone" if route.access == "open" else route.access,
            route.scopes,
            route.for_owner,
            methods,
        )


def _streamed() -> Iterator[Door]:
    for path, route in ((api.path + route.path, route) for api in streamed_apis() for route in api.routes):
        method = method_of(path, route.method)
        yield Door(
            f"{route.method} {path}",
            "streamed",
            "stream",
            "user",
            route.scopes,
            route.for_owner,
            (method,) if method else (),
        )


def _steps(machine: str, definition: Path) -> Iterator[Door]:
    for state, spec in tasks_of(definition):
        yield Door(f"step {machine} {state}: {spec.name}", "step", spec.name)


def _calls() -> Iterator[Door]:
    """Functions that others call by a variable of theirs: ``EMBED_FUNCTION``."""
    for name in SPECS:
        if any(f"{name.upper()}_FUNCTION" in spec.environment for spec in SPECS.values()):
            yield Door(f"call {name}", "call", name)


DOORS: Final = (
    *_routes(),
    *_streamed(),
    *(Door(f"timer {timer.name}", "timer", timer.function) for timer in TIMERS),
    *(Door(f"rule {name}", "rule", function) for name, function in RULES.items()),
    *_steps("chat", CHAT),
    *_steps("corpus", CORPUS),
    *_calls(),
)
"""All of them."""

BY_NAME: Final = {door.name: door for door in DOORS}

ENTRANCES: Final = tuple(
    name for name in SPECS if any(door.function == name and door.kind in _FROM_OUTSIDE for door in DOORS)
)
"""The functions through which work comes into a stage: where none of them runs, nothing begins."""


def main() -> None:
    """Print the list."""
    for door in DOORS:
        keys = f"keys: {', '.join(door.scopes)}" if door.scopes else ""
        print(f"{door.name:<72} {door.function or 'the gateway':<14} {door.passes:<7} {keys}")


if __name__ == "__main__":
    main()
