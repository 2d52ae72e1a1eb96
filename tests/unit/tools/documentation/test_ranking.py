"""Fusion, the final order and its settings: pure functions."""

from __future__ import annotations

import pytest
from dualtrack.knowledge.fusion import min_max_scores, ranked, reciprocal_rank_scores
from dualtrack.tools.documentation.ranking import fuse
from dualtrack.tools.documentation.rerank import completed
from dualtrack.tools.documentation.settings import RetrievalSettings
from hypothesis import given
from hypothesis import strategies as st


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
    "wrong",
    [
        {"k1": 0},
        {"b": 1.5},
        {"rrf_k": 0},
        {"meaning_weight": 0},
        {"identifier_weight": 0},
        {"top_final": 31},
        {"top_final": 0},
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RetrievalSettings(**wrong)  # type: ignore[arg-type]


def test_an_identifier_in_the_question_makes_keywords_count_more() -> None:
    keywords, meaning = [9.0, *[0.0] * 12], [0.01, *(0.9 - at / 20 for at in range(12))]
    assert fuse(keywords, meaning, RetrievalSettings())[0] == 1
    assert fuse(keywords, meaning, RetrievalSettings(), identifier=True)[0] == 0
