"""The guard: a single read statement is rewritten, everything else is refused before the engine sees it."""

from __future__ import annotations

import contextlib
import json
import random
import re
import time

import pytest
from dualtrack.tools.graph.engine import GraphError, QueryFailed, QueryRefused
from dualtrack.tools.graph.functions import FUNCTIONS, TYPES
from dualtrack.tools.graph.guard import guarded
from dualtrack.tools.graph.ladybug import Ladybug
from dualtrack.tools.graph.lexer import KEYWORDS, MAX_CHARACTERS, MAX_DEPTH, QUANTIFIERS, SUBQUERIES
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.cypher_queries import DRESSES, LEGAL, PARAMETERS, PIECES, STATEMENTS, mutations
from tests.drivers.graph_database import make_database

REFUSED = "only read-only queries are allowed."


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Ladybug:
    return Ladybug(make_database(tmp_path_factory.mktemp("graph") / "graph.lbug"))


def test_there_are_enough_legal_queries() -> None:
    assert len(set(LEGAL)) >= 80


@pytest.mark.parametrize("query", LEGAL)
def test_a_legal_query_passes_and_runs(engine: Ladybug, query: str) -> None:
    text, parameters = guarded(query, PARAMETERS)
    assert engine.read_foreign(text, parameters, 50).columns


KNOWN = {
    "TRAIL",
    *KEYWORDS,
    *QUANTIFIERS,
    *SUBQUERIES,
    *TYPES,
    *(name.upper() for name in FUNCTIONS.values()),
}


def foreign_words(text: str) -> set[str]:
    """Words of a rewritten query that are no names, short literals, parameters or words known to the guard."""
    outside = re.sub(r"`[^`]*`|'[^']*'|\$p[0-9]+\b", " ", text)
    return {word for word in re.findall(r"[^\W\d]\w*", outside) if word.upper() not in KNOWN}


@pytest.mark.parametrize("dress", DRESSES)
def test_no_other_statement_passes_in_any_spelling(dress: str) -> None:
    """A single word may be the name of a variable, and then is only that."""
    for statement in STATEMENTS:
        try:
            text, _ = guarded(DRESSES[dress](statement), PARAMETERS)
        except GraphError:
            continue
        assert " " not in statement, text
        assert f"`{statement}`" in text


def test_a_statement_that_is_not_a_read_is_refused_as_such() -> None:
    for statement in STATEMENTS:
        if not statement.startswith("RETURN") and "HINT" not in statement and "OUTFILE" not in statement:
            with pytest.raises(QueryRefused, match=f"^{re.escape(REFUSED)}$"):
                guarded(statement, {})


def test_the_content_of_a_parameter_or_a_string_is_a_value(engine: Ladybug) -> None:
    every = " ".join(STATEMENTS)[:3_000]
    text, parameters = guarded("RETURN $x AS x", {"x": every})
    assert (text, engine.read_foreign(text, parameters, 1).rows) == ("RETURN $p0 AS `x`", ((every,),))
    quoted = every.replace("'", "\\'")
    text, parameters = guarded(f"RETURN '{quoted}' AS x", {})
    assert (text, parameters) == ("RETURN $p0 AS `x`", {"p0": every})


def test_no_literal_reaches_the_engine_as_text() -> None:
    text, parameters = guarded("MATCH (a {name: 'x'}) WHERE a.size > 1 + 2.5 RETURN a SKIP 3 LIMIT 4", {})
    assert not re.search(r"(?<!\$p)[0-9']", text.replace("AS INT64", ""))
    assert set(parameters.values()) == {"x", 1, 2.5, 3, 4}


def test_equal_literals_are_one_parameter() -> None:
    """The expression of ORDER BY must equal the returned one."""
    text, parameters = guarded("UNWIND [1] AS x RETURN x + 1 ORDER BY x + 1", {})
    one = "CAST( $p0 AS INT64)"
    assert text == f"UNWIND [ {one} ] AS `x` RETURN `x` + {one} AS `x + 1` ORDER BY `x` + {one}"
    assert parameters == {"p0": 1}


def test_a_number_and_a_string_of_its_digits_are_two_parameters() -> None:
    assert guarded("RETURN 1, '1', 1.0, $n", {"n": 1})[1] == {"p0": 1, "p1": "1", "p2": 1.0, "p3": 1}


