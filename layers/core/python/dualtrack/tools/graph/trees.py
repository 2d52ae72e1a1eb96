"""Parts of a parse tree of ``cypher.lark`` that the rewriting makes; the writer treats them as if they were read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lark import Token, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Part: TypeAlias = Tree[Token] | Token


def word(text: str) -> Token:
    """A keyword or a symbol."""
    return Token(text, text)


def _part(part: Part | str) -> Part:
    return word(part) if isinstance(part, str) and not isinstance(part, Token) else part


def made(*parts: Part | str) -> Tree[Token]:
    """Parts in a row, in brackets where they are used as an operand."""
    return Tree("made", [_part(part) for part in parts])


def whole(*parts: Part | str) -> Tree[Token]:
    """Parts in a row that need no brackets as an operand."""
    return Tree("whole", [_part(part) for part in parts])


def operand(tree: Tree[Token]) -> Tree[Token]:
    """The tree in brackets if it has operators."""
    return whole("(", tree, ")") if tree.data == "made" else tree


def name(text: str) -> Tree[Token]:
    return Tree("name", [Token("NAME", text)])


def number(value: float) -> Tree[Token]:
    """A literal, which may be negative."""
    kind = "INTEGER" if isinstance(value, int) else "FLOAT"
    literal = Tree("literal", [Token(kind, repr(abs(value)))])
    return literal if value >= 0 else made("-", literal)


def text(value: str) -> Tree[Token]:
    """A literal of plain characters."""
    return Tree("literal", [Token("STRING", f"'{value}'")])


def call(function: str, *arguments: Part | str, distinct: bool = False) -> Tree[Token]:
    between: list[Part | str] = ["DISTINCT"] if distinct else []
    for argument in arguments:
        between += [",", argument] if between and between != ["DISTINCT"] else [argument]
    return whole(Tree("function", [Token("FUNCTION", function)]), "(", *between, ")")


def cast(value: Tree[Token], type_: str) -> Tree[Token]:
    return call("cast", made(value, "AS", Tree("type", [Token("NAME", type_)])))


def case(*branches: Part, otherwise: Part | None = None) -> Tree[Token]:
    """``CASE WHEN branches[0] THEN branches[1] … ELSE otherwise END``; without it, null."""
    parts: list[Part | str] = ["CASE"]
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        parts += ["WHEN", condition, "THEN", value]
    return whole(*parts, "ELSE", otherwise or word("NULL"), "END")


def lambda_(variable: str, body: Tree[Token]) -> Tree[Token]:
    return Tree("argument", [name(variable), word("->"), body])


def joined(rows: Sequence[Tree[Token]], between: str) -> Tree[Token]:
    """Operands with an operator between them; a single one is itself."""
    if len(rows) == 1:
        return rows[0]
    parts: list[Part | str] = [operand(rows[0])]
    for row in rows[1:]:
        parts += [between, operand(row)]
    return made(*parts)


def is_null(tree: Tree[Token]) -> Tree[Token]:
    return made(operand(tree), "IS", "NULL")


def names_in(tree: Tree[Token]) -> Iterator[str]:
    for part in tree.iter_subtrees():
        if part.data == "name":
            yield str(part.children[0])


def subtrees(tree: Tree[Token]) -> list[Tree[Token]]:
    """Its parts that are trees."""
    return [part for part in tree.children if isinstance(part, Tree)]
