"""However a project's files are broken: they are read, or refused with file and line, and nothing hangs."""

from __future__ import annotations

import json
import os
import random
import re
from typing import TYPE_CHECKING

from dualtrack.credits.plans import PRICE_CLASSES
from dualtrack_stack.project.file import parse_file
from dualtrack_stack.project.model import BadProject, OwnFunction
from dualtrack_stack.project.read import read_project
from dualtrack_stack.project.toml_lines import lines_of
from dualtrack_stack.project.tools import read_tools
from dualtrack_stack.roots import LIBRARY
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

FILE = """# a project
[settings]
DUALTRACK_MODEL = "claude-haiku-5-5"
MCP_SERVERS = [{ name = "docs", url = "https://docs.example/mcp" }]

[stage.prod]
request_rate = 100
[stage.prod.settings]
ALARM_EMAIL = 'operators@example.org'
[[stage.staging.tools.allow]]
actions = ["s3:GetObject"]
resources = ["arn:aws:s3:::orders-{stage}/*"]

[tools]
secrets = [
  "STRIPE_KEY", # why
]
environment.ORDERS = \"""orders
{stage}\"""
memory = 1024

[prices]
booking = 7
"""
TOOL = '''import json
from dataclasses import dataclass
from typing import Annotated, Literal

from dualtrack import tool


@dataclass
class Where:
    """A place."""

    city: str
    days: int = 1


@tool(price="other", effect="reads", seconds=5)
def name(where: Where, unit: Literal["C", "F"] = "C", note: Annotated[str, "why"] = "") -> str:
    """Forecast."""
    return json.dumps([where.city, unit])
'''
PIECES = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        [
            "[",
            "]",
            "{",
            "}",
            '"',
            '"""',
            "'",
            "=",
            "\n",
            "#",
            ".",
            "-1",
            "nan",
            "1979-05-27",
            "\0",
            "(",
            ":",
            "\\",
        ]
    ),
)


def mutated(text: str) -> st.SearchStrategy[str]:
    """The text with some places cut out, repeated or replaced."""
    cut = st.tuples(st.integers(0, len(text)), st.integers(0, 12), PIECES)

    def apply(cuts: list[tuple[int, int, str]]) -> str:
        changed = text
        for begin, length, piece in cuts:
            changed = changed[:begin] + piece + changed[begin + length :]
        return changed

    return st.lists(cut, min_size=1, max_size=3).map(apply)


def problems_of(read: Callable[[], object]) -> str:
    """What a reader complains of; empty if it reads."""
    try:
        read()
    except BadProject as wrong:
        return str(wrong)
    return ""


def told(problems: str, file: str) -> bool:
    """Whether each line names the file and a line of it (a setting's behind its value), and is a sentence."""
    return all(
        re.match(rf"{re.escape(file)}:\d+: .", line) or re.search(rf"\({re.escape(file)}:\d+\): .", line)
        for line in problems.splitlines()
    )


@settings(max_examples=300, deadline=None)
@given(mutated(FILE))
def test_a_broken_file(text: str) -> None:
    assert told(problems_of(lambda: parse_file(text)), "dualtrack.toml")


@settings(max_examples=200, deadline=None)
@given(mutated(FILE))
def test_lines_are_the_texts(text: str) -> None:
    """Of whatever is TOML, every line number is one of the text's, at which the last part of the name stands."""
    try:
        parse_file(text)
    except BadProject:
        return
    lines = text.split("\n")
    for path, line in lines_of(text).items():
        name = next(part for part in reversed(path) if isinstance(part, str))
        assert name in lines[line - 1] or not name.isidentifier(), (path, line)


@settings(max_examples=100, deadline=None)
@given(mutated(json.dumps(json.loads((LIBRARY / "profiles" / "assistant.json").read_text()), indent=1)))
def test_a_broken_profile(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.mktemp("project")
    (root / "profiles").mkdir()
    (root / "profiles" / "assistant.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    assert told(problems_of(lambda: read_project(root, environ={})), "profiles/assistant.json")


def test_broken_tools(tmp_path: Path) -> None:
    """A hundred at once, by one process: of each that cannot be offered one line."""
    seed = random.randrange(10**6)
    choice = random.Random(seed)
    (tmp_path / "tools").mkdir()
    for number in range(100):
        text = TOOL.replace("def name", f"def name{number}")
        for _ in range(choice.randint(1, 3)):
            place = choice.randrange(len(text))
            piece = choice.choice(
                ["", "(", "\n", "  ", "x", '"', "*", "None", "1", "\0", "§", ":", "\\", "pass"]
            )
            text = text[:place] + piece + text[place + choice.randint(0, 4) :]
        (tmp_path / "tools" / f"t{number}.py").write_text(text)
    problems = problems_of(lambda: read_tools(tmp_path, PRICE_CLASSES, OwnFunction(), os.environ))
    assert problems.count("\n") > 10
    assert all(re.match(r"tools/t\d+\.py:\d+: .", line) for line in problems.splitlines()), (seed, problems)
