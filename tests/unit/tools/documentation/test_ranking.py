"""Keywords, vectors, fusion and the final order: pure functions."""

from __future__ import annotations

import math
import struct

import pytest
from dualtrack.errors import Degraded
from dualtrack.knowledge.fusion import min_max_scores, ranked, reciprocal_rank_scores
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.vectors import pack, vector_scores
from dualtrack.knowledge.words import Terms, words
from dualtrack.tools.documentation.ranking import fuse
from dualtrack.tools.documentation.rerank import completed
from dualtrack.tools.documentation.settings import RetrievalSettings
from hypothesis import given
from hypothesis import strategies as st

TEXTS = [
    "Configure the session cookie",
    "setAccessToken(token) stores the OAuth access token",
    "Sessions and sessions: everything about a session",
    "Deploying behind a proxy",
]


def scores(question: str, texts: list[str] = TEXTS, k1: float = 1.5, b: float = 0.75) -> tuple[float, ...]:
    return keyword_scores(question, texts, k1=k1, b=b)


def test_identifiers_are_split_and_endings_cut() -> None:
    assert words("How do I use setAccessToken?") == ["setaccesstoken", "set", "access", "token"]
    assert words("my_sessions") == ["my_sessions", "session"]
    assert words("address status basis OAuth2") == ["address", "status", "basis", "oauth2", "o", "auth", "2"]


def test_a_repeated_word_gives_the_same_terms() -> None:
    met = Terms()

    assert words("setAccessToken the sessions", met) == words("setAccessToken the sessions")
    assert words("sessions setAccessToken", met) == words("sessions setAccessToken")
    assert met["the"] == ()


def test_a_section_without_any_of_the_words_scores_nothing() -> None:
    assert scores("kubernetes") == (0.0, 0.0, 0.0, 0.0)
    assert [score > 0 for score in scores("session cookie")] == [True, False, True, False]
    assert scores("the and of") == (0.0, 0.0, 0.0, 0.0)
    assert scores("x", []) == ()
    assert scores("x", ["", "?"]) == (0.0, 0.0)


def test_a_word_that_most_sections_share_still_counts_for_them() -> None:
    scored = scores("session", ["session a", "session b", "session c", "other"])

    assert min(scored[:3]) > scored[3] == 0


def test_k1_and_b_are_obeyed() -> None:
    repeated, once = "session session session session", "session alone"
    saturated = scores("session", [repeated, once, "x"], k1=1e-9)
    assert saturated[0] == pytest.approx(saturated[1])
    long = "session " + "filler " * 50
    unnormalised = scores("session", [long, once, "x"], b=0.0)
    assert unnormalised[0] == pytest.approx(unnormalised[1])
    assert scores("session", [long, once, "x"], b=1.0)[0] < scores("session", [long, once, "x"], b=1.0)[1]


def test_cosine_ignores_length_and_euclidean_does_not() -> None:
    query, same_direction, near = pack([1, 0]), pack([10, 0]), pack([1, 0.5])

    cosine = vector_scores(query, [same_direction, near], "cosine")
    euclidean = vector_scores(query, [same_direction, near], "euclidean")
    assert cosine == pytest.approx((1.0, (1 + 1 / math.sqrt(1.25)) / 2))
    assert euclidean == pytest.approx((1 / 10, 1 / 1.5))
    assert vector_scores(query, [pack([0, 0])], "cosine") == (0.5,)
    assert vector_scores(query, [], "cosine") == ()


@pytest.mark.parametrize(
    ("query", "vectors"),
    [
        (pack([1, 2]), [pack([1, 2, 3])]),
        (pack([1, 2]), [pack([1, 2]), pack([1])]),
        (b"", [b""]),
        (b"abc", [b"abc"]),
        (pack([0, 0]), [pack([1, 2])]),
        (pack([1, math.nan]), [pack([1, 2])]),
        (pack([1, 2]), [pack([math.inf, 2])]),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(query: bytes, vectors: list[bytes]) -> None:
    with pytest.raises(Degraded):
        vector_scores(query, vectors, "cosine")


def test_vectors_are_stored_as_little_endian_float32() -> None:
    assert pack([1.5, -2.0]) == struct.pack("<2f", 1.5, -2.0)


def test_rank_fusion_is_the_sum_of_reciprocal_ranks() -> None:
    assert reciprocal_rank_scores([[3.0, 2.0, 1.0], [0.1, 0.3, 0.2]], k=60) == pytest.approx(
        (1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62)
    )


def test_if_keywords_and_meaning_disagree_meaning_wins() -> None:
    keywords, meaning = [3.0, 2.0, 1.0], [0.1, 0.2, 0.3]

    assert fuse(keywords, meaning, RetrievalSettings())[0] == 2
    assert fuse(keywords, meaning, RetrievalSettings(rrf_k=60, meaning_weight=1))[0] == 0


def test_a_ranking_without_matches_is_ignored() -> None:
    settings = RetrievalSettings()

    assert fuse([0.0, 0.0, 0.0], [0.1, 0.3, 0.2], settings) == (1, 2, 0)
    assert fuse([0.0, 0.0, 0.0], None, settings) == (0, 1, 2)


def test_min_max_sums_the_normalised_scores() -> None:
    assert min_max_scores([[10.0, 20.0, 15.0], [0.5, 0.5, 0.5]]) == pytest.approx((0.0, 1.0, 0.5))
    settings = RetrievalSettings(fusion="min_max_sum")
    assert fuse([0.0, 10.0, 9.0], [0.1, 0.2, 0.9], settings) == (2, 1, 0)


POSITIVE = st.floats(0.01, 1e6)


@given(
    st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=40),
    st.sampled_from(["reciprocal_rank", "min_max_sum"]),
)
def test_fusion_orders_every_chunk_once_and_keeps_a_common_first(
    pairs: list[tuple[float, float]], fusion: str
) -> None:
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    order = fuse(left, right, RetrievalSettings(fusion=fusion))  # type: ignore[arg-type]

    assert sorted(order) == list(range(len(pairs)))
    if ranked(left)[0] == ranked(right)[0]:
        assert order[0] == ranked(left)[0]


def test_a_ranking_is_completed_in_the_fused_order() -> None:
    assert completed([3, 3, 99, 1], size=5, top=4) == (2, 0, 1, 3)
    assert completed([0, -1, 99], size=5, top=4) is None
    assert completed([2, 1], size=2, top=6) == (1, 0)


@pytest.mark.parametrize(
    "wrong", [{"k1": 0}, {"b": 1.5}, {"rrf_k": 0}, {"meaning_weight": 0}, {"top_final": 31}, {"top_final": 0}]
)
def test_invalid_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RetrievalSettings(**wrong)  # type: ignore[arg-type]
