"""Parses, checks and rewrites a read statement of Cypher.

text ─► `lexer.words` ─► parser of ``cypher.lark`` ─► tree ─► new text: known words, escaped names, no literals
"""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.lexer import Lexer

from dualtrack.tools.graph.engine import GraphError, QueryFailed, QueryRefused
from dualtrack.tools.graph.functions import TYPES
from dualtrack.tools.graph.kinds import properties_of
from dualtrack.tools.graph.lexer import unescaped, words
from dualtrack.tools.graph.rewriting import right_for_the_engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.tools.graph.dialects import Dialect
    from dualtrack.tools.graph.engine import GraphValue
    from dualtrack.tools.graph.lexer import Word
    from dualtrack.tools.graph.schema import StoredSchema

MAX_HOPS: Final = 30
"""The engine's own maximum length of a path."""

MAX_WORDS: Final = 20_000
"""Maximum words of a rewritten query: a part that occurs twice in it doubles what is in it."""

MAX_PARAMETERS: Final = 20_000
"""Maximum characters of all parameters as JSON."""

_HARMLESS: Final = re.compile(r"[\w .,:;@/+#%&()=*-]{0,200}")
_BEGIN: Final = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN"})
_OTHER_STATEMENTS: Final = (
    "ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DELETE DETACH DROP EXPLAIN EXPORT EXTENSION "
    "FOREACH IMPORT INSERT INSTALL LOAD MACRO MERGE PROFILE REMOVE ROLLBACK SET TRUNCATE UNINSTALL UPDATE USE"
)
_NOT_READ: Final = frozenset(_OTHER_STATEMENTS.split())
"""Words that distinguish a writing query from one with a mistake. They only select the error and protect nothing."""

_CLOSE: Final = "\0"
"""In front of a word: no space before it. No name or literal has this character."""

_LONGEST_INTEGER: Final = len(str(2**63 - 1))


def rewritten(
    text: str, parameters: Mapping[str, GraphValue], dialect: Dialect, schema: StoredSchema
) -> tuple[str, dict[str, GraphValue]]:
    """See `tools.graph.guard.guarded`."""
    read = words(text)
    if len(json.dumps(parameters)) > MAX_PARAMETERS:
        raise QueryFailed(f"the parameters have at most {MAX_PARAMETERS:,} characters.")
    try:
        tree = _parsed(read)
        if dialect.rewritten:
            tree = right_for_the_engine(tree, parameters, properties_of(schema))
        return _Writer(parameters, dialect).write(tree)
    except GraphError:
        raise
    except UnexpectedInput as error:
        raise _refusal(read, error) from None
    except Exception as error:  # refuse what the parser did not expect
        raise QueryRefused from error


class _Words(Lexer):
    """Passes the tokens of `lexer.words` to the parser."""

    def __init__(self, configuration: Any) -> None:
        self._types = {terminal.pattern.value: terminal.name for terminal in configuration.terminals}

    def lex(self, data: Sequence[Word]) -> Iterator[Token]:  # type: ignore[override]
        for word in data:
            yield Token(self._types.get(word.type, word.type), word.text, start_pos=word.at)


