"""Questions about a graph: which of its tools they need, by words, and answers from the tools' results."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .compared import sides

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .transcript import Outcome, Transcript

Call = tuple[str, dict[str, Any]]

FIND = "find_node"
LIST_RELATED = "list_related"
MARK = "count_related_by_name"
"""The tool that identifies a profile of graphs."""

MAX_SHOWN = 50

_LABELS = {
    "asset": "Asset",
    "location": "Location",
    "place": "Location",
    "system": "System",
    "context": "Context",
}
"""Words for labels; any other word stands for nodes of any label."""

_NAME = r"(?:the )?(?P<name>[^\s?!;\n][^?!;\n]{0,200}?)"
_END = r"(?=[?!;\n]|\.(?:\s|\Z)|,? (?:then|and (?:then )?(?:list|show|tell|how|what|which))\b|\Z)"
_NOUN = r"(?P<noun>[a-z][a-z -]{0,40}?)"
_IN = r"(?:in|inside|within|at|belong(?:s|ing)? to|related to)"


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_QUERY = _rule(r"\b(?:OPTIONAL )?MATCH\s*\([^\n]{1,3900}")
_SCHEMA = _rule(r"\bschema\b|\b(?:which|what) (?:labels|relationship types|properties)\b")
_PATH = _rule(
    rf"\bpath (?:from|between) (?:the )?(?P<from>[^\n?!;]{{1,200}}?) (?:to|and) {_NAME}{_END}"
    rf"|\bhow (?:is|are) (?:the )?(?P<first>[^\n?!;]{{1,200}}?) connected (?:to|with) (?:the )?(?P<second>[^\n?!;]{{1,200}}?){_END}"
)
_BREAKDOWN = _rule(rf"\bbreak ?down\b(?: (?:of|for) {_NAME}{_END})?")
_PER_CATEGORY = _rule(r"\b(?:per|by|each|every) (?:(?P<scope>location|system) )?categor")
_CATEGORIES = _rule(r"\b(?:(?P<scope>location|system) )?categor(?:y|ies)\b")
_FIND_AND_LIST = _rule(rf"\bfind {_NAME},? (?:and|then|and then) (?:list|show)\b")
_CONNECTED = _rule(
    rf"\b(?:what|which nodes?|who) (?:is|are) connected (?:to|with) {_NAME}{_END}|\bconnections of {_NAME.replace('name', 'of')}{_END}"
    rf"|\bwhere is {_NAME.replace('name', 'where')}{_END}"
)
_COUNT_IN = _rule(rf"\bhow many {_NOUN} (?:are |is |do we have )?(?:there )?{_IN} {_NAME}{_END}")
_LIST_IN = _rule(
    rf"\b(?:list|show|which|what) (?:me )?(?:all )?(?:the )?{_NOUN} (?:are |is )?{_IN} {_NAME}{_END}"
)
_COUNT_ALL = _rule(rf"\bhow many {_NOUN}(?: are there| do we have| exist)?(?: in all| in total)?{_END}")
_ANY = _rule(rf"\b(?:do we have|are there) (?:any |some )?{_NOUN}{_END}")
_LIST_ALL = _rule(
    rf"\b(?:list|show|which) (?:me )?(?:all )?(?:the )?{_NOUN}(?: are there| do we have)?{_END}"
)
_THEM = _rule(
    r"\A\W*(?:please )?(?:list|show|name|which|what)(?: me)? (?:all )?(?:of )?(?:them|those|they|are they|are those)\b"
)
_ALSO = _rule(rf"\A\W*(?:and|what about|how about|and what about) (?:{_IN} |for )?{_NAME}{_END}")
_ABOUT = _rule(rf"\b(?:find|look up|tell me about|what is|who is|show) {_NAME}{_END}")


def is_offered(offered: Iterable[str]) -> bool:
    """Whether these are a graph's tools."""
    return MARK in offered


def next_calls(seen: Transcript) -> tuple[Call, ...]:
    """The calls to make now; none to answer."""
    if not seen.outcomes:
        return tuple(_asked(seen.question, _questions_before(seen)))
    last = seen.outcomes[-1]
    if last.tool == FIND and _FIND_AND_LIST.search(seen.question) and not last.is_error:
        nodes = _json(last).get("nodes") or ()
        return tuple((LIST_RELATED, {"node_id": node["node_id"]}) for node in nodes[:1])
    return ()


def _questions_before(seen: Transcript) -> list[str]:
    """The conversation's earlier questions, the latest first."""
    return list(dict.fromkeys(record.question.strip() for record in reversed(seen.past) if record.question))


def _asked(question: str, before: list[str]) -> Iterator[Call]:
    counts = [_count_in(match) for match in _COUNT_IN.finditer(question)]
    if len(counts) > 1:
        yield from counts
        return
    if compared := sides(question):
        yield from (("count_breakdown", {"name": _clean(side)}) for side in compared)
        return
    call = _by_words(question) or _pointing_back(question, before) or _simple(question)
    if call:
        yield call


