"""Any text has words, and the same ones in each of Unicode's forms."""

from __future__ import annotations

import unicodedata

from dualtrack.knowledge.folding import folded, plain
from dualtrack.knowledge.words import Terms, asked, located, words
from hypothesis import given
from hypothesis import strategies as st

SCRIPTS = st.sampled_from(
    "aZ_9-. éßİıΣς\u0301\u0323ёйאָكِّ한각가がﾞｶ゙東々ター・ไทยที่हिन्दीမြန\u200b\u200d\xad½²ﬁＡ⼈\U0001f600\ud800"
)
TEXTS = st.text(st.one_of(SCRIPTS, st.characters()), max_size=60)


@given(TEXTS)
def test_words_are_the_same_in_compatibility_form(text: str) -> None:
    assert words(unicodedata.normalize("NFKC", text)) == words(text)
    assert plain(unicodedata.normalize("NFKC", text)) == plain(text)


@given(TEXTS)
def test_a_text_is_found_by_itself_and_without_accents(text: str) -> None:
    assert {*asked(text)} <= {*words(text)}
    assert {*words(plain(text))} <= {*words(text)}
    assert folded(folded(text)) == folded(text)


@given(TEXTS)
def test_what_is_located_stands_in_the_text(text: str) -> None:
    places = [at for at, _ in located(text, Terms())]
    assert places == sorted(places)
    assert all(0 <= at < len(text) for at in places)