def test_in_a_lambda_only_harmless_literals_are_written_out() -> None:
    text, parameters = guarded("RETURN any(x IN ['a'] WHERE x = 'Pump 1' OR x = $name)", {"name": "b-c"})
    assert "`x` -> ( `x` = 'Pump 1' ) OR ( `x` = 'b-c' )" in text
    assert parameters == {"p0": "a", "p1": 0}
    for value in ("it\\'s", "a\\\\b", "a\\nb", "x" * 201):
        with pytest.raises(QueryFailed, match="plain words"):
            guarded(f"RETURN any(x IN ['a'] WHERE x = '{value}')", {})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("MATCH (a RETURN a", "syntax error at character 10: unexpected 'RETURN'."),
        ("MATCH (a) RETURN", "syntax error: the query is not complete."),
        ("RETURN 'open", 'unexpected "\'open" at character 8.'),
        ("RETURN $other", "the parameter $other is not given."),
        ("RETURN sleep(1)", "there is no function 'sleep' here."),
        ("RETURN CAST(1 AS BLOB)", "there is no type 'BLOB' here"),
        ("RETURN 9223372036854775808", "a number in the query is too large."),
        ("RETURN 1e999", "a number in the query is too large."),
        ("RETURN '\\x41'", "unknown escape"),
        ("RETURN '\\ud800'", "unknown escape"),
        ("MATCH (a)-[*1..31]->(b) RETURN a", "a path has at most 30 relationships."),
        ("MATCH (a)-[*1..999999999999]->(b) RETURN a", "a path has at most 30 relationships."),
        (f"MATCH (`{'x' * 201}`) RETURN 1", "too long or not printable"),
        ("MATCH (`a\u202eb`) RETURN 1", "too long or not printable"),
        ("RETURN 1" + " " * MAX_CHARACTERS, "at most 4,000 characters"),
        ("RETURN " + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), "at most 24 levels deep"),
        ("RETURN " + "[" * 3_000, "at most 24 levels deep"),
        ("RETURN " + "CASE WHEN TRUE THEN " * 25 + "1" + " END" * 25, "at most 24 levels deep"),
    ],
)
def test_a_mistake_is_located(query: str, words: str) -> None:
    with pytest.raises(QueryFailed, match=re.escape(words)):
        guarded(query, {})


@pytest.mark.parametrize(
    "query", ["", " ", ";", "()", "\0", "/* open", "`", "1", "MATCH" * 500 + "(" * 1_000]
)
def test_nonsense_is_refused(query: str) -> None:
    with pytest.raises(GraphError):
        guarded(query, {})


def test_parameters_are_bounded() -> None:
    with pytest.raises(QueryFailed, match="20,000 characters"):
        guarded("RETURN $x", {"x": "y" * 20_001})


WORST = {
    "sum": "RETURN " + "+".join(["1"] * 1_990),
    "conditions": "MATCH (a) WHERE " + " AND ".join(["a.x=1"] * 350) + " RETURN a",
    "negations": "RETURN " + "NOT " * 990 + "TRUE",
    "path": "MATCH (a)" + "-[:X]->(b)" * 390 + " RETURN a",
    "patterns": "MATCH (a) WHERE " + " AND ".join(["(a)-[:X]->()"] * 220) + " RETURN 1",
    "properties": "RETURN a" + ".a" * 1_990,
    "elements": "RETURN a" + "[1]" * 1_300,
    "open round": "RETURN " + "(" * 3_990,
    "open square": "RETURN " + "[" * 3_990,
    "open curly": "RETURN " + "{" * 3_990,
    "open and closed": "RETURN " + "()" * 1_990,
    "comments": "/**/" * 1_000,
    "open comments": "/*" * 2_000,
    "stars": "/*" + "*" * 3_990,
    "quotes": "'" * 3_999,
    "backslashes": "RETURN '" + "\\" * 3_990,
    "backticks": "`" * 3_999,
    "unions": " UNION ".join(["RETURN 1"] * 260),
    "digits": "RETURN " + "9" * 3_990,
    "exponents": "RETURN " + "9e9" * 1_000,
    "subqueries": "MATCH (a) WHERE " + "EXISTS { MATCH (a) WHERE " * 11 + "TRUE" + "}" * 11 + " RETURN a",
}


@pytest.mark.parametrize("kind", WORST)
def test_the_worst_text_of_the_largest_size_is_read_in_linear_time(kind: str) -> None:
    """Under 0.1 s of processor time; a quadratic reader takes several seconds."""
    began = time.process_time()
    with contextlib.suppress(GraphError):
        guarded(WORST[kind][:MAX_CHARACTERS], {})
    assert time.process_time() - began < 2


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join) | st.text(max_size=200))
def test_a_rewritten_query_has_only_known_words(query: str) -> None:
    try:
        text, parameters = guarded(query, PARAMETERS)
    except GraphError:
        return
    assert foreign_words(text) == set()
    assert ";" not in text
    json.dumps(parameters)


def test_mutations_of_legal_queries_have_only_known_words() -> None:
    """The short form of bench/graph_guard.py, which also runs the queries that pass."""
    passed = 0
    for query in mutations(random.Random(16), 4_000):
        try:
            text, _ = guarded(query, PARAMETERS)
        except GraphError:
            continue
        passed += 1
        assert foreign_words(text) == set(), query
    assert passed > 100