def _by_words(question: str) -> Call | None:
    for rule, call_of in (
        (_QUERY, lambda match: ("run_query", {"query": match[0].strip()})),
        (_SCHEMA, lambda _: ("get_schema", {})),
        (_PATH, _path),
        (_BREAKDOWN, lambda match: ("count_breakdown", _without_empty(name=match["name"]))),
        (_FIND_AND_LIST, lambda match: (FIND, {"name": _clean(match["name"])})),
        (_CONNECTED, _connected),
        (_COUNT_IN, _count_in),
        (_PER_CATEGORY, lambda match: _per_category(question, match)),
        (
            _CATEGORIES,
            lambda match: ("list_categories", _without_empty(scope=(match["scope"] or "").lower())),
        ),
        (_LIST_IN, lambda match: ("list_related_by_name", _name_and_label(match))),
    ):
        match = rule.search(question)
        if match:
            return call_of(match)
    return None


def _pointing_back(question: str, before: list[str]) -> Call | None:
    """ "List them" asks for what the previous question counted, "and in Y?" the same of another node."""
    listing, also = _THEM.search(question), _ALSO.search(question)
    for earlier in before if listing or also else ():
        match = _COUNT_IN.search(earlier) or _LIST_IN.search(earlier)
        if match and listing:
            return "list_related_by_name", _name_and_label(match)
        if match and also:
            return MARK, {**_name_and_label(match), "name": _clean(also["name"])}
        every = _COUNT_ALL.search(earlier)
        if every and listing and _label(every["noun"]):
            return "list_nodes", {"label": _label(every["noun"])}
    return None


def _simple(question: str) -> Call | None:
    if match := _COUNT_ALL.search(question):
        label = _label(match["noun"])
        return (
            ("count_by_label", {"label": label})
            if label
            else ("count_nodes", {"name": _singular(match["noun"])})
        )
    if match := _ANY.search(question):
        return "count_nodes", {"name": _singular(match["noun"])}
    if (match := _LIST_ALL.search(question)) and _label(match["noun"]):
        return "list_nodes", {"label": _label(match["noun"])}
    if match := _ABOUT.search(question):
        return FIND, {"name": _clean(match["name"])}
    return None


def _count_in(match: re.Match[str]) -> Call:
    return MARK, _name_and_label(match)


def _name_and_label(match: re.Match[str]) -> dict[str, Any]:
    return _without_empty(name=match["name"], target_label=_label(match["noun"]))


def _path(match: re.Match[str]) -> Call:
    start, end = match["from"] or match["first"], match["name"] or match["second"]
    return "find_path", {"from": _clean(start), "to": _clean(end)}


def _connected(match: re.Match[str]) -> Call:
    return "get_node_connections", {"name": _clean(match["name"] or match["of"] or match["where"])}


def _per_category(question: str, match: re.Match[str]) -> Call:
    counted = re.search(rf"\bhow many {_NOUN} (?:are |is |per |by |in )", question, re.IGNORECASE)
    label = _label(counted["noun"]) if counted else ""
    return "count_by_category", {
        "scope": (match["scope"] or "both").lower(),
        **_without_empty(target_label=label),
    }


def _without_empty(**arguments: str | None) -> dict[str, Any]:
    return {name: _clean(value) for name, value in arguments.items() if value}


def _clean(name: str) -> str:
    return " ".join(name.split()).strip("\"“”'` ,.")[:300]


def _label(noun: str | None) -> str:
    return _LABELS.get(_singular(noun or "").rpartition(" ")[2].lower(), "")


def _singular(noun: str) -> str:
    plain = _clean(noun)
    return plain[:-1] if plain.endswith("s") and not plain.endswith("ss") else plain


def answer_from(outcome: Outcome) -> str:
    """The text for a result of a graph's tool."""
    result = _json(outcome)
    if result.get("found") is False:
        return _unknown_name(result)
    if "ambiguous" in result:
        return f"{result['ambiguous']}\n\n{_nodes(result['nodes'])}"
    say = _SAY.get(outcome.tool)
    text = say(result, outcome.input) if say else ""
    return (
        text
        or f"`{outcome.tool}` returned:\n\n```json\n{json.dumps(result, indent=1, ensure_ascii=False)[:3_000]}\n```"
    )


def _json(outcome: Outcome) -> dict[str, Any]:
    """The result as JSON; empty if it was cut or is no JSON."""
    try:
        result = json.loads(outcome.text[outcome.text.find("{") :])
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def _unknown_name(result: dict[str, Any]) -> str:
    if "max_depth" in result:
        return f"No path of at most {result['max_depth']} relationships connects {result['from']['name']} and {result['to']['name']}."
    similar = ", ".join(result.get("similar_names") or ())
    like = f" Similar names: {similar}." if similar else ""
    return f"There is nothing called “{result.get('name') or result.get('node_id')}”.{like}"


