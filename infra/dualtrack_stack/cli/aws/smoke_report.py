"""The report of `smoke`: Markdown, and a picture of the seconds as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dualtrack_stack.cli.aws.checks import CheckResult, Probe

PICTURE: Final = "seconds.svg"
_WIDTH, _ROW, _LEFT, _RIGHT = 760, 22, 190, 90
_COLOURS: Final = {"passed": "#1d6259", "failed": "#b0563a", "not reached": "#8a8578"}


def measures(probe: Probe) -> list[tuple[str, str]]:
    """The measurements, as (name, figure)."""
    measurements = []
    for name, title in (
        ("first", "first chat of the run (cold, if nobody used the stack just before)"),
        ("second", "second chat, one tool"),
    ):
        if timed := probe.timed.get(name):
            figures = f"accepted {timed.accepted:.2f} s, first token {timed.first_token:.2f} s, done {timed.done:.2f} s"
            measurements.append((title, figures))
    if totals := probe.receipt.get("totals"):
        measurements.append(
            ("cost of the second chat", f"${totals['dollars']:.6f}, {totals['credits']} credits")
        )
    return measurements


def markdown(url: str, when: str, results: Sequence[CheckResult], measured: Iterable[tuple[str, str]]) -> str:
    """The whole report."""
    passed = sum(result.state == "passed" for result in results)
    rows = "\n".join(
        f"| {_cell(result.name)} | {_cell(result.expected)} | {_cell(result.seen)} | {result.state} | {result.seconds:.2f} |"
        for result in results
    )
    figures = "\n".join(f"| {_cell(what)} | {_cell(figure)} |" for what, figure in measured)
    return (
        f"# {url}\n\n{when}: {passed} of {len(results)} checks passed.\n\n![Seconds of each check]({PICTURE})\n\n"
        f"| measured | |\n|---|---|\n{figures}\n\n"
        f"| check | expected | seen | | seconds |\n|---|---|---|---|---:|\n{rows}\n"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def picture(results: Sequence[CheckResult]) -> str:
    """A bar for each check, by its seconds."""
    height = _ROW * len(results) + 50
    most = max((result.seconds for result in results), default=0) or 1
    parts = [_text(_LEFT, 22, "Seconds of each check", 15, "600")]
    for number, result in enumerate(results):
        y = 36 + _ROW * number
        width = max((_WIDTH - _LEFT - _RIGHT) * result.seconds / most, 1)
        parts.append(_text(_LEFT - 8, y + 14, result.name, 12, anchor="end"))
        parts.append(
            f'<rect x="{_LEFT}" y="{y + 3}" width="{width:.1f}" height="14" fill="{_COLOURS[result.state]}"/>'
        )
        note = f"{result.seconds:.2f}" if result.state == "passed" else f"{result.seconds:.2f} {result.state}"
        parts.append(_text(_LEFT + width + 6, y + 14, note, 11))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Seconds of each check" font-family="sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, size: int, weight: str = "400", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="#444">{escape(text)}</text>'
    )


def write(folder: Path, report: str, drawn: str) -> Path:
    """Write both files; returns the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PICTURE).write_text(drawn, encoding="utf-8")
    path = folder / "report.md"
    path.write_text(report, encoding="utf-8")
    return path
