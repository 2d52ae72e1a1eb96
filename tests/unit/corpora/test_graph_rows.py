"""Files of nodes and relationships: what is accepted, and how a bad row or file is refused."""

from __future__ import annotations

import json

import pytest
from dualtrack.corpora.graph.load import counted
from dualtrack.corpora.graph.rows import MAX_PROPERTIES, EdgeRow, Node, rows_of
from dualtrack.corpora.kinds import FileRefused

from tests.drivers.graph_corpus import edges, nodes, table


def test_a_row_of_csv_is_a_node_with_its_properties() -> None:
    data = "\ufeffname,node_id,serial,label\nPump one,a1,007,Asset\n\n,\n".encode()
    first, second = rows_of("x.csv", data)
    assert first == Node(2, "a1", "Asset", "Pump one", {"serial": "007"})
    assert str(second) == "line 4: has 2 fields, the header has 4"


def test_a_value_may_have_quotes_and_lines() -> None:
    (row,) = rows_of("x.csv", b'from,type,to,note\r\na,IN,b,"two\r\nlines, ""one"" value"\r\n')
    assert row == EdgeRow(3, "a", "IN", "b", {"note": 'two\r\nlines, "one" value'})


def test_json_has_nodes_and_edges_with_typed_properties() -> None:
    data = {
        "nodes": [{"node_id": 7, "label": "Asset", "name": "Pump", "n": 1, "ok": True, "none": None}],
        "edges": [{"from": 7, "type": "IN", "to": "8", "weight": 0.5}],
    }
    assert list(rows_of("x.JSON", json.dumps(data).encode())) == [
        Node(1, "7", "Asset", "Pump", {"n": 1, "ok": True}),
        EdgeRow(1, "7", "IN", "8", {"weight": 0.5}),
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (",Asset,Pump", "node_id is empty"),
        ("a,Asset,", "name is empty"),
        (
            "a,As set,Pump",
            "label is 'As set'; it must be a letter of any script, then letters, digits or _, at most 64",
        ),
        ("a,As`set,Pump", "label is 'As`set'"),
        (f"a,{'A' * 65},Pump", f"label is '{'A' * 40}…'"),
        (f"{'a' * 201},Asset,Pump", "node_id has 201 characters; at most 200 are taken"),
        (f"a,Asset,{'n' * 501}", "name has 501 characters; at most 500 are taken"),
        ("a,Asset,Pu\x1bmp", "name has a control character"),
        ("a,Asset", "has 2 fields, the header has 3"),
    ],
)
def test_a_bad_row_is_named_with_its_line(row: str, words: str) -> None:
    _, problems = counted("x.csv", nodes("ok,Asset,Pump", row))
    assert problems.count == 1
    assert str(problems.shown[0]).startswith(f"line 3: {words}")


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (7, "node 1: is not an object"),
        ({"node_id": "a", "label": "A"}, "node 1: has no name"),
        ({"node_id": 1.5, "label": "A", "name": "x"}, "node 1: node_id is not text"),
        ({"node_id": "a", "label": "A", "name": True}, "node 1: name is not text"),
        ({"node_id": "a", "label": "A", "name": "x", "p": [{}]}, "node 1: has an object or a null in p"),
        ({"node_id": "a", "label": "A", "name": "x", "p": 1e999}, ""),
        ({"node_id": "a", "label": "A", "name": "x", "p": "\ud800"}, "node 1: has an invalid character in p"),
        ({"node_id": "\ud800", "label": "A", "name": "x"}, "node 1: node_id has a control character"),
        ({"node_id": "a", "label": "A", "name": "x", "p q": 1}, "node 1: has the property 'p q'"),
        ({"node_id": "a", "label": "A", "name": "x", "To": 1}, "node 1: has the property 'To'"),
        ({"node_id": "a", "label": "A", "name": "x", "_id": 1}, "node 1: has the property '_id'"),
        (
            {"node_id": "a", "label": "A", "name": "x", "p": 1, "P": 2},
            "node 1: has two properties of one name",
        ),
    ],
)
def test_a_bad_object_is_named_with_its_number(node: object, words: str) -> None:
    data = json.dumps({"nodes": [node]}).encode()
    if not words:
        with pytest.raises(FileRefused, match="Infinity is not a number"):
            counted("x.json", data)
        return
    _, problems = counted("x.json", data)
    assert [str(problem)[: len(words)] for problem in problems.shown] == [words]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.csv", b"", "cannot be read: the file is empty"),
        ("x.csv", b"node_id,label,name\n\xff,A,x\n", "not valid UTF-8"),
        ("x.csv", b"a\0b", "NUL"),
        ("x.csv", b"id,label,name\n", "has no header of nodes or relationships"),
        ("x.csv", b"node_id,label,name,from,type,to\n", "has no header of nodes or relationships"),
        ("x.csv", b"node_id,label,name\n", "has no rows"),
        ("x.csv", b"node_id,label,name,a b\n", "has the property 'a b'"),
        ("x.csv", b"node_id,label,name,To\n", "has the property 'To'"),
        ("x.csv", b"node_id,label,name,p,P\n", "two columns of one name"),
        ("x.csv", b"node_id,label,name,p,node_id\n", "two columns of one name"),
        ("x.csv", b'node_id,label,name\na,A,"x\n', "is broken at line 2"),
        ("x.csv", b"node_id,label,name\na,A," + b"x" * 200_000, "is broken at line 2"),
        ("x.json", b"{", "is not valid JSON"),
        ("x.json", b"[" * 100_000, "is not valid JSON"),
        ("x.json", b'{"nodes": [' + b"9" * 10_000 + b"]}", "is not valid JSON"),
        ("x.json", b"[]", "must be"),
        ("x.json", b'{"nodes": 1}', "must have lists"),
        ("x.json", b'{"nodes": [], "more": []}', "must be"),
        ("x.json", b'{"nodes": []}', "has no rows"),
    ],
)
def test_an_invalid_file_is_refused(name: str, data: bytes, words: str) -> None:
    with pytest.raises(FileRefused, match=words.replace("[", r"\[")):
        counted(name, data)


def test_the_number_of_properties_is_limited() -> None:
    header = ",".join(f"p{n}" for n in range(MAX_PROPERTIES + 1))
    with pytest.raises(FileRefused, match="has 101 properties"):
        counted("x.csv", table(f"node_id,label,name,{header}"))


def test_of_many_bad_rows_twenty_are_named() -> None:
    _, problems = counted("x.csv", edges(*["a,,b"] * 30))
    assert (problems.count, len(problems.lines)) == (30, 21)
    assert problems.lines[-1] == "and 10 more"
