"""The tools of servers that an agent finds by searching, since there are too many to send with each request. Pure.

Above `MOST` tools of an agent, or a tenth of its context for those of its servers, whole servers are left to the
search, the largest first. That stays so for a chat, with the version of the catalogue that it has pinned.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, freeze
from dualtrack.indirect_calls import FIND_TOOLS, USE_TOOL
from dualtrack.knowledge.bm25 import rarity, weight
from dualtrack.knowledge.words import Terms, asked, words
from dualtrack.text import cautious_tokens, one_line, preview
from dualtrack.tool_values import ToolResult, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST: Final = 30
PART_OF_CONTEXT: Final = 10
HITS: Final = 5
_SERVERS: Final = "servers"
"""The option of `FIND_TOOLS` with the names of the servers that it searches."""
_K1: Final = 1.2
_B: Final = 0.5
_NAME: Final = 3
"""How often a word of a tool's name counts."""
_MOST_DESCRIPTION: Final = 1_000
_MOST_SCHEMA: Final = 8_000
_MOST_NAMED: Final = 12
_LONG: Final = 24

_QUERY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "description": "What has to be done, in a few words, such as 'merge a pull request'; or a tool's exact name.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}
_CALL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "tool": {"type": "string", "description": "The name of a tool that find_tools has given."},
        "input": {"type": "object", "description": "The tool's input, by its schema."},
    },
    "required": ["tool", "input"],
    "additionalProperties": False,
}


def left_to_search(own: int, wanted: Sequence[ToolSpec], context: int) -> frozenset[str]:
    """The servers whose tools are found by searching; none if all have room beside ``own`` other tools."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter(spec.server for spec in wanted)
    for spec in wanted:
        sizes[spec.server] += cautious_tokens(dumps([spec.description, spec.input_schema]))
    room, tokens = MOST - own, context // PART_OF_CONTEXT
    if len(wanted) <= room and sizes.total() <= tokens:
        return frozenset()
    left = set()
    for server in sorted(sizes, key=lambda server: (sizes[server], server)):
        if counts[server] > room - 2 or sizes[server] > tokens:
            left.add(server)
            continue
        room, tokens = room - counts[server], tokens - sizes[server]
    return frozenset(left)


def finders(searched: Sequence[ToolSpec]) -> Mapping[str, ToolSpec]:
    """The two tools that stand for these."""
    servers: dict[str, list[str]] = {}
    for spec in searched:
        servers.setdefault(spec.server, []).append(spec.name)
    listed = "; ".join(f"{server}: {_named(names)}" for server, names in sorted(servers.items()))
    find = ToolSpec(
        FIND_TOOLS,
        f"Find tools that are not listed here, by what they do. There are {len(searched)}, of {listed}. The result has"
        " the best five with their input schemas; call one with use_tool. Search before you say that something cannot"
        " be done.",
        freeze(_QUERY),
        "mcp",
        options=MappingProxyType({_SERVERS: " ".join(sorted(servers))}),
        effect="reads",
    )
    use = ToolSpec(
        USE_TOOL,
        "Call a tool that find_tools has given, with an input by its schema.",
        freeze(_CALL),
        "mcp",
        effect="reads",
    )
    return {FIND_TOOLS: find, USE_TOOL: use}


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def searched_by(options: Mapping[str, str], tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Those of the catalogue's tools that a call of `FIND_TOOLS` with these options searches."""
    servers = options.get(_SERVERS, "").split()
    return [spec for spec in tools if spec.server in servers]


def found(query: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The tools that suit the query best, at most `HITS`: by BM25 over their names, descriptions and properties. A
    tool's exact name finds that tool alone."""
    if exact := [spec for spec in tools if query.strip() in (spec.name, spec.remote_name)]:
        return tuple(exact[:HITS])
    known = Terms()
    texts = [Counter(_words_of(spec, known)) for spec in tools]
    lengths = [counts.total() for counts in texts]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    holders = Counter(term for counts in texts for term in counts)
    scores = [0.0] * len(tools)
    for term in asked(query):
        if not holders[term]:
            continue
        rare = rarity(len(tools), holders[term])
        for at, counts in enumerate(texts):
            if often := counts[term]:
                scores[at] += weight(rare, often, lengths[at] / mean, _K1, _B)
    best = sorted(range(len(tools)), key=lambda at: (-scores[at], tools[at].name))
    return tuple(tools[at] for at in best[:HITS] if scores[at] > 0)


def _words_of(spec: ToolSpec, known: Terms) -> list[str]:
    properties = spec.input_schema.get("properties", {})
    named = " ".join(properties) if len(properties) <= _LONG else ""
    name = words(f"{spec.server} {spec.remote_name}", known) * _NAME
    return [*name, *words(spec.description, known), *words(named, known)]


def found_result(query: str, tools: Sequence[ToolSpec]) -> ToolResult:
    """What the model reads of a search, which costs nothing."""
    hits = found(query, tools)
    if not hits:
        return ToolResult(
            f"None of the {len(tools)} tools has these words. Search by other words for what has to be done.",
            charged=False,
        )
    told = "\n\n".join(map(_told, hits))
    head = f'{len(hits)} of {len(tools)} tools, the best first. Call one by its name: use_tool {{"tool", "input"}}.'
    return ToolResult(f"{head}\n\n{told}", charged=False, preview=", ".join(spec.name for spec in hits))


def _told(spec: ToolSpec) -> str:
    schema = dumps(spec.input_schema)
    if len(schema) > _MOST_SCHEMA:
        properties = ", ".join(list(spec.input_schema.get("properties", {}))[:_LONG])
        schema = f"of {len(schema):,} characters, too long to show; its properties: {properties}"
    description = preview(one_line(spec.description), _MOST_DESCRIPTION)
    return f"{spec.name}: {description}\nInput schema: {schema}"
