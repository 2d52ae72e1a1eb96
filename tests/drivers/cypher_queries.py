"""Queries that a model may write, statements that it may not, and disguises of those."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

PARAMETERS: Final[Mapping[str, Any]] = {"name": "Pump 1", "sizes": [1, 2, 3], "least": 2, "nothing": None}

LEGAL: Final = (
    "RETURN 1",
    "RETURN 1;",
    "return 1 as one",
    "RETURN 1 AS `two words`",
    "RETURN 'a\\'b', \"c\\\"d\", '\\u00e9\\n'",
    "RETURN 1 + 2 * 3 - 4 / 2 % 3 ^ 2 AS x",
    "RETURN 1-2, 5-3-1, -1, - - 1",
    "RETURN 1.5e3, 2.0, 1e-3",
    "RETURN TRUE AND NOT FALSE OR NULL IS NULL XOR TRUE",
    "RETURN [1, 2, 3][1], [1, 2, 3][1..2], [1, 2, 3][2:], [1, 2, 3][:2]",
    "RETURN {a: 1, b: 'x'} AS s",
    "RETURN {a: 1}.a",
    "RETURN CASE WHEN 1 = 2 THEN 'a' ELSE 'b' END AS c",
    "RETURN CASE 3 WHEN 3 THEN 'three' WHEN 4 THEN 'four' END AS c",
    "RETURN $name, $least + 1, $nothing IS NULL",
    "RETURN size($sizes)",
    "RETURN CAST('1' AS INT64) + 1",
    "RETURN CAST(1 AS STRING)",
    "RETURN date('2026-11-22'), date_part('year', date('2026-11-22'))",
    "RETURN upper('a') + lower('B')",
    "RETURN coalesce(NULL, 'x'), nullif(1, 1)",
    "RETURN any(x IN [1, 2, 3] WHERE x > $least)",
    "RETURN all(x IN [1, 2] WHERE x > 0), none(x IN [1] WHERE x > 2), single(x IN [1, 2] WHERE x = 2)",
    "RETURN list_filter([1, 2, 3], x -> x > 1), list_transform(['a'], x -> x + 'b')",
    "RETURN // a comment\n 1 /* and CREATE (another) */",
    "RETURN 'CREATE (a); DROP TABLE Asset // COPY'",
    "UNWIND [1, 2, 3] AS x RETURN x",
    "UNWIND $sizes AS x RETURN sum(x), avg(x), min(x), max(x), count(x), collect(x)",
    "UNWIND range(1, 5) AS x WITH x WHERE x % 2 = 0 RETURN x",
    "UNWIND [3, 1, 2] AS x RETURN x ORDER BY x DESC SKIP 1 LIMIT 1",
    "UNWIND [1, 1, 2] AS x RETURN DISTINCT x",
    "UNWIND [1, 1, 2] AS x RETURN count(DISTINCT x)",
    "WITH 1 AS x, 2 AS y RETURN x + y AS z",
    "WITH 1 AS x WITH x + 1 AS y WITH y * 2 AS z RETURN z",
    "WITH 1 AS x RETURN *",
    "MATCH (a) RETURN count(*)",
    "MATCH (a:Asset) RETURN a",
    "MATCH (:Asset) RETURN count(*) AS n",
    "match (a:Asset) where a.name = 'Pump 1' return a.node_id",
    "MATCH (a:`Asset`) RETURN a.`name`",
    "MATCH (a:Asset {name: 'Pump 1'}) RETURN a.size",
    "MATCH (a:Asset {name: $name, size: 1}) RETURN a",
    "MATCH (a:Asset|Location) RETURN count(a)",
    "MATCH (a:Asset:Location) RETURN count(a)",
    "MATCH (a:Asset) WHERE a.name STARTS WITH 'Pump' RETURN count(a)",
    "MATCH (a:Asset) WHERE a.name ENDS WITH '1' OR a.name CONTAINS '2' RETURN a.name",
    "MATCH (a:Asset) WHERE a.name =~ 'Pump [0-9]+' RETURN count(a)",
    "MATCH (a:Asset) WHERE a.size IN [1, 2, 3] RETURN a.name ORDER BY a.name",
    "MATCH (a:Asset) WHERE a.size IN $sizes RETURN a.name",
    "MATCH (a:Asset) WHERE NOT a.size IN [1] RETURN count(a)",
    "MATCH (a:Asset) WHERE a.size IS NOT NULL AND a.weight IS NULL RETURN a.name",
    "MATCH (a:Asset) WHERE a.size >= 1 AND a.size <> 2 AND a.size <= 9 AND a.size < 10 RETURN a.size",
    "MATCH (a:Asset) WHERE 0 < a.size RETURN count(a)",
    "MATCH (a:Asset) WHERE (a.size) - (1) = 0 RETURN a.name",
    "MATCH (a:Asset) WHERE a.active RETURN count(a)",
    "MATCH (a:Asset) RETURN a.name, a.size * 2 AS double_size ORDER BY double_size DESC, a.name ASC LIMIT 5",
    "MATCH (a:Asset) RETURN a.status AS status, count(*) AS n ORDER BY n DESC",
    "MATCH (a:Asset) WITH a.status AS status, count(*) AS n WHERE n > 1 RETURN status, n",
    "MATCH (a:Asset) RETURN avg(a.size), sum(a.weight), collect(a.name)",
    "MATCH (a:Asset) RETURN label(a), labels(a), id(a), properties(a), keys(a) LIMIT 1",
    "MATCH (a:Asset) RETURN a.* LIMIT 1",
    "MATCH (a)-->(b) RETURN count(*)",
    "MATCH (a)--(b) RETURN count(*)",
    "MATCH (a)<--(b) RETURN count(*)",
    "MATCH (a)-[r]->(b) RETURN type(r), label(r), r.since LIMIT 3",
    "MATCH (a)-[r]-(b) RETURN DISTINCT label(a), label(r), label(b)",
    "MATCH (a:Asset)-[:LOCATED_IN]->(l:Location {name: 'Hall'}) RETURN count(DISTINCT a) AS n",
    "MATCH (l:Location)<-[:LOCATED_IN]-(a:Asset) RETURN l.name, count(a) ORDER BY l.name",
    "MATCH (a)-[:LOCATED_IN|PART_OF]->(b) RETURN count(*)",
    "MATCH (a)-[r:LOCATED_IN {since: 2020}]->(b) RETURN a.name",
    "MATCH (a:Asset)-[:LOCATED_IN*1..3]->(b:Location) RETURN DISTINCT b.name",
    "MATCH (a:Asset)-[:LOCATED_IN*2]->(b) RETURN b.name",
    "MATCH (a:Asset)-[*..2]->(b) RETURN count(*)",
    "MATCH (a:Asset)-[r:LOCATED_IN*1..2]->(b) RETURN length(r), nodes(r), rels(r)",
    "MATCH (a:Asset)-[:LOCATED_IN*1..2 (r, n | WHERE r.since > 2000)]->(b) RETURN count(*)",
    "MATCH p = (a:Asset)-[:LOCATED_IN]->(b) RETURN p LIMIT 1",
    "MATCH p = (a:Asset {name: $name})-[* SHORTEST 1..4]-(b:System) RETURN length(p), nodes(p)",
    "MATCH p = (a:Asset)-[* ALL SHORTEST 1..4]-(b:System) RETURN count(p)",
    "MATCH (a:Asset), (s:System) RETURN count(*)",
    "MATCH (a:Asset)-[:LOCATED_IN]->(l)<-[:LOCATED_IN]-(b:Asset) WHERE a.node_id < b.node_id RETURN a.name, b.name",
    "MATCH (a:Asset) MATCH (a)-[:PART_OF]->(s) RETURN a.name, s.name",
    "MATCH (a:Asset) OPTIONAL MATCH (a)-[:PART_OF]->(s:System) RETURN a.name, s.name",
    "MATCH (a:Asset) OPTIONAL MATCH (a)-[:PART_OF]->(s) WITH a, count(s) AS n WHERE n = 0 RETURN a.name",
    "MATCH (a:Asset) WHERE (a)-[:PART_OF]->() RETURN a.name",
    "MATCH (a:Asset) WHERE NOT (a)-[:PART_OF]->(:System {name: 'Water'}) AND a.size - 1 > 0 RETURN a.name",
    "MATCH (a:Asset) WHERE EXISTS { MATCH (a)-[:PART_OF]->(s) WHERE s.name = 'Water' } RETURN a.name",
    "MATCH (a:Asset) WHERE exists { (a)-[:PART_OF]->() } RETURN count(a)",
    "MATCH (l:Location) WHERE COUNT { (l)<-[:LOCATED_IN]-(:Asset) } > 1 RETURN l.name",
    "MATCH (l:Location) RETURN l.name, COUNT { MATCH (l)<-[:LOCATED_IN]-(a) } AS n",
    "MATCH (a:Asset) RETURN a.name AS n UNION MATCH (l:Location) RETURN l.name AS n",
    "MATCH (a:Asset) RETURN a.name AS n UNION ALL MATCH (a:Asset) RETURN a.name AS n",
    "MATCH (a:Asset) WITH a ORDER BY a.size DESC LIMIT 2 RETURN a.name",
    "MATCH (a:Asset) RETURN a.name SKIP $least LIMIT $least",
    "MATCH (a:Asset) RETURN a.status IS NULL AS missing, count(*) ORDER BY missing",
    "MATCH (größe:Asset) RETURN größe.name",
)  # fmt: skip
"""Each passes the guard and runs on the engine."""

STATEMENTS: Final = (
    "CREATE (a:Asset {node_id: 'x'})",
    "MATCH (a:Asset) CREATE (b:Asset {node_id: 'y'})",
    "MERGE (a:Asset {node_id: 'x'})",
    "MATCH (a:Asset) MERGE (a)-[:PART_OF]->(b:System {node_id: 'z'})",
    "MATCH (a:Asset) SET a.name = 'x'",
    "MATCH (a:Asset) SET a.name = 'x' RETURN a",
    "MATCH (a:Asset) REMOVE a.name",
    "MATCH (a:Asset) DELETE a",
    "MATCH (a:Asset) DETACH DELETE a",
    "MATCH (a)-[r]->(b) DELETE r RETURN 1",
    "CREATE NODE TABLE X(id STRING PRIMARY KEY)",
    "CREATE REL TABLE X(FROM Asset TO Asset)",
    "CREATE MACRO f(x) AS x + 1",
    "CREATE SEQUENCE s",
    "CREATE TYPE t AS INT64",
    "DROP TABLE Asset",
    "DROP TABLE IF EXISTS Asset",
    "ALTER TABLE Asset ADD x INT64",
    "ALTER TABLE Asset RENAME TO Other",
    "COMMENT ON TABLE Asset IS 'x'",
    "CALL show_tables() RETURN *",
    "CALL threads=4",
    "CALL current_setting('threads') RETURN *",
    "CALL show_functions() YIELD name RETURN name",
    "MATCH (a:Asset) CALL show_tables() RETURN *",
    "CALL { MATCH (a) RETURN a } RETURN a",
    "CALL project_graph('g', ['Asset'], ['PART_OF'])",
    "LOAD FROM '/etc/passwd' RETURN *",
    "LOAD FROM '/etc/passwd' (file_type='csv', delim=':') RETURN *",
    "LOAD WITH HEADERS (a STRING) FROM '/etc/passwd' RETURN *",
    "LOAD EXTENSION httpfs",
    "MATCH (a:Asset) LOAD FROM '/etc/passwd' RETURN *",
    "COPY Asset FROM '/tmp/x.csv'",
    "COPY Asset TO '/tmp/x.csv'",
    "COPY (MATCH (a:Asset) RETURN a.name) TO '/tmp/x.csv'",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "INSTALL httpfs",
    "UPDATE EXTENSION httpfs",
    "UNINSTALL httpfs",
    "ATTACH '/tmp/other' AS other (dbtype lbug)",
    "DETACH other",
    "USE other",
    "USE GRAPH other",
    "BEGIN TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "CHECKPOINT",
    "EXPLAIN MATCH (a) RETURN a",
    "PROFILE MATCH (a) RETURN a",
    "FOREACH (x IN [1] | CREATE (a:Asset {node_id: 'q'}))",
    "RETURN nextval('s')",
    "RETURN currval('s')",
    "RETURN setseed(0.5)",
    "RETURN error('x')",
    "RETURN current_setting('threads')",
    "RETURN gen_random_uuid()",
    "MATCH (a:Asset) HINT a RETURN a",
    "MATCH (a:Asset) RETURN a INTO OUTFILE '/tmp/x'",
)
"""None is a single read statement in the language that the guard accepts."""

DRESSES: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "lower case": str.lower,
    "mixed case": str.swapcase,
    "comments between": lambda text: text.replace(" ", "/**/"),
    "line comments between": lambda text: text.replace(" ", " // RETURN 1\n"),
    "comment before": lambda text: f"/* MATCH (a) RETURN a */ {text}",
    "line comment before": lambda text: f"// MATCH (a) RETURN a\n{text}",
    "new lines": lambda text: text.replace(" ", "\r\n\t"),
    "spaces of Unicode": lambda text: text.replace(" ", "\u2003"),
    "full-width letters": lambda text: "".join(
        chr(ord(letter) + 0xFEE0) if letter.isalpha() and letter.isascii() else letter for letter in text
    ),
    "long s": lambda text: text.replace("S", "ſ").replace("s", "ſ"),
    "Kelvin sign": lambda text: text.replace("K", "\u212a").replace("k", "\u212a"),
    "zero width": lambda text: f"\u200b{text}",
    "byte order mark": lambda text: f"\ufeff{text}",
    "behind a read": lambda text: f"MATCH (a:Asset) RETURN a; {text}",
    "before a read": lambda text: f"{text}; MATCH (a:Asset) RETURN a",
    "behind a WITH": lambda text: f"WITH 1 AS x {text}",
    "behind a return": lambda text: f"RETURN 1 {text}",
    "behind a union": lambda text: f"RETURN 1 UNION {text}",
    "in a subquery": lambda text: f"MATCH (a) WHERE EXISTS {{ {text} }} RETURN a",
    "in brackets": lambda text: f"RETURN ({text})",
    "in a case": lambda text: f"RETURN CASE WHEN TRUE THEN {text} END",
    "in a lambda": lambda text: f"RETURN list_transform([1], x -> {text})",
    "as a map's value": lambda text: f"RETURN {{a: {text}}}",
    "behind a string left open": lambda text: f"RETURN 'a\\' {text}",
    "out of a name": lambda text: f"MATCH (`a`) RETURN 1 AS `x` {text} //`",
    "behind a NUL": lambda text: f"RETURN 1 \0 {text}",
    "explained": lambda text: f"EXPLAIN {text}",
    "profiled": lambda text: f"PROFILE {text}",
}

PIECES: Final = tuple(
    dict.fromkeys(
        piece
        for query in (*LEGAL, *STATEMENTS)
        for piece in re.findall(r"'[^']*'|`[^`]*`|\w+|[^\w\s]", query)
    )
)
"""What the queries and statements here are made of."""


def mutations(randomness: random.Random, number: int) -> Iterator[str]:
    """Legal queries mutated with pieces of statements: inserted, removed, doubled, swapped, joined."""
    for _ in range(number):
        query = randomness.choice(LEGAL)
        for _ in range(randomness.randint(1, 3)):
            query = _mutated(randomness, query)
        yield query


def _mutated(randomness: random.Random, query: str) -> str:
    pieces = re.findall(r"'[^']*'|`[^`]*`|\w+|\s+|[^\w\s]", query) or [""]
    index = randomness.randrange(len(pieces))
    match randomness.randrange(7):
        case 0:
            pieces.insert(index, f" {randomness.choice(PIECES)} ")
        case 1:
            del pieces[index]
        case 2:
            pieces[index] = randomness.choice(PIECES)
        case 3:
            pieces[index:index] = [" ", randomness.choice(STATEMENTS), " "]
        case 4:
            pieces[index] = randomness.choice(tuple(DRESSES.values()))(pieces[index])
        case 5:
            other = randomness.randrange(len(pieces))
            pieces[index], pieces[other] = pieces[other], pieces[index]
        case _:
            at = randomness.randrange(len(query) + 1)
            return (
                query[:at]
                + chr(randomness.choice((randomness.randrange(128), randomness.randrange(0x3000))))
                + query[at:]
            )
    return "".join(pieces)
