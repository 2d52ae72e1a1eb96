"""What `dualtrack logs` makes of a function's log, in the emulator's form and in Lambda's."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from dualtrack.ids import made_at
from dualtrack_stack.cli import log_commands
from dualtrack_stack.cli.log_commands import read, shown
from dualtrack_stack.cli.tool_logs import LogEvent, calls_of, masked

CHAT = "ch_01k8gnf8mdkk0l2qo8ijin0hs7"
OTHER = "ch_01k8gnm2n7gfvji3k7h32glgfn"
TRACE = [
    "Traceback (most recent call last):",
    '  File "/s/ministack-x/layer_0/python/dualtrack/chat/run_tool.py", line 119, in _within',
    "    return within(max(seconds, 0.1), metered)",
    "           ^^^^^^",
    '  File "/s/ministack-x/code/tools/desk.py", line 10, in look_up',
    "    return find(city)",
    '  File "/s/ministack-x/code/tools/parts/cities.py", line 4, in find',
    '    return {"Ottawa": "x"}[city]',
    "           ~~~~~~~~~~~~~~~^^^^^^",
    '  File "/s/ministack-x/code/site-packages/pandas/core.py", line 7, in get',
    "    raise KeyError(key)",
    "KeyError: 'Berlin'",
]


def events(*texts: str, stream: str = "a", at: int = 1_000) -> list[LogEvent]:
    return [LogEvent(at + number, stream, text) for number, text in enumerate(texts)]


def test_a_failure_has_the_projects_lines() -> None:
    (call,) = calls_of(
        events("START RequestId: r Version: 1", "looking", f"boom {CHAT} failed", *TRACE, "END RequestId: r")
    )

    assert (call.at, call.chat, call.lines) == (1_000, CHAT, ("looking", f"boom {CHAT} failed"))
    (failure,) = call.failures
    assert (failure.place, failure.what) == ("tools/parts/cities.py:4", "KeyError: 'Berlin'")
    assert failure.lines == (
        "  … 1 frames that are not the project's",
        "  tools/desk.py:10 in look_up",
        "      return find(city)",
        "  tools/parts/cities.py:4 in find",
        '      return {"Ottawa": "x"}[city]',
        "  … 1 frames that are not the project's",
        "KeyError: 'Berlin'",
    )


def test_lambdas_json_says_the_same() -> None:
    logged = {
        "timestamp": "2026-11-28T09:23:40Z",
        "level": "ERROR",
        "message": f"boom {CHAT} failed",
        "logger": "dualtrack.chat.run_tool",
        "stackTrace": [
            '  File "/opt/python/dualtrack/chat/run_tool.py", line 119, in _within\n    return within()\n',
            '  File "/var/task/tools/desk.py", line 10, in look_up\n    return TABLE[city]\n',
        ],
        "errorType": "KeyError",
        "errorMessage": "'Berlin'",
        "requestId": "r",
    }
    told = {"level": "INFO", "message": "Runs a tool", "correlation_id": CHAT, "service": "own"}
    (call,) = calls_of(
        events(
            json.dumps({"time": "…", "type": "platform.start", "record": {"requestId": "r"}}),
            json.dumps(told),
            "looking for Berlin",
            json.dumps(logged),
            json.dumps({"time": "…", "type": "platform.report", "record": {"requestId": "r"}}),
        )
    )
    assert call.lines == (
        f"INFO Runs a tool ({CHAT})",
        "looking for Berlin",
        f"ERROR dualtrack.chat.run_tool boom {CHAT} failed",
    )
    assert (call.chat, call.failures[0].place, call.failures[0].what) == (
        CHAT,
        "tools/desk.py:10",
        "KeyError: 'Berlin'",
    )


def test_calls_of_two_streams_are_kept_apart_and_an_unfinished_one_counts() -> None:
    mixed = [
        *events("START RequestId: r", f"one {CHAT}", stream="a", at=10),
        *events(
            "START RequestId: s", f"two {OTHER}", "END RequestId: s", "REPORT RequestId: s", stream="b", at=11
        ),
        *events("more of one", stream="a", at=20),
    ]
    first, second = calls_of(mixed)
    assert (first.chat, first.lines) == (CHAT, (f"one {CHAT}", "more of one"))
    assert (second.chat, second.lines) == (OTHER, (f"two {OTHER}",))


def test_secrets_are_masked_everywhere() -> None:
    texts = ["START RequestId: r", "key sk-live-123", *TRACE[:-1], "ValueError: sk-live-123 was refused"]
    (call,) = calls_of(events(*texts))
    hidden = masked(call, {"BILLING_KEY": "sk-live-123", "SHORT": "a"})
    assert "sk-live" not in str(hidden)
    assert hidden.failures[0].what == "ValueError: ••• was refused"
    assert "key •••" in "\n".join(shown(hidden))


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1}', "[1]", '{"message": 5}', "Traceback (most recent call last):"]
)
def test_any_line_is_shown(text: str) -> None:
    calls = calls_of(events("START RequestId: r", text, "END RequestId: r"))
    assert len(calls) <= 1


class Logs:
    """The service's pages."""

    def __init__(self, *pages: list[LogEvent]) -> None:
        self.pages = pages
        self.asked: list[dict[str, Any]] = []

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        at = int(asked.get("nextToken", 0))
        page: dict[str, Any] = {
            "events": [
                {"timestamp": event.at, "logStreamName": event.stream, "message": event.text}
                for event in self.pages[at]
            ]
        }
        return {**page, "nextToken": str(at + 1)} if at + 1 < len(self.pages) else page


def test_a_call_may_go_on_over_pages() -> None:
    logs = Logs(events("START RequestId: r", "first"), events("second", "END RequestId: r", at=2_000))
    (call,) = read(logs, "group", 5, {})
    assert call.lines == ("first", "second")
    assert [asked.get("nextToken") for asked in logs.asked] == [None, "1"]


def test_a_chats_id_says_when_it_was_made() -> None:
    assert int(made_at(CHAT) * 1_000) // 100_000_000 == 17958  # 2026-11-28


def test_each_call_is_followed_to_its_end_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its beginning is too old to be read again."""
    now = int(time.time() * 1_000)
    first = events("START RequestId: r", "one", at=now)
    later = events(
        "two", "END RequestId: r", "START RequestId: s", "three", "END RequestId: s", at=now + 1_000
    )
    looks = iter(
        [
            first,
            [*first, *later],
            later,
            [*later, *events("START RequestId: t", "END RequestId: t", at=now + 2_000)],
        ]
    )

    class Growing(Logs):
        def filter_log_events(self, **asked: Any) -> dict[str, Any]:
            look = next(looks, None)
            if look is None:
                raise KeyboardInterrupt
            self.pages = (look,)
            return super().filter_log_events(**asked)

    monkeypatch.setattr(log_commands, "_LOOK_SECONDS", 0)
    told: list[tuple[str, ...]] = []
    with pytest.raises(KeyboardInterrupt):
        told.extend(call.lines for call in read(Growing(), "group", 5, {}, following=True))
    assert told == [("one", "two"), ("three",)]
