"""Record ids (CONTRACT 6) and the opaque ids of the API."""

from __future__ import annotations

import pytest
from dualtrack.ids import (
    RecordId,
    chat_of_execution,
    execution_arn,
    execution_name,
    file_id,
    is_id,
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
def test_a_written_id_is_parsed_back(query: int, kind: str, number: int, summary: bool) -> None:
    """Round trip, and the whole record of a summary."""
    record_id = RecordId(query, kind, number, summary and kind == "tool")  # type: ignore[arg-type]
    assert parse_record_id(str(record_id)) == record_id
    assert str(record_id.whole) == str(record_id).removesuffix("-sum")


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
    """Keys are built from ids, so nothing else may pass."""
    assert parse_record_id(text) is None


def test_a_query_may_have_a_summary() -> None:
    """A long query is on the summarised track as its summary."""
    record_id = parse_record_id("q12-sum")
    assert record_id == RecordId(12, summary=True)
    assert record_id is not None
    assert (str(record_id), str(record_id.whole)) == ("q12-sum", "q12")


def test_opaque_ids_are_distinct_and_sortable() -> None:
    """Newer ones sort after older ones down to the millisecond."""
    ids = [new_chat_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(is_id("chat_id", opaque) and not is_id("conversation_id", opaque) for opaque in ids)
    assert is_id("conversation_id", new_conversation_id())
    assert not is_id("chat_id", "ch_" + "z" * 26)
    assert not is_id("chat_id", "ch_#")


@pytest.mark.parametrize("qualifier", ["", ":live", ":12"])
def test_an_execution_is_recognised_whatever_started_it(qualifier: str) -> None:
    """Started by the state machine, an alias or a version: the execution's ARN does not show which."""
    machine = f"arn:aws:states:eu-central-1:123456789012:stateMachine:dualtrack-prod-chat{qualifier}"
    assert execution_arn(machine, "ch_1") == (
        "arn:aws:states:eu-central-1:123456789012:execution:dualtrack-prod-chat:ch_1"
    )


def test_an_execution_is_named_after_its_chat_and_counted() -> None:
    assert [execution_name("ch_1"), execution_name("ch_1", 2)] == ["ch_1.1", "ch_1.2"]
    assert {chat_of_execution(execution_name("ch_1", number)) for number in (1, 2, 10)} == {"ch_1"}
