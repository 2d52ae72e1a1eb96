"""What an operator has set, checked against its declarations: by a deployment, the local stack and the commands."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dualtrack.settings import PARSERS, Settings, declared, text_of
from dualtrack.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.settings import Setting, SettingValue

_SHOWN: Final = 200
"""Characters of a wrong value in a message."""

_USER: Final = re.compile(r"//[^/@]*+@")
"""User and password in an address, which a message does not show."""

_NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})


class WrongSettings(ValueError):
    """Some settings are wrong. The message has a line for each: name, value, where it was set, what is expected."""


def checked(given: Mapping[str, str], sources: Mapping[str, str] = _NOWHERE) -> Settings:
    """The settings by their names, which may stand among others; ``sources``: where each was set, by default in the
    environment. Raises `WrongSettings`.
    """
    settings, entries = Settings(), [entry for entry in declared().values() if entry.declared.in_file]
    problems: dict[str, str] = {}
    for step in (_parsed, _valid):
        for entry in entries:
            if entry.name in problems:
                continue
            try:
                changed: dict[str, Any] = {entry.field: step(entry, given, settings)}
                settings = replace(settings, **changed)
            except ValueError as wrong:
                problems[entry.name] = _line(entry, _given(entry, given), sources.get(entry.name, ""), wrong)
    if problems:
        raise WrongSettings("\n".join(problems.values()))
    return settings


def allowed(entry: Setting) -> tuple[str, ...]:
    """The values that there are; none if any text may be one."""
    check = _check_of(entry)
    return () if check is None or callable(check) else check


def header_names(names: tuple[str, ...], _: Settings) -> tuple[str, ...]:
    """Names of HTTP headers. Raises ValueError."""
    if not all(re.fullmatch(r"[A-Za-z0-9-]{1,64}", name) for name in names):
        raise ValueError("must be names of headers, separated by commas")
    return names


def origins(pages: tuple[str, ...], _: Settings) -> tuple[str, ...]:
    """The origins of pages, ``https://page.example``; ``*`` stays."""
    split = [(page, urlsplit(page)) for page in pages if page != "*"]
    for page, parts in split:
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"must be addresses such as https://page.example, which {page} is not")
    found = tuple(f"{parts.scheme}://{parts.netloc}" for _, parts in split)
    return ("*", *found) if "*" in pages else found


def _given(entry: Setting, given: Mapping[str, str]) -> str:
    """The text that counts, empty for the default."""
    other = entry.declared.or_else
    if given.get(entry.name) or not other:
        return given.get(entry.name, "")
    return given.get(other.upper()) or text_of(declared()[other.upper()].default)


def _parsed(entry: Setting, given: Mapping[str, str], _: Settings) -> SettingValue:
    text = _given(entry, given)
    try:
        value = PARSERS[entry.type](text) if text else entry.default
    except (ValueError, KeyError):
        raise ValueError(_expected(entry)) from None
    if not isinstance(value, (str, tuple)) and not _is_within(entry, value):
        raise ValueError(_expected(entry))
    return value


def _is_within(entry: Setting, number: float) -> bool:
    least, most = entry.declared.least, entry.declared.most
    return (-math.inf if least is None else least) <= number <= (math.inf if most is None else most)


def _valid(entry: Setting, _: Mapping[str, str], settings: Settings) -> SettingValue:
    value: SettingValue = getattr(settings, entry.field)
    check, form, known = _check_of(entry), entry.declared.form, allowed(entry)
    if callable(check):
        changed: SettingValue = check(value, settings)
        return changed
    fits = (not form or re.fullmatch(form, str(value))) and (not known or value in known)
    if value != entry.default and not fits:
        raise ValueError(_expected(entry))
    return value


def _check_of(entry: Setting) -> Any:
    """The tuple or the function that the entry names, or None."""
    module, _, name = entry.declared.check.partition(":")
    return getattr(import_module(module), name) if module else None


def _expected(entry: Setting) -> str:
    if entry.type == "bool":
        return "must be on or off"
    if entry.type in ("int", "float"):
        kind = "a whole number" if entry.type == "int" else "a number"
        return f"must be {kind} from {entry.declared.least or 0:.0f} to {entry.declared.most or math.inf:.0f}"
    return f"must be {entry.declared.expects or ' or '.join(allowed(entry))}"


def _line(entry: Setting, value: str, source: str, wrong: ValueError) -> str:
    shown = _USER.sub("//…@", one_line(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"))
    where = f"{entry.name} = {shown} ({source or 'environment'})" if value else f"{entry.name} is not set"
    return f"{where}: {wrong}"
