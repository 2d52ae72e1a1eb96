"""Record ids (CONTRACT 6) and the opaque ids of the API."""

from __future__ import annotations

import pytest
from dualtrack.ids import (
    RecordId,
    execution_arn,
    file_id,
    is_chat_id,
    is_conversation_id,
    new_chat_id,
    new_conversation_id,
    parse_record_id,
    query_id,
    response_id,
    summary_id,
    thought_id,
    tool_id,
)
from hypothesis import given
from hypothesis import strategies as st


def test_ids_are_written_as_in_the_contract() -> None:
    """One of each kind."""
    assert [
        query_id(3),
        file_id(3, 1),
        thought_id(3, 1),
        tool_id(3, 2),
        response_id(3),
        summary_id(tool_id(3, 2)),
    ] == [
        "q3",
        "q3-f1",
        "q3-a1",
        "q3-t2",
        "q3-r",
        "q3-t2-sum",
    ]


@given(
    st.integers(1, 10**8), st.sampled_from(["file", "thought", "tool"]), st.integers(1, 99999), st.booleans()
)
def test_what_is_written_is_read(query: int, kind: str, number: int, summary: bool) -> None:
    """Round trip, and the whole record of a summary."""
    one = RecordId(query, kind, number, summary and kind == "tool")  # type: ignore[arg-type]
    assert parse_record_id(str(one)) == one
    assert str(one.whole) == str(one).removesuffix("-sum")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "q",
        "q0",
        "q01",
        "q1-t0",
        "q1-x",
        "q1-a1-sum",
        "q1-f0",
        "q1-f1-sum",
        "q1-r-sum-sum",
        " q1",
        "q1\n",
        "Q1",
        "q１",
        "q1#",
    ],
)
def test_anything_else_is_no_id(text: str) -> None:
    """Keys are made from ids, so nothing else may pass."""
    assert parse_record_id(text) is None


def test_a_query_may_have_a_summary() -> None:
    """A long one stands on the short track as its summary."""
    found = parse_record_id("q12-sum")
    assert found == RecordId(12, summary=True)
    assert found is not None
    assert (str(found), str(found.whole)) == ("q12-sum", "q12")


def test_opaque_ids_are_distinct_and_sortable() -> None:
    """Newer ones sort after older ones down to the millisecond."""
    ids = [new_chat_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(is_chat_id(one) and not is_conversation_id(one) for one in ids)
    assert is_conversation_id(new_conversation_id())
    assert not is_chat_id("ch_" + "z" * 26)
    assert not is_chat_id("ch_#")


@pytest.mark.parametrize("qualifier", ["", ":live", ":12"])
def test_an_execution_is_found_whatever_it_was_started_by(qualifier: str) -> None:
    """By the machine, its alias or a version: their executions' ARNs say none of it."""
    machine = f"arn:aws:states:eu-central-1:123456789012:stateMachine:dualtrack-prod-chat{qualifier}"
    assert execution_arn(machine, "ch_1") == (
        "arn:aws:states:eu-central-1:123456789012:execution:dualtrack-prod-chat:ch_1"
    )
