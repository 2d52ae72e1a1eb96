"""Cases made of recorded chats, and chats that are replayed: from files as `dualtrack show --json` writes them."""

from __future__ import annotations

import json
import re
import sys
import time
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack_stack.cli.main import main
from dualtrack_stack.evals.make_case import toml
from dualtrack_stack.evals.past_chat import past_of
from dualtrack_stack.evals.scrub import Scrub
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Evaluate = Callable[..., Result]

COLD = "-12 °C, snow"
MAIL = "ann.miller@corp.example.org"


def call(place: str, tool: str, given: dict[str, Any], result: str, **more: Any) -> dict[str, Any]:
    return {
        "record_id": place,
        "type": "tool_call",
        "role": "tool",
        "tool": tool,
        "tool_use_id": f"toolu_{place.replace('-', '')}",
        "input": given,
        "result": result,
        "is_error": False,
        "status": "done",
        "turn": 1,
        **more,
    }


def said(place: str, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"record_id": place, "type": "message", "role": role, "content": content, **more}


def conversation(*records: dict[str, Any]) -> dict[str, Any]:
    return {"conversation_id": "cv_1", "profile": "assistant", "track": "full", "records": list(records)}


FORECAST = (
    said(
        "q1",
        "user",
        f"weather city=Ottawa for {MAIL}",
        chat_id="ch_one",
        attachments=[{"name": "ann-miller.pdf"}],
    ),
    said("q1-a1", "assistant", "Let me see.", turn=1),
    call("q1-t1", "weather", {"city": "Ottawa"}, COLD),
    said("q1-r", "assistant", f"Snow, {MAIL}.", stop="complete"),
)
ORDERED = (
    said("q2", "user", "order item=boots", chat_id="ch_two"),
    call("q2-t1", "order", {"item": "boots"}, "ordered boots, once"),
    call("q2-t2", "github__find", {"q": "boots"}, "three boots"),
    said("q2-r", "assistant", "Ordered.", stop="complete"),
)


@pytest.fixture
def past(root: Path) -> Path:
    file = root / "past.json"
    file.write_text(json.dumps(conversation(*FORECAST, *ORDERED)))
    return file


