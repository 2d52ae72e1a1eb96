"""Line charts as SVG, for the pictures beside the tables: panels in a row, one legend, a logarithmic scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PANEL, HEIGHT = 430, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 14, 44, 78
COLOURS: Final = ("#8a8578", "#c9a227", "#b0563a", "#5a7fa6", "#8d6ba8", "#1d6259")
EMPHASISED: Final = -1
"""Colours of the lines; the last line, ours, is drawn thicker."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One line per name over 1, 2, 3 …; values above zero. ``form`` formats a value at the axis."""

    title: str
    lines: Mapping[str, Sequence[float]]
    form: str = "{:g}"

    @property
    def decades(self) -> range:
        """The powers of ten between which all values lie."""
        values = [value for line in self.lines.values() for value in line]
        return range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)

    @property
    def count(self) -> int:
        """The length of the longest line."""
        return max(map(len, self.lines.values()))


def line_charts(panels: Sequence[Panel], note: str) -> str:
    """The panels from left to right; a line that is shorter than the others ends in a cross."""
    width = PANEL * len(panels)
    parts = [part for index, panel in enumerate(panels) for part in _panel(panel, index * PANEL)]
    parts += _legend(list(panels[0].lines))
    parts.append(_text(LEFT, HEIGHT - 10, note, "11"))
    title = escape("; ".join(panel.title for panel in panels))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="{title}" font-family="sans-serif">\n'
        f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _panel(panel: Panel, across: float) -> Iterator[str]:
    low, high = panel.decades[0], panel.decades[-1]
    count = panel.count

    def point(index: int, value: float) -> tuple[float, float]:
        x = across + LEFT + (PANEL - LEFT - RIGHT) * index / max(count - 1, 1)
        share = (math.log10(value) - low) / max(high - low, 1)
        return x, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    yield _text(across + LEFT, 24, panel.title, "15", "600")
    for decade in panel.decades:
        x, y = point(0, 10.0**decade)
        yield f'<line x1="{x:.1f}" x2="{across + PANEL - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(x - 8, y + 4, panel.form.format(10.0**decade), "11", anchor="end")
    for quarter in range(5):
        number = max(round(count * quarter / 4), 1)
        x, _ = point(number - 1, 10.0**low)
        yield _text(x, HEIGHT - BOTTOM + 16, str(number), "11", anchor="middle")
    for number, values in enumerate(panel.lines.values()):
        yield from _line(
            [point(*pair) for pair in enumerate(values)], number, len(panel.lines), len(values) < count
        )


def _line(points: Sequence[tuple[float, float]], number: int, lines: int, ends: bool) -> Iterator[str]:
    colour = COLOURS[number % len(COLOURS)]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    width = 3 if number == lines + EMPHASISED else 1.8
    yield f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    if ends:
        x, y = points[-1]
        yield _text(x, y + 5, "✕", "15", "600", "middle", colour)


def _legend(names: Sequence[str]) -> Iterator[str]:
    across: float = LEFT
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        y = HEIGHT - BOTTOM + 42
        yield f'<line x1="{across}" x2="{across + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>'
        yield _text(across + 23, y, name, "12", fill=colour)
        across += 40 + 6.2 * len(name)


def _text(
    x: float, y: float, text: str, size: str, weight: str = "400", anchor: str = "start", fill: str = "#444"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{escape(text)}</text>'
    )
