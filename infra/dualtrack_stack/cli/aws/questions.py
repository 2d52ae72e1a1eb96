"""The questions that `up` and `down` ask, and how they show their steps."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from dualtrack_stack.cli.command import colour
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Person:
    """The user at the terminal, if there is one. ``asked`` counts the questions."""

    yes: bool = False
    asked: int = 0
    is_there: bool = field(default_factory=sys.stdin.isatty)

    def agrees(self, question: str, *, default: bool = True) -> bool:
        """Yes or no; ``default`` with ``--yes``. Raises `Missing` without a terminal."""
        if self.yes:
            return default
        self._someone(question, "--yes")
        return click.confirm(question, default=default, err=True)

    def says(self, question: str, option: str, check: Callable[[str], str], *, optional: bool = False) -> str:
        """A line; empty for "none" if it is ``optional``. ``check`` returns what is wrong with it."""
        if optional and (self.yes or not self.is_there):
            return ""
        return self._line(question, option, check, hidden=False, optional=optional)

    def keeps_secret(self, question: str, option: str, check: Callable[[str], str], *, optional: bool) -> str:
        """A line whose input is not shown."""
        if optional and (self.yes or not self.is_there):
            return ""
        return self._line(question, option, check, hidden=True, optional=optional)

    def _line(
        self, question: str, option: str, check: Callable[[str], str], *, hidden: bool, optional: bool
    ) -> str:
        self._someone(question, option)
        while True:
            answer = str(
                click.prompt(
                    question,
                    default="" if optional else None,
                    show_default=False,
                    hide_input=hidden,
                    err=True,
                )
            ).strip()
            problem = check(answer) if answer else ("" if optional else "a value is required")
            if not problem:
                return answer
            click.echo(f"   {problem}", err=True)

    def _someone(self, question: str, option: str) -> None:
        if self.yes or not self.is_there:
            raise Missing(f"{question.strip()} There is no terminal to ask: pass {option}.")
        self.asked += 1


@dataclass
class Steps:
    """Numbered steps on stdout; on a terminal, progress within a step overwrites itself."""

    total: int
    number: int = 0
    _is_open: bool = False

    def begin(self, title: str) -> None:
        """The next step."""
        self._close()
        self.number += 1
        click.echo(click.style(f"[{self.number}/{self.total}] {title}", bold=True), color=colour())

    def say(self, text: str) -> None:
        """A line under the step."""
        self._close()
        for line in text.splitlines():
            click.echo(f"      {line}")

    def progress(self, text: str) -> None:
        """The current progress: a line that is replaced on a terminal, otherwise a new line."""
        line = one_line(text, 100)
        if sys.stdout.isatty():
            click.echo(f"\r\x1b[2K      {line}", nl=False)
            self._is_open = True
        else:
            click.echo(f"      {line}")

    def _close(self) -> None:
        if self._is_open:
            click.echo("\r\x1b[2K", nl=False)
            self._is_open = False