def replayed(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", *arguments])


def test_a_chat_becomes_a_case_that_passes(evaluate: Evaluate, root: Path, past: Path) -> None:
    before = list(sys.modules["tools.orders"].MADE) if "tools.orders" in sys.modules else []
    made = evaluate("add", str(past), "--name", "Boots")
    assert made.exit_code == 0, made.output
    assert "1 × address" in made.output
    file, tape = root / "evals" / "boots.toml", root / "evals" / "recorded" / "boots-Boots.json"
    written = file.read_text()
    assert MAIL not in written + tape.read_text()
    assert "ann-miller.pdf" not in written
    case = tomllib.loads(written)["case"][0]
    assert case["origin"] == {"chat": "ch_two", "stack": "local", "made": case["origin"]["made"]}
    assert [turn["ask"] for turn in case["turn"]] == [
        "weather city=Ottawa for person1@example.com",
        "order item=boots",
    ]
    again = evaluate("evals/boots.toml")
    assert again.exit_code == 0, again.output
    assert "passed  boots/Boots  (recorded, 4 turns" in again.output
    assert before == sys.modules["tools.orders"].MADE
    assert "drifted" not in again.output
    assert "recorded for another" not in again.output
    assert (
        evaluate("add", str(past), "--name", "Boots").exit_code,
        (root / "evals" / "boots-2.toml").is_file(),
    ) == (0, True)


def test_what_was_said_belongs_to_the_calls_behind_it() -> None:
    """The first turn calls without a word; the thought before the second is still the first of the query."""
    records = [
        said("q1", "user", "Both?"),
        said("q1-a1", "assistant", "And Lisbon.", created_at="2026-11-28T10:00:03.000Z"),
        call("q1-t1", "weather", {"city": "Ottawa"}, COLD, turn=1, created_at="2026-11-28T10:00:02.000Z"),
        call("q1-t2", "weather", {"city": "Lisbon"}, "rain", turn=2, created_at="2026-11-28T10:00:04.000Z"),
        said("q1-r", "assistant", "Snow, rain.", stop="complete"),
    ]
    (query,) = past_of(conversation(*records)).queries
    assert [(turn.said, [one.id for one in turn.calls]) for turn in query.turns] == [
        ("", ["q1-t1"]),
        ("And Lisbon.", ["q1-t2"]),
    ]


def test_what_is_no_chat_is_said(evaluate: Evaluate, root: Path) -> None:
    assert "no chat (ch_…), no conversation (cv_…) and no file" in evaluate("add", "nothing.json").output
    (root / "x.json").write_text("[1]")
    assert "This is no conversation" in evaluate("add", str(root / "x.json")).output
    (root / "x.json").write_text(json.dumps({**conversation(*FORECAST), "track": "summarised"}))
    assert "not the full track" in evaluate("add", str(root / "x.json")).output
    (root / "x.json").write_text(json.dumps(conversation()))
    assert "Nothing was asked" in replayed(str(root / "x.json")).output


def test_nothing_differs_where_all_is_recorded(past: Path) -> None:
    again = replayed(str(past))
    assert again.exit_code == 0, again.output
    assert again.output.count("nothing differs") == 2
    assert again.output.count("(as recorded)") == 2


def test_from_a_call_on_the_tool_is_today_s(root: Path) -> None:
    file = root / "past.json"
    file.write_text(
        json.dumps(
            conversation(*FORECAST[:2], call("q1-t1", "weather", {"city": "Ottawa"}, "-40 °C"), FORECAST[3])
        )
    )
    same = replayed(str(file))
    assert "nothing differs" in same.output
    again = replayed(str(file), "--from", "q1-t1")
    assert "(new from here)" in again.output
    assert "--40 °C" in again.output
    assert f"+{COLD}" in again.output
    assert "q1-r" in again.output


def test_from_an_answer_on_the_model_is_today_s(past: Path) -> None:
    again = replayed(str(past), "--from", "q1-r", "--json")
    first, second = json.loads(again.output)["queries"]
    assert not any("q1-t1" in line for line in first["differences"])
    assert any(line.startswith("-Snow") for line in first["differences"])
    assert second["differences"], "what comes later is new"


def test_nothing_that_changes_something_runs_unasked(past: Path) -> None:
    again = replayed(str(past), "--from", "q2")
    assert again.exit_code == 0, again.output
    assert again.output.count("nothing differs") == 1
    assert "boots" not in sys.modules["tools.orders"].MADE
    assert "not called" in again.output or "declined" in again.output


def test_a_tool_that_nobody_is_asked_about_does_not_run_either(root: Path) -> None:
    file = root / "past.json"
    asked, done = (
        said("q1", "user", "ship item=kayak"),
        said("q1-r", "assistant", "Shipped.", stop="complete"),
    )
    file.write_text(
        json.dumps(conversation(asked, call("q1-t1", "ship", {"item": "kayak"}, "shipped kayak"), done))
    )
    again = replayed(str(file), "--from", "q1-t1")
    assert again.exit_code == 0, again.output
    assert "-shipped kayak" in again.output
    assert "+This call was not run: the chat is replayed" in again.output
    assert "kayak" not in sys.modules["tools.orders"].MADE


def test_a_step_that_there_is_not_is_said(past: Path) -> None:
    assert "There is no step q9: it has q1, q2" in replayed(str(past), "--from", "q9").output
    assert "There is no step q2-t7: q2-t1, q2-t2" in replayed(str(past), "--from", "q2-t7").output
    assert replayed(str(past), "--from", "nonsense").exit_code == 2


def test_the_same_text_has_the_same_stand_in() -> None:
    scrub = Scrub({"Ann Miller": "Person A"})
    text = scrub.text(
        f"Ann Miller, {MAIL}, 10.1.2.3, +49 30 1234567, card 4111 1111 1111 1111, DE89 3704 0044 0532 0130 00, "
        "cus_9s6XKzkNRiz8i3, 6fa459ea-ee8a-3ca4-894e-db77e160355e, sk-ant-REDACTED, on 2026-11-28 10:00, 42"
    )
    assert text == (
        "Person A, person1@example.com, 192.0.2.1, +1 555 0101, card 0000 0000 0000 0001, XX00 EXAMPLE 1, "
        "cus_example000001, 00000000-0000-4000-8000-000000000001, KEY-1, on 2026-11-28 10:00, 42"
    )
    assert scrub.value({"to": [MAIL, 3, None]}) == {"to": ["person1@example.com", 3, None]}
    assert scrub.text(text) == text


def test_hostile_texts_take_linear_time() -> None:
    for piece in ("a", "1 ", "a.", "1.", "a@b.", "AB12", "+1 ", "eyJabc.", "id_"):
        began = time.process_time()
        Scrub().text(piece * (400_000 // len(piece)))
        assert time.process_time() - began < 10, piece


VALUES = st.recursive(
    st.text()
    | st.integers(-(2**60), 2**60)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_as_toml_is_read_alike(value: Any) -> None:
    assert tomllib.loads(f"value = {toml(value)}")["value"] == value


def test_a_field_without_a_value_is_left_out() -> None:
    assert toml({"a": None, "b c": "\x7f\ud800"}) == '{ "b c" = "\\u007f\ufffd" }'
    assert re.search("a", toml({"a": 1}))
