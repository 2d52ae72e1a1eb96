"""References to the specification, `CONTRACT 4` or `DESIGN 2.5`, lead to a heading of its document."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.drivers.documents import EARLIER_RELEASES, ROOT, project_files

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS: Final = {name: ROOT / "docs" / f"{name.lower()}.md" for name in ("CONTRACT", "DESIGN", "PROFILES")}
SOURCES: Final = ("*.md", "*.py", "*.js", "*.mjs", "*.sh", "*.toml", "*.yaml", "*.lark", "*.css", "*.html")

_NUMBER: Final = r"\d+(?:\.\d+)?"
_BREAK: Final = r"(?: |\n *(?:#|//|\*)? *)"
_REFERENCE: Final = re.compile(
    rf"\b(?P<document>CONTRACT|DESIGN|PROFILES|FACTS){_BREAK}"
    rf"(?P<numbers>{_NUMBER}(?:(?:, | and | to ){_NUMBER})*)"
    r"""(?:, "(?P<part>[^"\n]+)")?"""
)
_FILE: Final = re.compile(r"\b(?:CONTRACT|DESIGN|PROFILES|FACTS)\.md\b")


@cache
def sections(document: str) -> dict[str, str]:
    """The text of each numbered section, those below it included, by its number."""
    text = DOCUMENTS[document].read_text()
    headings = list(re.finditer(rf"^(#{{2,3}}) ({_NUMBER})\.? ", text, re.MULTILINE))
    ends = [
        next((later.start() for later in headings[index:] if len(later[1]) <= len(heading[1])), len(text))
        for index, heading in enumerate(headings, 1)
    ]
    return {heading[2]: text[heading.start() : end] for heading, end in zip(headings, ends, strict=True)}


def dead_references(text: str) -> Iterator[str]:
    """References that lead nowhere: to no document, no section, or no part of one."""
    for file in _FILE.findall(text):
        yield f"{file}: write the number alone"
    for reference in _REFERENCE.finditer(text):
        document, part = reference["document"], reference["part"]
        if document not in DOCUMENTS:
            yield f"{reference[0]}: there is no such document"
            continue
        named = [sections(document).get(number) for number in re.findall(_NUMBER, reference["numbers"])]
        if None in named:
            yield f"{reference[0]}: there is no such section"
        elif part and f"**{part}" not in (named[-1] or "") and f"# {part}" not in (named[-1] or ""):
            yield f"{reference[0]}: there is no such part"


def test_a_reference_leads_to_its_section() -> None:
    paths = [path for path in project_files(*SOURCES) if path != Path(__file__)]
    texts = {path: path.read_text() for path in paths if not path.is_relative_to(EARLIER_RELEASES)}
    assert sum(len(_REFERENCE.findall(text)) for text in texts.values()) > 150
    dead = {str(path.relative_to(ROOT)): list(dead_references(text)) for path, text in texts.items()}
    assert {name: references for name, references in dead.items() if references} == {}


@pytest.mark.parametrize(("document", "last"), [("CONTRACT", 10), ("DESIGN", 9), ("PROFILES", 4)])
def test_sections_are_numbered_without_a_gap(document: str, last: int) -> None:
    whole = [number for number in sections(document) if "." not in number]
    assert whole == [str(number) for number in range(1, last + 1)]


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("(CONTRACT 4)", 0),
        ("CONTRACT 4, 6, DESIGN 2.7", 0),
        ("DESIGN 2.7, 2.15", 0),
        ("DESIGN 2.7, 2.99", 1),
        ("CONTRACT 5 to 8", 0),
        ("CONTRACT 5 to 18", 1),
        ("PROFILES 1 and 3", 0),
        ("PROFILES 7", 1),
        ("(CONTRACT\n    # 44)", 1),
        ('CONTRACT 6, "The window"', 0),
        ('CONTRACT 7, "The window"', 1),
        ("FACTS 14", 1),
        ("PROFILES.md 1", 1),
        ('{"DUALTRACK_PROFILES": "7"}', 0),
    ],
)
def test_a_dead_reference_is_seen(text: str, dead: int) -> None:
    assert len(list(dead_references(text))) == dead