@functools.cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("cypher.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=_Words, keep_all_tokens=True, maybe_placeholders=False)


def _parsed(read: Sequence[Word]) -> Tree[Token]:
    return _parser().parse(read)  # Lark passes it to the lexer unchanged


def _refusal(read: Sequence[Word], error: UnexpectedInput) -> GraphError:
    """The error: a statement of another kind is refused as such, a mistake is reported with its position."""
    names = {word.text.upper() for word in read if word.type in {"NAME", "FUNCTION"}}
    begins = read[0].type if read else ""
    several = any(word.type == ";" for word in read[:-1])
    if begins not in _BEGIN or several or names & _NOT_READ:
        return QueryRefused()
    if not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        return QueryFailed("syntax error: the query is not complete.")
    position, word = error.token.start_pos or 0, str(error.token)
    return QueryFailed(f"syntax error at character {position + 1}: unexpected {word[:40]!r}.")


class _Writer:
    """Writes a tree as text. ``parameters``: those that the query may name."""

    def __init__(self, parameters: Mapping[str, GraphValue], dialect: Dialect) -> None:
        self._parameters = parameters
        self._dialect = dialect
        self._used: dict[str, GraphValue] = {}
        self._names: dict[tuple[str, object], str] = {}
        self._in_lambda = False
        self._in_rows = False

    def write(self, tree: Tree[Token]) -> tuple[str, dict[str, GraphValue]]:
        if _size(tree, {}) > MAX_WORDS:
            raise QueryFailed("the query is too deep: use WITH to name parts of it.")
        return " ".join(self._words_of(tree)).replace(f" {_CLOSE}", ""), self._used

    def _words_of(self, tree: Tree[Token]) -> Iterator[str]:
        special = _SPECIAL.get(tree.data)
        return special(self, tree) if special else self._plain(tree)

    def _plain(self, tree: Tree[Token]) -> Iterator[str]:
        for child in tree.children:
            if isinstance(child, Tree):
                yield from self._words_of(child)
            elif child == "=~" and not self._dialect.patterns:
                raise QueryFailed("there is no =~ here: use CONTAINS, STARTS WITH or ENDS WITH.")
            elif child == ",":
                yield f"{_CLOSE},"  # after DESC the engine accepts no space before it
            elif child.type != "SEMICOLON":
                yield child.upper()  # a symbol or a keyword

    def _name(self, tree: Tree[Token]) -> Iterator[str]:
        yield f"`{tree.children[0]}`"

    def _function(self, tree: Tree[Token]) -> Iterator[str]:
        name = str(tree.children[0]).lower()
        if name not in self._dialect.functions:
            raise QueryFailed(f"there is no function {name[:40]!r} here.")
        yield self._dialect.functions[name]

    def _type(self, tree: Tree[Token]) -> Iterator[str]:
        name = str(tree.children[0]).upper()
        if name not in TYPES:
            raise QueryFailed(f"there is no type {name[:40]!r} here: {', '.join(sorted(TYPES))}.")
        yield name

    def _suffix(self, tree: Tree[Token]) -> Iterator[str]:
        """The engine accepts no space around the brackets of an element or around the colon of a slice."""
        if tree.children[0] != "[":
            yield from self._plain(tree)
            return
        for child in tree.children:
            words_ = list(self._words_of(child)) if isinstance(child, Tree) else [str(child)]
            yield _CLOSE + words_[0]
            yield from words_[1:]

    def _subquery(self, tree: Tree[Token]) -> Iterator[str]:
        """The engine requires the MATCH that the language makes optional."""
        kind, bracket, *rest = tree.children
        stated = [child for child in rest if isinstance(child, Tree) or child.type != "MATCH"]
        yield from self._words_of(Tree("inside", [kind, bracket, Token("MATCH", "MATCH"), *stated]))

    def _quantifier(self, tree: Tree[Token]) -> Iterator[str]:
        *before, condition, bracket = tree.children
        yield from self._words_of(Tree("before", before))
        yield from self._as_lambda(condition)
        yield from self._words_of(Tree("after", [bracket]))

    def _argument(self, tree: Tree[Token]) -> Iterator[str]:
        *before, body = tree.children
        is_lambda = any(isinstance(child, Token) and child == "->" for child in before)
        yield from self._words_of(Tree("before", before))
        yield from self._as_lambda(body) if is_lambda else self._words_of(_tree(body))

    def _as_lambda(self, body: Tree[Token] | Token) -> Iterator[str]:
        """The engine accepts no parameters here: literals are written out (`_written`)."""
        outside, self._in_lambda = self._in_lambda, True
        yield from self._words_of(_tree(body))
        self._in_lambda = outside

    def _bound(self, tree: Tree[Token]) -> Iterator[str]:
        """The one literal that cannot be a parameter: the number of hops."""
        digits = str(tree.children[0])
        if len(digits) > 2 or int(digits) > MAX_HOPS:
            raise QueryFailed(f"a path has at most {MAX_HOPS} relationships.")
        yield str(int(digits))

    def _parameter(self, tree: Tree[Token]) -> Iterator[str]:
        name = str(tree.children[0])[1:]
        if name not in self._parameters:
            raise QueryFailed(f"the parameter ${name[:40]} is not given.")
        yield self._value("given", name, self._parameters[name])

    def _literal(self, tree: Tree[Token]) -> Iterator[str]:
        (token,) = tree.children
        assert isinstance(token, Token)
        if token.type in ("TRUE", "FALSE", "NULL"):
            yield token.type
        elif token.type == "STRING":
            yield self._value("string", text := unescaped(str(token)), text)
        else:
            yield self._value("number", str(token), _number(str(token)))

    def _value(self, kind: str, key: object, value: GraphValue) -> str:
        """The parameter for a value. Equal values share one: an expression must be the same in RETURN and ORDER BY."""
        if self._in_lambda:
            return _written(value)
        name = self._names.setdefault((kind, key), f"p{len(self._names)}")
        self._used[name] = value
        if self._dialect.rewritten and not self._in_rows:
            if isinstance(value, int) and not isinstance(value, bool):
                return f"CAST( ${name} AS INT64)"  # the engine would take the smallest type
            if isinstance(value, list) and value and all(type(one) is int for one in value):
                return f"CAST( ${name} AS INT64[])"
        return f"${name}"

    def _rows(self, tree: Tree[Token]) -> Iterator[str]:
        """SKIP and LIMIT take a parameter and nothing else."""
        self._in_rows = True
        yield from self._plain(tree)
        self._in_rows = False

    def _written_out(self, tree: Tree[Token]) -> Iterator[str]:
        yield from self._as_lambda(tree.children[0])


_SPECIAL: Final[Mapping[str, Any]] = {
    "name": _Writer._name,
    "function": _Writer._function,
    "type": _Writer._type,
    "suffix": _Writer._suffix,
    "subquery": _Writer._subquery,
    "quantifier": _Writer._quantifier,
    "argument": _Writer._argument,
    "bound": _Writer._bound,
    "parameter": _Writer._parameter,
    "literal": _Writer._literal,
    "rows": _Writer._rows,
    "written": _Writer._written_out,
}


def _size(part: Tree[Token] | Token, known: dict[int, int]) -> int:
    """The words of a tree, in which a part may occur several times; ``known``: by a part's id."""
    if not isinstance(part, Tree):
        return 1
    if id(part) not in known:
        known[id(part)] = sum(_size(child, known) for child in part.children)
    return known[id(part)]


def _tree(node: Tree[Token] | Token) -> Tree[Token]:
    assert isinstance(node, Tree)
    return node


def _written(value: GraphValue) -> str:
    """A value as a literal: numbers, truth values and strings of harmless characters."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, str) and _HARMLESS.fullmatch(value):
        return f"'{value}'"
    raise QueryFailed("conditions on the elements of a list take numbers and plain words only.")


def _number(text: str) -> int | float:
    if text.isdigit():
        number = int(text) if len(text) <= _LONGEST_INTEGER else 2**63
        if number >= 2**63:
            raise QueryFailed("a number in the query is too large.")
        return number
    value = float(text)
    if not math.isfinite(value):
        raise QueryFailed("a number in the query is too large.")
    return value
