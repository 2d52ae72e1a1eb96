"""Values of settings that are not their defaults, from their declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.checked_settings import allowed
from dualtrack.settings import declared, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.settings import Setting


def in_a_file() -> Mapping[str, Setting]:
    """The settings that may stand in any stage's file, by name."""
    return {
        name: entry
        for name, entry in declared().items()
        if entry.declared.in_file and not entry.declared.is_local
    }


def another(entry: Setting) -> str:
    """A value that is valid and not the default: the entry's example, another of the known ones, another number."""
    if entry.declared.example:
        return entry.declared.example
    default = entry.default
    if isinstance(default, bool):
        return text_of(not default)
    if isinstance(default, int | float):
        return str(int(default) + 1)
    known = [text for text in allowed(entry) if text != default]
    return known[-1] if known else f"{entry.field}-of-a-test"
