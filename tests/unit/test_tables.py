"""Only the storage layer knows tables: no other module names a key, an expression or an index."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

LIBRARY: Final = Path(__file__).parents[2] / "layers" / "core" / "python" / "dualtrack"

_OF_THE_PROTOCOL: Final = frozenset({"Action", "ConditionFailed", "until_kept"})
"""What other rooms know of `dualtrack.storage.dynamo`: a write to hand on, and that one was lost."""

_KEYS: Final = frozenset({"pk", "sk"})
_WORDS: Final = ("Expression", "attribute_exists", "attribute_not_exists", "begins_with(", "IndexName")
_CALLS: Final = frozenset(
    {
        *("get_item", "put_item", "update_item", "delete_item", "query", "scan"),
        *("batch_get_item", "batch_write_item", "transact_write_items", "transact_get_items"),
    }
)


def _knows_a_table(source: str) -> list[str]:
    """The words of a source that belong to tables: keys, expressions, requests, the helpers that build them."""
    words: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            words += [text] if text in _KEYS or any(word in text for word in _WORDS) else []
        elif isinstance(node, ast.keyword) and "Expression" in (node.arg or ""):
            words.append(str(node.arg))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words += [node.func.attr] if node.func.attr in _CALLS else []
        elif isinstance(node, ast.ImportFrom):
            words += _table_imports(node)
    return words


def _table_imports(node: ast.ImportFrom) -> list[str]:
    names = {alias.name for alias in node.names}
    if node.module == "dualtrack.storage":
        return sorted(names & {"dynamo"})
    return sorted(names - _OF_THE_PROTOCOL) if node.module == "dualtrack.storage.dynamo" else []


def test_only_storage_knows_tables() -> None:
    """And each plug-in's ``store.py``."""
    functions = LIBRARY.parents[3] / "functions"
    stores = {*LIBRARY.glob("plugins/*/store.py")}
    sources = [
        path
        for root in (LIBRARY, functions)
        for path in sorted(root.rglob("*.py"))
        if LIBRARY / "storage" not in path.parents and path not in stores
    ]
    known = {str(path): words for path in sources if (words := _knows_a_table(path.read_text()))}
    assert known == {}
    assert len(sources) > 50


def test_knowledge_of_a_table_is_reported() -> None:
    source = """
from dualtrack.storage import dynamo
from dualtrack.storage.dynamo import ConditionFailed, to_wire
client.query(TableName="chats", KeyConditionExpression="#open = :shard")
key = {"pk": "USER#ann"}
free = "attribute_not_exists(lease)"
"""
    assert sorted(_knows_a_table(source)) == sorted(
        ["dynamo", "to_wire", "query", "KeyConditionExpression", "pk", "attribute_not_exists(lease)"]
    )
