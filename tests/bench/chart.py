"""A line chart as SVG, for the pictures beside the tables."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH: Final = 760
HEIGHT: Final = 380
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 40
COLOURS: Final = ("#8a8578", "#b0803a", "#5a7fa6", "#1d6259")


def line_chart(title: str, lines: Mapping[str, Sequence[float]], unit: str) -> str:
    """One line per name over 1, 2, 3 …; the legend at the lines' ends."""
    most = max(max(values) for values in lines.values())
    count = max(len(values) for values in lines.values())

    def place(index: int, value: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * index / max(count - 1, 1)
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most

    parts = [_text(LEFT, 22, title, "16", "600")]
    for quarter in range(5):
        _, y = place(0, most * quarter / 4)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{most * quarter / 4:,.0f}", "11", anchor="end"))
    for colour, (name, values) in zip(COLOURS, lines.items(), strict=False):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*pair) for pair in enumerate(values)))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        x, y = place(len(values) - 1, values[-1])
        parts.append(_text(x + 8, y + 4, name, "12", fill=colour))
    parts.append(_text(LEFT, HEIGHT - 12, unit, "11"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _text(
    x: float, y: float, text: str, size: str, weight: str = "400", anchor: str = "start", fill: str = "#444"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{escape(text)}</text>'
    )
