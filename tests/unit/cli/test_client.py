"""The client against a server that speaks the contract: resuming, retrying, refusing."""

from __future__ import annotations

from typing import Any

import pytest
from dualtrack_stack.cli.client import ApiClient, RequestRefused, Unreachable, is_loopback
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.responses import HTMLResponse

from tests.servers.api_server import CHAT_ID, Refusal, Script, answered, api_server

BUSY = (503, {"code": "unavailable", "message": "Later."}, {"Retry-After": "7"})


class Pauses(list[float]):
    """A sleep that only records the seconds."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def numbers(client: ApiClient, after: int = 0) -> list[int]:
    return [event.id for event in client.events(CHAT_ID, after)]


@pytest.mark.parametrize("torn", [False, True])
def test_a_stream_that_breaks_is_resumed_where_it_stopped(torn: bool) -> None:
    script = Script(events=answered(), cuts=[3, 3, 7], torn=torn)
    pauses = Pauses()
    with api_server(script) as url, ApiClient(url, "token-of-user", sleep=pauses) as client:
        assert numbers(client) == list(range(1, 12))
    assert script.resumed_from == [0, 3, 3, 7]
    assert len(pauses) == 1, "only a stream without events causes a wait"


def test_events_can_be_read_from_any_point() -> None:
    with api_server(Script(events=answered())) as url, ApiClient(url, "token-of-user") as client:
        assert numbers(client, after=9) == [10, 11]


def test_a_busy_stream_function_is_retried_after_the_time_it_gives() -> None:
    script = Script(events=answered(), refusals={f"GET /v1/chats/{CHAT_ID}/events": [BUSY, BUSY]})
    pauses = Pauses()
    with api_server(script) as url, ApiClient(url, "token-of-user", sleep=pauses) as client:
        assert numbers(client)[-1] == 11
    assert pauses == [7, 7]


def test_with_too_many_open_streams_it_waits_and_says_so_once() -> None:
    crowded = (429, {"code": "rate_limited", "message": "Too many."}, {"Retry-After": "9"})
    script = Script(events=answered(), refusals={f"GET /v1/chats/{CHAT_ID}/events": [crowded] * 20})
    pauses, told = Pauses(), list[str]()
    with api_server(script) as url, ApiClient(url, "token-of-user", sleep=pauses) as client:
        assert [event.id for event in client.events(CHAT_ID, tell=told.append)][-1] == 11
    assert pauses == [9] * 20
    assert len(told) == 1
    assert "continues when another closes" in told[0]


def test_a_stream_that_cannot_be_opened_is_given_up() -> None:
    refusals: dict[str, list[Refusal | None]] = {f"GET /v1/chats/{CHAT_ID}/events": [BUSY] * 100}
    script = Script(events=answered(), refusals=refusals)
    with (
        api_server(script) as url,
        ApiClient(url, "token-of-user", sleep=Pauses()) as client,
        pytest.raises(RequestRefused) as refused,
    ):
        numbers(client)
    assert refused.value.code == "unavailable"


def test_a_server_that_does_not_return_is_unreachable() -> None:
    script = Script(events=answered(), cuts=[4])
    with ApiClient("http://127.0.0.1:9", sleep=Pauses()) as client, pytest.raises(Unreachable):
        numbers(client)
    with api_server(script) as url:
        client = ApiClient(url, "token-of-user", sleep=Pauses())
        events = client.events(CHAT_ID)
        first = [next(events).id for _ in range(4)]
    assert first == [1, 2, 3, 4]
    with client, pytest.raises(Unreachable):
        next(events)


def test_a_stream_that_never_ends_is_given_up_when_no_chat_can_still_run() -> None:
    script = Script(events=answered(), cuts=[2] * 1000)
    hours = iter(range(0, 10_000_000, 300))
    with (
        api_server(script) as url,
        ApiClient(url, "token-of-user", sleep=Pauses(), clock=lambda: float(next(hours))) as client,
        pytest.raises(Unreachable, match="before the end"),
    ):
        numbers(client)


def test_a_chat_that_no_longer_exists_is_not_retried() -> None:
    with (
        api_server(Script()) as url,
        ApiClient(url, "token-of-user") as client,
        pytest.raises(RequestRefused) as refused,
    ):
        list(client.events("ch_of_yesterday"))
    assert refused.value.code == "not_found"


def test_a_lost_response_is_retried_without_a_second_chat() -> None:
    script = Script(lost=["POST /v1/chats"])
    with api_server(script) as url, ApiClient(url, "token-of-user", sleep=Pauses()) as client:
        assert client.start_chat("Hello").chat_id == CHAT_ID
    assert len(script.asked("POST", "/v1/chats")) == 2
    assert len(script.chats) == 1


def test_a_refusal_is_not_retried() -> None:
    script = Script(
        refusals={"POST /v1/chats": [(409, {"code": "conversation_busy", "message": "Busy."}, {})]}
    )
    with (
        api_server(script) as url,
        ApiClient(url, "token-of-user", sleep=Pauses()) as client,
        pytest.raises(RequestRefused) as refused,
    ):
        client.start_chat("Hello")
    assert (refused.value.status, refused.value.message) == (409, "Busy.")
    assert len(script.requests) == 1


def test_a_wrong_token_is_refused() -> None:
    with api_server(Script(mode=None)) as url, ApiClient(f"{url}/stage", "wrong") as client:
        with pytest.raises(RequestRefused) as refused:
            client.call("GET", "/v1/credits")
        assert refused.value.code == "unauthorized"


@pytest.mark.parametrize("status", [200, 404, 502])
def test_a_web_page_at_the_address_is_not_a_stack(status: int) -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        await HTMLResponse("<h1>It works!</h1>", status)(scope, receive, send)

    with (
        serve_in_thread(page) as url,
        ApiClient(url, sleep=Pauses()) as client,
        pytest.raises(Unreachable, match="not as a dualtrack stack"),
    ):
        client.start_chat("Hello")


def test_the_stage_path_of_a_gateway_address_is_kept() -> None:
    script = Script()
    with (
        api_server(script) as url,
        ApiClient(f"{url}/prod", "token-of-user") as client,
        pytest.raises(RequestRefused),
    ):
        client.call("GET", "/v1/credits")
    assert script.requests[0][1] == "/prod/v1/credits"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost", True),
        ("http://[::1]:1", True),
        ("http://127.9.9.9/x", True),
        ("https://localhost.example.com", False),
        ("https://127.0.0.1.example.com", False),
        ("https://abc.execute-api.eu-west-1.amazonaws.com/prod", False),
    ],
)
def test_only_this_machine_is_loopback(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def test_what_is_no_unicode_in_an_argument_is_sent_as_a_replacement_character() -> None:
    """Of a terminal in another encoding; Python has such a byte as half of a surrogate pair."""
    script = Script()
    with api_server(script) as url, ApiClient(url, "token-of-user", sleep=Pauses()) as client:
        assert client.start_chat("Caf\udce9?").chat_id == CHAT_ID
        client.call("GET", "/v1/conversations", params={"q": "caf\udce9"})
    assert script.asked("POST", "/v1/chats")[0]["message"] == "Caf\ufffd?"
