"""What a plug-in is, and how the core finds its parts. It is a folder of ``dualtrack/plugins``, which no file of the
core names.

    plugin.py          PLUGIN, a `Plugin`: what the API and the terminal must know of it
    routes.py          routes of the API, found as those of the core are
    chats.py           a `dualtrack.api.chat_fields.ChatFields`: fields of the body that starts a chat
    bodies.py          the bodies that they accept
    types.py           their answers, in the form of `dualtrack.answers`
    streamed.py        a `dualtrack.api.streamed.StreamedApi`: an API of its own, which the function `stream` serves
    store.py           what it stores
    commands.py        ``commands``, a `click.Command` for the terminal
    stack.py           a `dualtrack_stack.stacks.function_spec.PluginStack`: functions, timers, alarms, layers
    functions/<name>/  the code of such a function
    requirements.txt   the packages of its layer
    profiles/*.json    agents that it brings
    tools.json         what the model sees of its tools, written as the library's is (`dualtrack.tools.registry`)
    samples.json       bodies as a stack sends them, for the API's document
    page.json          its part of the page, with panel.js (docs/page.md)

Parts are found by the folder's listing, without a registration: where the folder is gone, nothing is missing. A
function imports what it uses; only what serves the API, deploys or answers in the terminal asks for everybody's parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.ids import FORMS, IdForm

if TYPE_CHECKING:
    from collections.abc import Mapping

Part = Literal["plugin", "routes", "chats", "types", "streamed", "commands", "stack"]
"""A module that the core looks for."""

FOLDER: Final = Path(__file__).with_name("plugins")


@dataclass(frozen=True, slots=True)
class Plugin:
    """``ids``: by their names; ``events``: what listeners may be told of; ``facets``: the fields that it adds to an
    answer of the core, by the answer's name, as a `TypedDict`: what the plug-in keeps under such a name in the
    ``facets`` of a stored thing is in that answer. (Such a module does not postpone its annotations: `NotRequired`
    would be unread.) ``profile_fields``: what it adds to a profile's file, with their types and defaults: its tools are
    told them as their options (`dualtrack.profiles.Profile.options`)."""

    ids: Mapping[str, IdForm] = field(default_factory=lambda: MappingProxyType({}))
    events: tuple[str, ...] = ()
    facets: Mapping[str, type] = field(default_factory=lambda: MappingProxyType({}))
    profile_fields: Mapping[str, tuple[Any, Any]] = field(default_factory=lambda: MappingProxyType({}))


def names() -> tuple[str, ...]:
    """The plug-ins that are there."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/__init__.py")))


@cache
def parts(part: Part) -> tuple[ModuleType, ...]:
    """This module of each plug-in that has it, by their names."""
    return tuple(
        import_module(f"dualtrack.plugins.{name}.{part}")
        for name in names()
        if (FOLDER / name / f"{part}.py").is_file()
    )


def plugins() -> tuple[Plugin, ...]:
    """What all of them say of themselves."""
    return tuple(module.PLUGIN for module in parts("plugin"))


@cache
def id_forms() -> Mapping[str, IdForm]:
    """The forms of all ids, by name: the core's and the plug-ins'."""
    return MappingProxyType(
        {**FORMS, **{name: form for plugin in plugins() for name, form in plugin.ids.items()}}
    )


def facets_in(answer: str, facets: Mapping[str, str]) -> Mapping[str, str]:
    """Those that plug-ins declare for this answer."""
    declared = {
        name for plugin in plugins() if (kind := plugin.facets.get(answer)) for name in kind.__annotations__
    }
    return {name: value for name, value in facets.items() if name in declared}


def values(part: Part, kind: type[Any]) -> tuple[Any, ...]:
    """Everything of this type that these modules define, in the order of their text."""
    return tuple(
        value for module in parts(part) for value in vars(module).values() if isinstance(value, kind)
    )
