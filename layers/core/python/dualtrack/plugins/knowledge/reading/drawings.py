"""What is drawn on a sheet or slide: text boxes and diagrams are read, charts read and counted, pictures counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.plugins.knowledge.reading.equations import equation
from dualtrack.plugins.knowledge.reading.office import attribute, children, local, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from dualtrack.plugins.knowledge.reading.blocks import Blocks
    from dualtrack.plugins.knowledge.reading.office import Package


def read_drawing(package: Package, name: str, root: etree._Element, blocks: Blocks) -> None:
    """Add the texts of a sheet's drawing."""
    stack = [root]
    while stack:
        item = stack.pop()
        kind = local(item)
        if kind == "txBody":
            blocks.text(
                "\n".join(filter(None, (line_of(part) for part in children(item) if local(part) == "p")))
            )
            continue
        if kind == "pic":
            blocks.leave_out("pictures")
        elif kind in {"chart", "relIds"}:
            relation = attribute(item, "id" if kind == "chart" else "dm")
            for line in related(package, name, relation, "charts" if kind == "chart" else "diagrams", blocks):
                blocks.text(line)
        elif kind == "cNvPr" and (described := attribute(item, "descr").strip()):
            blocks.text(f"[{described}]")
        stack.extend(reversed(list(children(item))))


def line_of(paragraph: etree._Element) -> str:
    """A paragraph of a shape."""
    parts = []
    for item in children(paragraph):
        kind = local(item)
        if kind in {"r", "fld"}:
            parts += [part.text or "" for part in children(item) if local(part) == "t"]
        elif kind == "br":
            parts.append("\n")
        elif kind in {"oMath", "oMathPara"}:
            parts.append(equation(item))
        elif kind == "m":
            parts.append("".join(equation(part) for part in children(item)))
    return "".join(parts).strip()


def related(package: Package, name: str, relation: str, what: str, blocks: Blocks) -> Iterator[str]:
    """The lines of a diagram. A chart has its titles and the names of its data here; it is counted all the same."""
    target = package.relations(name).get(relation)
    root = package.xml(target.target) if target and target.target else None
    if root is not None:
        yield from lines_of(root)
    if root is None or what == "charts":
        blocks.leave_out(what)


def lines_of(root: etree._Element) -> Iterator[str]:
    """The texts of a diagram's or chart's part."""
    for item in root.iter():
        kind = local(item)
        if kind == "p":
            line = "".join(part.text or "" for part in item.iter() if local(part) == "t").strip()
        elif kind == "v" and any(local(above) == "strCache" for above in item.iterancestors()):
            line = text_of(item).strip()
        else:
            continue
        if line:
            yield line
