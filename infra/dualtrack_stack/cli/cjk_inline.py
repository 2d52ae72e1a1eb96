"""Emphasis and bare links beside Chinese, Japanese and Korean, which have no blanks between words. Pure.

By CommonMark's rules ``**「強調」**です`` is not drawn, since a bracket is no letter; here CJK punctuation counts as
letters, and other punctuation may stand beside a CJK letter (the rules of markdown-cjk-friendly). The page has the
same: page/js/cjk.js.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned

from dualtrack_stack.cli.cjk import LETTERS, PUNCTUATION

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.utils import EnvType

_SIGN: Final = re.compile(f"[{PUNCTUATION}]")
_LETTER: Final = re.compile(f"[{LETTERS}]")


class CjkInline(ParserInline):
    """The library's parser of a passage, whose runs of signs begin and end emphasis beside CJK text."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803 - the library's names
        marker, end = self.src[start], start
        while end < self.posMax and self.src[end] == marker:
            end += 1
        before = self.src[start - 1] if start > 0 else " "
        behind = self.src[end] if end < self.posMax else " "
        splits = canSplitWord and marker != "_"
        begins = _may_begin(before, behind, is_cjk=splits)
        ends = _may_begin(behind, before, is_cjk=splits)
        return Scanned(
            begins and (canSplitWord or not ends or _is_punctuation(before)),
            ends and (canSplitWord or not begins or _is_punctuation(behind)),
            end - start,
        )


def _may_begin(outside: str, inside: str, *, is_cjk: bool) -> bool:
    """Whether a run of signs may begin emphasis between these characters; or end it, if they are exchanged."""
    if isWhiteSpace(ord(inside)):
        return False
    if not _is_punctuation(inside) or (is_cjk and _SIGN.match(inside)):
        return True
    beside_cjk = is_cjk and _LETTER.match(outside) is not None
    return isWhiteSpace(ord(outside)) or _is_punctuation(outside) or beside_cjk


def _is_punctuation(sign: str) -> bool:
    return isMdAsciiPunct(ord(sign)) or isPunctChar(sign)
