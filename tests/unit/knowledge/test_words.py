"""The one rule of words in any language: what is found, what is not, and what comes first."""

from __future__ import annotations

import unicodedata

import pytest
from dualtrack.knowledge.folding import normalised
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.words import Terms, asked, effort, has_identifier, located, words

OTHERS = [
    "Der Überdruck der Anlage wird gemessen, über alle Räume.",
    "Les réglages de l'été, à côté de la forêt",
    "データを保存する方法",
    "การตั้งค่าระบบ",
    "यह किताब नई है",
]
"""Texts without any of the words that are searched."""


def found(question: str, *texts: str) -> list[int]:
    """The texts that have words of the question, best first."""
    scores = keyword_scores(question, [*texts, *OTHERS], k1=1.5, b=0.75)
    return sorted((at for at, score in enumerate(scores) if score), key=lambda at: -scores[at])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Munchen", "Ein Besuch in München"),
        ("MÜNCHEN", "ein besuch in mu\u0308nchen"),
        ("istanbul", "İstanbul gezisi"),
        ("İSTANBUL", "istanbul gezisi"),
        ("strasse", "Die lange Straße"),
        ("ὈΔΥΣΣΕΎΣ", "ὁ Ὀδυσσεύς"),
        ("елка", "Новогодняя ёлка"),
        ("كتاب", "هذا كِتَابٌ"),
        ("東京", "昨日東京タワーに行った"),
        ("数据库", "如何备份数据库"),
        ("데이터", "데이터베이스를 옮긴다"),
        ("ประเทศไทย", "เขาไปประเทศไทยเมื่อวาน"),
        ("हिन्दी", "वे हिन्दी बोलते हैं"),
        ("한국", unicodedata.normalize("NFD", "한국어 문서")),
        ("ガイド", unicodedata.normalize("NFD", "利用ガイド")),
        ("カード", "ｶｰﾄﾞで払う"),
        ("apple", "Ａｐｐｌｅの本"),
        ("猫", "黒い猫がいる"),
        ("FastAPI", "使用FastAPI框架"),
    ],
)
def test_a_word_is_found_in_any_script(question: str, text: str) -> None:
    assert found(question, text)[:1] == [0]


@pytest.mark.parametrize(
    "question",
    ["Überdruckventil", "Prüfstand", "ręcznik", "hôpital", "дерево", "हवा", "รถไฟฟ้า", "量子力学", "양자역학"],
)
def test_a_word_that_is_nowhere_finds_nothing(question: str) -> None:
    assert found(question) == []


@pytest.mark.parametrize("question", ["resumé", "resume"])
def test_the_exact_form_comes_before_the_other(question: str) -> None:
    texts = ["The resume of last year", "The resumé of last year"]
    first = texts.index(next(text for text in texts if f" {question} " in text))
    assert found(question, *texts) == [first, 1 - first]


def test_identifiers_are_split_with_accents_too() -> None:
    assert words("größeÄndern") == ["grosseandern", "grosse", "andern", "grösseändern"]
    assert words("mein_größter-Wert") == ["mein_grosster-wert", "mein", "grosster", "wert", "grösster"]


def test_runs_count_by_short_pieces_and_are_asked_for_by_the_longest() -> None:
    assert words("東京で") == ["東", "京", "で", "東京", "京で"]
    assert asked("東京で") == ["東京", "京で"]
    assert asked("東") == ["東"]
    assert asked("ไทย ที่นี่") == ["ไทย", "ที่", "ี่น", "่นี", "นี่"]
    assert asked("the setAccessToken") == ["setaccesstoken", "set", "access", "token"]
    assert asked("setAccessToken", parts=False) == ["setAccessToken"]


def test_terms_are_located_where_they_stand() -> None:
    text = "Die Größe von 東京タワー"
    places = {term: at for at, terms in located(text, Terms()) for term in terms}
    assert places == {
        "die": 0, "grosse": 4, "grösse": 4, "von": 10, "東京": 14, "京タ": 15, "タワ": 16, "ワー": 17
    }  # fmt: skip


@pytest.mark.parametrize(
    "unit", ["\u0301\u0323", "a\u0301\u0323", "\u093c\u0951", "e\u0301", "東", "ไ", "é-"]
)
def test_a_megabyte_of_marks_is_read_in_linear_steps(unit: str) -> None:
    """Unicode's normal forms alone would take hours for the first three. The pieces are counted, not the time."""
    text = unit * (1_000_000 // len(unit))
    assert len(words(text)) <= 3 * len(text)
    assert len(asked(text)) <= len(text)
    assert len(normalised(text)) <= len(text)
    assert effort(text) <= 13 * len(text)


@pytest.mark.parametrize(
    "question", ["setAccessToken", "what is snake_case", "run() fails", "server.proxy", "os.path"]
)
def test_a_question_with_an_identifier(question: str) -> None:
    assert has_identifier(question)


@pytest.mark.parametrize(
    "question",
    ["JavaScript", "Node.js", "vue.js streams", "example.com", "It ends. Then", "e.g. x", "GitHub"],
)
def test_a_name_or_a_sentence_is_no_identifier(question: str) -> None:
    assert not has_identifier(question)
