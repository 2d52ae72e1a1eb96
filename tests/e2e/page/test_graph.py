"""The graph on the page: tool results as tables, a node and its neighbours as a drawing, loading by administrators."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import FilePayload

    from tests.clients.page_reader import Reader


SHAPE = """async (text) => {
    const { shapeOf } = await import("/js/graph_result.js");
    const { layout, wrapped } = await import("/js/graph_drawing.js");
    const shape = shapeOf(text);
    if (!shape) return null;
    const drawn = shape.neighbours && layout(shape.neighbours);
    return {
        tables: shape.tables.map(({ title, columns, rows, total }) => ({ title, columns, rows: rows.length, first: rows[0], total })),
        drawn: drawn && { nodes: drawn.groups.flatMap(group => group.nodes.map(node => node.name)), hidden: drawn.hidden, height: drawn.height },
        lines: shape.neighbours && wrapped(shape.neighbours.node.name, 12),
    };
}"""


def node(name: str, **properties: Any) -> dict[str, Any]:
    return {"node_id": f"id-{name}", "label": "Asset", "name": name, "properties": properties}


def shape(reader: Reader, result: Any) -> Any:
    return reader.page.evaluate(SHAPE, result if isinstance(result, str) else json.dumps(result))


def test_results_become_tables_of_bounded_size(reader: Reader) -> None:
    (listed,) = shape(reader, {"found": True, "total_count": 900, "nodes": [node("a", floor=2), node("b")]})[
        "tables"
    ]
    assert listed == {
        "title": "nodes",
        "columns": ["node_id", "label", "name", "floor"],
        "rows": 2,
        "first": ["id-a", "Asset", "a", "2"],
        "total": 900,
    }
    (rows,) = shape(reader, {"columns": ["n"] * 20, "rows": [["x" * 300] * 20] * 250})["tables"]
    assert (rows["rows"], rows["total"], len(rows["columns"]), len(rows["first"][0])) == (200, 250, 12, 160)
    deep = '{"x":' * 2_000 + '[{"a": 1}]' + "}" * 2_000
    useless: tuple[Any, ...] = (
        "no JSON",
        "[1, 2]",
        '"text"',
        {"total_count": 5},
        {"nodes": []},
        {"nodes": [1]},
        deep,
    )
    for nothing in useless:
        assert shape(reader, nothing) is None


def test_a_sample_of_many_neighbours_has_every_group(reader: Reader) -> None:
    connections = [
        {"direction": way, "type": kind, "node": node(f"{kind} {n}")}
        for way, kind, count in (("in", "LOCATED_IN", 50), ("out", "IN_CATEGORY", 2))
        for n in range(count)
    ]
    result = {
        "node": node("A place with a name of many words indeed"),
        "total_count": 5_000,
        "connections": connections,
    }
    seen = shape(reader, result)
    names = seen["drawn"]["nodes"]
    assert (len(names), names[-1], seen["drawn"]["hidden"]) == (14, "IN_CATEGORY 1", 4_986)
    assert seen["lines"] == ["A place with", "a name of", "many words", "indeed"]
    assert [table["total"] for table in seen["tables"]] == [52]
    few = shape(reader, {**result, "total_count": 15, "connections": connections[:15]})
    assert (len(few["drawn"]["nodes"]), few["drawn"]["hidden"]) == (15, 0)
    long = shape(reader, {**result, "node": node("x" * 5_000)})
    assert max(map(len, long["lines"])) <= 12


def test_a_node_is_drawn_with_its_neighbours_and_one_of_them_can_be_asked_about(reader: Reader) -> None:
    reader.page.locator(".agent", has_text="Graph").click()
    reader.send("What is connected to Biofilter 11?")
    reader.exchange("done").locator(".steps > summary").click()
    reader.page.get_by_role("button", name="Record q1-t1").first.click()
    drawing = reader.page.get_by_role("group", name="Biofilter 11 and its neighbours")
    drawing.wait_for()
    assert reader.page.get_by_role("region", name="connections").is_visible()
    drawing.get_by_role("button", name="Biofilter 11 Valve Gallery").focus()
    reader.page.keyboard.press("Enter")
    assert reader.field.input_value() == "What is connected to Biofilter 11 Valve Gallery?"
    assert not reader.page.get_by_role("dialog").is_visible()


def test_administrators_load_the_graph_and_see_which_rows_are_bad(visit: Callable[..., Reader]) -> None:
    reader = visit()
    reader.sign_in(admin=True)
    reader.page.get_by_role("button", name="Graph", exact=True).click()
    view = reader.page.get_by_role("region", name="Graph", exact=True)
    labels = view.get_by_text("Asset 430, Category 30")
    labels.wait_for()
    bad: FilePayload = {"name": "bad.csv", "mimeType": "", "buffer": b"from,type,to\na,LOCATED IN,b\n"}
    view.get_by_label("Choose files").set_input_files([bad])
    view.locator(".job-head", has_text="Nothing was loaded: bad.csv has 1 bad row.").wait_for()
    assert "line 2: type is 'LOCATED IN'" in view.locator(".job-file").inner_text()
    assert labels.is_visible()
