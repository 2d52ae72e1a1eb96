"""``python -m dualtrack_stack.setting_tables``: the tables of settings in the documents, from their declarations.

A table stands between ``<!-- settings: NAME -->`` and ``<!-- end of settings -->``: one of
`dualtrack.settings.Table`, or ``stage``, the fields of ``[stage]`` in the words of
`dualtrack_stack.stages.StageSettings`.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final

from dualtrack.settings import declared, text_of

from dualtrack_stack.roots import OURS
from dualtrack_stack.stages import StageSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.settings import Setting

DOCUMENTS: Final = ("docs/settings.md", "docs/aws/settings.md", "docs/mcp.md", "docs/terminal.md")

_PLACE: Final = re.compile(
    r"(?P<begin><!-- settings: (?P<name>[\w ]+) -->\n).*?(?P<end><!-- end of settings -->)", re.DOTALL
)
_FIELD: Final = re.compile(
    r"^(``\w+``(?:, ``\w+``)*): (.*?)(?=^``\w+``(?:, ``\w+``)*: |\Z)", re.DOTALL | re.MULTILINE
)


def filled(document: str) -> str:
    """The document with its tables made anew."""
    return _PLACE.sub(lambda place: f"{place['begin']}{table(place['name'])}\n{place['end']}", document)


def table(name: str) -> str:
    """A table's lines; a link is as its entry has it."""
    rows = _of_stage() if name == "stage" else _of_settings(name)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _of_stage() -> Iterator[tuple[str, str]]:
    yield from (("field", "what it does"), ("---", "---"))
    for names, words in _FIELD.findall(inspect.getdoc(StageSettings) or ""):
        text = re.sub(r"\(docs/(\w+)\.md\)", r"([\1](../\1.md))", " ".join(words.split()))
        yield names.replace("``", "`"), text.replace("``", "`")


def _of_settings(name: str) -> Iterator[tuple[str, str, str]]:
    yield from (("variable", "default", "what it does"), ("---", "---", "---"))
    for entry in declared().values():
        if entry.declared.table == name:
            yield f"`{entry.name}`", _default(entry), entry.declared.about + _range(entry)


def _default(entry: Setting) -> str:
    text = entry.declared.or_else.upper() or text_of(entry.default)
    return entry.declared.unset or (f"`{text}`" if text else "none")


def _range(entry: Setting) -> str:
    least, most = entry.declared.least, entry.declared.most
    return "" if least is None or most is None else f" ({least:g} to {most:,g})"


def main() -> None:
    """Write the tables."""
    for name in DOCUMENTS:
        path = OURS / name
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
