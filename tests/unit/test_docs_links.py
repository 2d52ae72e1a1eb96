"""Links of the documents lead somewhere, and so does every mention of a document in the code."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.drivers.documents import DOCUMENTS, EARLIER_RELEASES, ROOT, project_files

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES: Final = ("*.py", "*.sh", "*.toml", "*.yaml", "*.yml", "*.json", "*.mjs", "*.js", ".ci/run")

_FENCED: Final = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`[^`]*`")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_OUTSIDE: Final = re.compile(r"[a-z]+:")
_MENTION: Final = re.compile(r"""\bdocs/[\w/.-]+?\.md\b(?:,? "(?P<heading>[^"\n]+)")?""")


def prose(text: str) -> str:
    """The text without its code."""
    return _CODE.sub("`", _FENCED.sub("", text))


def slug(heading: str) -> str:
    """A heading's anchor as GitHub makes it: small letters, no punctuation, a hyphen for each blank."""
    words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower())
    return words.replace(" ", "-")


@cache
def headings(path: Path) -> tuple[str, ...]:
    """The headings of a document."""
    return tuple(re.findall(r"^#{1,6} +(.+?) *$", _FENCED.sub("", path.read_text()), re.MULTILINE))


def anchors(path: Path) -> set[str]:
    """The anchors of its headings; a repeated heading has a number."""
    seen: Counter[str] = Counter()
    numbered = set()
    for anchor in map(slug, headings(path)):
        numbered.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return numbered


def dead_links(path: Path, text: str) -> Iterator[str]:
    """Links of a document that lead nowhere in this repository."""
    for target in _LINK.findall(prose(text)):
        file, _, anchor = target.partition("#")
        if _OUTSIDE.match(target):
            continue
        linked = (path.parent / file).resolve() if file else path
        if not linked.exists() or not linked.is_relative_to(ROOT):
            yield f"{target}: there is no such file"
        elif anchor and anchor not in anchors(linked):
            yield f"{target}: there is no such heading"


def dead_mentions(text: str) -> Iterator[str]:
    """Documents, and headings of them, that a source names and that are not there."""
    for mention in _MENTION.finditer(text):
        path = ROOT / f"{mention[0].partition('.md')[0]}.md"
        heading = mention["heading"]
        if not path.is_file():
            yield f"{mention[0]}: there is no such file"
        elif heading and not any(known.startswith(heading) for known in headings(path)):
            yield f"{mention[0]}: there is no such heading"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_leads_somewhere(path: Path) -> None:
    assert list(dead_links(path, path.read_text())) == []


def test_what_the_code_says_of_documents_is_there() -> None:
    dead = {
        str(path.relative_to(ROOT)): list(dead_mentions(path.read_text()))
        for path in project_files(*SOURCES)
        if path != Path(__file__) and not path.is_relative_to(EARLIER_RELEASES)
    }
    assert len(dead) > 300
    assert {name: mentions for name, mentions in dead.items() if mentions} == {}


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("[a](docs/aws.md#the-first-day)", 0),
        ("[a](docs/nothing.md)", 1),
        ("[a](docs/aws.md#nothing)", 1),
        ("[a](#deploy)", 0),
        ("[a](#nothing)", 1),
        ("[a](../nothing)", 1),
        ("[a](https://example.org/nothing.md#x)", 0),
        ("`[a](nothing.md)`", 0),
    ],
)
def test_a_dead_link_is_seen(text: str, dead: int) -> None:
    assert len(list(dead_links(ROOT / "README.md", text))) == dead


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ('(docs/aws.md, "The first day")', 0),
        ("docs/aws/costs.md says", 0),
        ("docs/nothing.md says", 1),
        ('(docs/aws.md, "The last day")', 1),
    ],
)
def test_a_dead_mention_is_seen(text: str, dead: int) -> None:
    assert len(list(dead_mentions(text))) == dead


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        (
            "Going back to a moment (prod)",
            "going-back-to-a-moment-prod",
        ),
        ("What one user may hold open", "what-one-user-may-hold-open"),
        ("`stream`: a [reader](x.md)", "stream-a-reader"),
    ],
)
def test_an_anchor_is_github_s(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor
