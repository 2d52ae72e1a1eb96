"""What starts functions without a caller: the two state machines, timers, and events of AWS. Plain values: nothing here
loads the CDK.
"""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat_times import LONGEST

from dualtrack_stack.roots import PACKAGE
from dualtrack_stack.stacks.function_spec import BY_TIMER, Timer
from dualtrack_stack.stacks.function_specs import PLUGIN_STACKS, SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dualtrack_stack.stacks.function_specs import FunctionSpec

CHAT: Final = PACKAGE / "chat.asl.json"
CORPUS: Final = PACKAGE / "corpus.asl.json"


def definition_of(path: Path) -> str:
    """A machine's definition, with the time that the longest chat has, as the sweep ends others at their own deadline,
    and with the functions that plug-ins have for kinds of corpora."""
    text = path.read_text(encoding="utf-8").replace('"${ChatSeconds}"', str(LONGEST.chat))
    listed = (
        f"'{kind}': '${{{SPECS[name].construct_id}}}', "
        for stack in PLUGIN_STACKS
        for kind, name in stack.corpora.items()
    )
    return text.replace("$lookup({'courses'", "$lookup({" + "".join(listed) + "'courses'")


def steps_of(definition: Path) -> tuple[FunctionSpec, ...]:
    """The functions that a definition names."""
    text = definition_of(definition)
    return tuple(spec for spec in SPECS.values() if f"${{{spec.construct_id}}}" in text)


def tasks_of(definition: Path) -> tuple[tuple[str, FunctionSpec], ...]:
    """The states that call functions, each with every function that it may call."""
    return tuple(_tasks(json.loads(definition_of(definition))))


def _tasks(machine: Mapping[str, Any]) -> Iterator[tuple[str, FunctionSpec]]:
    by_construct = {spec.construct_id: spec for spec in SPECS.values()}
    for name, state in machine["States"].items():
        if state["Type"] == "Task":
            named = re.findall(r"\${(\w+)}", state["Arguments"]["FunctionName"])
            yield from ((name, by_construct[construct]) for construct in named)
        if "ItemProcessor" in state:
            yield from _tasks(state["ItemProcessor"])


REFRESH: Final = MappingProxyType({"action": "refresh"})
"""To `mcp`: list the servers' tools anew."""

TIMERS: Final = (
    Timer("Sweep", "rate(5 minutes)", "sweep", BY_TIMER, 0),  # the next one comes in five minutes
    Timer("CreditReset", "cron(0 0 * * ? *)", "credit_reset", BY_TIMER, 5),
    Timer("ToolRefresh", "rate(1 hour)", "mcp", REFRESH, 2),
    *(timer for stack in PLUGIN_STACKS for timer in stack.timers),
)

EXECUTION_ENDED: Final = "ExecutionEnded"
DEPLOYED: Final = "Deployed"
RULES: Final[Mapping[str, str]] = MappingProxyType({EXECUTION_ENDED: "abort", DEPLOYED: "mcp"})
"""The functions that events of AWS call, by the rules' names."""