def _counted(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    what = f"{arguments['target_label']} nodes" if arguments.get("target_label") else "nodes"
    where = arguments.get("name") or result.get("node", {}).get("name", "it")
    text = f"**{result['total_count']}** {what} are in {where}."
    if len(result["by_label"]) > 1:
        text += f" By label: {_pairs(result['by_label'])}."
    each = [
        f"- {node['name']} ({node['node_id']}): {node['total_count']}"
        for node in result.get("named_nodes", ())
    ]
    return "\n".join(
        [text, *(["", f"{result['named_nodes_count']} nodes have this name:", *each] if each else [])]
    )


def _listed(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    of = arguments.get("name") or result.get("node", {}).get("name") or result.get("label")
    shown = f", of which {result['count']} are shown" if "next_offset" in result or result["offset"] else ""
    return f"{of}: **{result['total_count']}** in all{shown}.\n\n{_nodes(result['nodes'])}"


def _matches(result: dict[str, Any], _: dict[str, Any]) -> str:
    return _nodes(result["nodes"], properties=True)


def _by_name(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    return f"**{result['total_count']}** nodes have “{arguments.get('name')}” in their name: {_pairs(result['by_label'])}."


def _of_label(result: dict[str, Any], _: dict[str, Any]) -> str:
    return f"There are **{result['total_count']}** nodes of the label {result['label']}."


def _connections(result: dict[str, Any], _: dict[str, Any]) -> str:
    arrows = {"out": "→", "in": "←"}
    lines = [
        f"- {arrows[connection['direction']]} {connection['type']} {connection['node']['name']} ({connection['node']['label']})"
        for connection in result["connections"][:MAX_SHOWN]
    ]
    return f"{result['node']['name']} has **{result['total_count']}** connections.\n\n" + "\n".join(lines)


def _broken_down(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    of = f" in {arguments['name']}" if arguments.get("name") else ""
    parts = [f"**{result['total_count']}** {result['target_label']} nodes{of}."]
    for dimension, breakdown in result["by"].items():
        lines = [f"- {group['name']}: {group['count']}" for group in breakdown["groups"][:MAX_SHOWN]]
        parts.append("\n".join([f"By {dimension}:", *lines]))
    return "\n\n".join(parts)


def _per_categories(result: dict[str, Any], _: dict[str, Any]) -> str:
    parts = []
    for scope in ("location", "system"):
        lines = [
            f"- {node['name']}: {node['count']}"
            for node in result.get(scope, {}).get("nodes", ())[:MAX_SHOWN]
        ]
        parts += (
            ["\n".join([f"{result['target_label'] or 'Nodes'} per {scope} category:", *lines])]
            if lines
            else []
        )
    return "\n\n".join(parts)


def _categories(result: dict[str, Any], _: dict[str, Any]) -> str:
    lines = [f"{'  ' * node['depth']}- {node['name']}" for node in result["nodes"][:MAX_SHOWN]]
    return f"There are **{result['total_count']}** categories.\n\n" + "\n".join(lines)


def _passed(result: dict[str, Any], _: dict[str, Any]) -> str:
    names = " – ".join(node["name"] for node in result["nodes"])
    return f"A shortest path has **{result['length']}** relationships: {names}."


def _schema(result: dict[str, Any], _: dict[str, Any]) -> str:
    labels = _pairs({label["label"]: label["count"] for label in result["labels"]})
    types = _pairs(
        {relationship["type"]: relationship["count"] for relationship in result["relationship_types"]}
    )
    return f"Labels: {labels}.\n\nRelationship types: {types}."


def _rows(result: dict[str, Any], _: dict[str, Any]) -> str:
    lines = [
        " | ".join(_cell(value) for value in row) for row in [result["columns"], *result["rows"][:MAX_SHOWN]]
    ]
    lines.insert(1, " | ".join("---" for _ in result["columns"]))
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.replace("|", "\\|").split())[:200]


def _nodes(nodes: list[dict[str, Any]], *, properties: bool = False) -> str:
    return "\n".join(
        f"- {node['name']} ({node['label']}, {node['node_id']})"
        + (f": {_pairs(node['properties'])}" if properties and node.get("properties") else "")
        for node in nodes[:MAX_SHOWN]
    )


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


_SAY = {
    MARK: _counted,
    "count_related": _counted,
    "list_related_by_name": _listed,
    LIST_RELATED: _listed,
    "list_nodes": _listed,
    FIND: _matches,
    "count_nodes": _by_name,
    "count_by_label": _of_label,
    "get_node_connections": _connections,
    "count_breakdown": _broken_down,
    "count_by_category": _per_categories,
    "list_categories": _categories,
    "find_path": _passed,
    "get_schema": _schema,
    "run_query": _rows,
}
TOOLS = frozenset(_SAY)
