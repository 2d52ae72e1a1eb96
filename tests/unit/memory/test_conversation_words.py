"""The words by which conversations are found: how they are compared, how large they get, what is left out."""

from __future__ import annotations

import random
import re
import zlib
from pydoc_data.topics import topics

import pytest
from dualtrack.knowledge.folding import folded
from dualtrack.memory.conversation_words import (
    PACKED_LIMIT,
    QUERY_WORDS,
    has_words,
    packed,
    searched_words,
    unpacked,
    with_query,
    words_of_query,
    words_of_text,
)
from dualtrack.memory.records import QueryTrack, Record

SAID = "Straße: GRÖSSE of the setAccessToken, ﬁle-sizes; 東京タワーは高い。 서울에서 user_id"


def finds(search: str, said: str = "", title: str = "") -> bool:
    return has_words(searched_words(search), folded(title), {*words_of_text(said)})


@pytest.mark.parametrize(
    "search",
    [
        "strasse",
        "Größe",
        "access TOKEN",
        "setaccesstoken",
        "file size",
        "東京",
        "タワー 高",
        "서울",
        "the Straße",
    ],
)
def test_what_was_said_is_found(search: str) -> None:
    assert finds(search, SAID)


@pytest.mark.parametrize("search", ["toke", "paris", "strasse paris", "京東", "the", "?", "the ?"])
def test_what_was_not_said_is_not_found(search: str) -> None:
    """Nor a part of a word, nor stop words alone."""
    assert not finds(search, SAID)


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ("istanbul", "İstanbul gezisi"),
        ("İSTANBUL", "istanbul gezisi"),
        ("isparta", "ISPARTA"),
        ("ışık", "IŞIK"),
        ("cafe", "Café crème"),
        ("Café", "cafe creme"),
        ("grosse", "Größe"),
        ("oresund", "Øresund"),
        ("tieng viet", "Tiếng Việt"),
        ("οδυσσευς", "ΟΔΥΣΣΕΥΣ, Ὀδυσσεύς"),
        ("ΟΔΥΣΣΕΎΣ", "ὁ Ὀδυσσεύς"),
        ("елка", "ёлка"),
        ("كتاب", "كِتَابٌ"),
        ("كِتَاب", "كتاب"),
        ("שלום", "שָׁלוֹם"),
        ("می\u200cروم", "میروم"),
        ("हिन्दी", "यह हिन्दी है"),
        ("ไทย", "เขาไปประเทศไทยเมื่อวาน"),
        ("ที่", "ที่บ้าน"),
        ("မြန်မာ", "မြန်မာနိုင်ငံ"),
        ("がっこう", "学校はがっこう"),
    ],
)
def test_accents_case_and_points_make_no_difference_in_any_script(search: str, said: str) -> None:
    assert finds(search, said)
    assert finds(search, title=said)


@pytest.mark.parametrize(
    ("search", "said"), [("दान", "दिन"), ("か", "がっこう"), ("เมืองไทย", "เขาไปประเทศไทย")]
)
def test_signs_that_make_another_word_do(search: str, said: str) -> None:
    assert not finds(search, said)


BEFORE = "grösse gr öss e café caf é i̇stanbul i̇ stanbul ὀδυσσεύσ ह न द ك ت اب ש לו ם ประเทศไทย 東 京 東京 setaccesstoken set access token"
"""The terms of a text, as they were stored before there was one folding."""


@pytest.mark.parametrize(
    "search",
    [
        "Größe",
        "GRÖSSE",
        "café",
        "İstanbul",
        "Ὀδυσσεύς",
        "हिन्दी",
        "كِتَابٌ",
        "שָׁלוֹם",
        "ประเทศไทย",
        "東京",
        "setAccessToken",
    ],
)
def test_what_older_conversations_have_stored_is_found_as_before(search: str) -> None:
    known = {zlib.crc32(term.encode()) for term in BEFORE.split()}
    assert has_words(searched_words(search), "", known)


def test_titles_have_parts_of_words_and_count_with_what_was_said() -> None:
    assert finds("rom FIL", title="Straße nach Rom\nﬁle size")
    assert finds("romantic strasse", "Romantic", "Straße nach Rom")
    assert finds("the rom", title="Straße nach Rom"), "a stop word may be missing"
    assert not finds("rom paris", title="Straße nach Rom")
    assert finds("")


def test_words_come_back_from_their_stored_form() -> None:
    rng = random.Random(7)
    for count in (0, 1, 2, 300):
        known = {rng.getrandbits(32): rng.randrange(1, 999_999) for _ in range(count)}
        assert unpacked(packed(known)) == known


def test_a_word_keeps_the_query_that_said_it_first() -> None:
    assert with_query({1: 3, 2: 4}, 9, [2, 5]) == {1: 3, 2: 4, 5: 9}


def test_a_large_conversation_loses_its_oldest_words() -> None:
    """At most 64 KB with the key; what is lost is not more than needed."""
    rng, known = random.Random(7), {}
    for query in range(1, 41):
        known = unpacked(packed(with_query(known, query, [rng.getrandbits(32) for _ in range(1_000)])))
    size = len(packed(known))
    assert PACKED_LIMIT * 0.85 < size <= PACKED_LIMIT < 64 * 1_024 - 200
    assert sum(query == 40 for query in known.values()) == 1_000
    assert min(known.values()) > 20


def test_a_query_adds_a_limited_number_of_words_its_questions_first() -> None:
    def message(record_id: str, text: str) -> Record:
        return Record(record_id, "message", "user", text, "2026-01-01T00:00:00Z")

    pasted = " ".join(f"word{number}x" for number in range(2 * QUERY_WORDS))
    records = [message("q1", "Zanzibar"), message("q1-a1", "Thought"), message("q1-r", pasted)]
    found = words_of_query(records, QueryTrack(1, ()))
    assert len(found) == QUERY_WORDS
    assert found[0] == words_of_text("zanzibar")[0]
    assert not {*words_of_text("Thought")} & {*found}


def test_a_hundred_queries_take_at_most_13_kilobytes() -> None:
    """Of Python's language reference: two paragraphs each, as a question with its answer. The words are counted apart
    from the code: distinct strings of letters and digits."""
    paragraphs = [part for topic in topics.values() for part in topic.split("\n\n")]
    prose = [part for part in dict.fromkeys(paragraphs) if 40 <= len(part.split()) <= 200]
    chosen, known = random.Random(7).sample(prose, 200), {}
    for place, paragraph in enumerate(chosen):
        known = unpacked(packed(with_query(known, place // 2 + 1, words_of_text(paragraph))))
    distinct = {word.lower() for paragraph in chosen for word in re.findall(r"[A-Za-z0-9]+", paragraph)}
    size = len(packed(known))
    print(f"{len(distinct)} distinct words, {len(known)} terms, {size} bytes")
    assert 0.8 < len(known) / len(distinct) < 1.4
    assert 3 * len(known) < size < 4 * len(known)
    assert size <= 13_000
