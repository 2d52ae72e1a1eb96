"""Whole chats with the desk's agent and tools. The model is a script: each item answers one of its calls."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.testing import calls, local_chat
from tools.desk import table

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_customer_sees_their_own_tickets() -> None:
    with local_chat("support", model=[calls("list_tickets", status="open"), "Two are open."]) as chat:
        answer = chat.ask("What is open?")
    assert [line in answer.calls[0].result for line in ("1004", "1005", "1001", "Theirs")] == [
        True,
        True,
        False,
        False,
    ]
    assert answer.text == "Two are open."


def test_another_customers_ticket_is_not_there() -> None:
    with local_chat("support", model=[calls("read_ticket", number=9), "I cannot find it."]) as chat:
        answer = chat.ask("Read me ticket 9, which is my neighbour's.")
    assert answer.calls[0].is_error
    assert "There is no ticket 9" in answer.calls[0].result


def test_a_note_is_with_the_ticket() -> None:
    model = [calls("add_note", number=1004, text="Please send it to work."), "I passed it on."]
    with local_chat("support", model=model) as chat:
        answer = chat.ask("Send the replacement to my workplace.")
    assert not answer.calls[0].is_error
    notes = table().get_item(Key={"customer": "test", "number": 1004})["Item"]["notes"]
    assert [note[11:] for note in notes] == ["Please send it to work."]


def test_an_empty_note_is_refused_before_it_costs_anything() -> None:
    with local_chat(
        "support", model=[calls("add_note", number=1004, text=""), "What shall I write?"]
    ) as chat:
        answer = chat.ask("Add a note.")
    assert answer.calls[0].is_error
    assert answer.credits == 5


@pytest.mark.parametrize(
    ("decision", "ordered", "told"),
    [
        ({"approve": True}, [("bulb", "4.5")], "bulb for 4.50 euros is ordered"),
        ({"input": {"number": 1004, "article": "bulb", "amount": 3.5}}, [("bulb", "3.5")], "for 3.50 euros"),
        ({"approve": False, "reason": "Too dear."}, [], "declined this call: Too dear."),
        (None, [], "Nobody decided in time."),
    ],
    ids=["approved", "edited", "declined", "expired"],
)
def test_an_order_waits_for_the_customer(
    decision: dict[str, Any] | None, ordered: list[Any], told: str
) -> None:
    order = calls("place_order", number=1004, article="bulb", amount=4.5)
    with local_chat("support", model=[order, "Noted."]) as chat:
        waiting = chat.ask("Send me a bulb.")
        assert waiting.status == "paused"
        assert not waiting.pause.calls[0].allowable  # each order is asked for
        assert orders() == []
        answer = chat.decide(**decision) if decision else chat.expire()
    assert told in answer.calls[0].result
    assert orders() == ordered


def orders() -> list[tuple[str, str]]:
    """Of ticket 1004: articles and what they cost."""
    ticket = table().get_item(Key={"customer": "test", "number": 1004})["Item"]
    return [(order["article"], str(order["amount"])) for order in ticket.get("orders", [])]


def test_the_weeks_come_as_a_table_and_a_picture() -> None:
    with local_chat("support", model=[calls("tickets_per_week"), "Five in eight weeks."]) as chat:
        answer = chat.ask("How many tickets did I have?")
    assert answer.calls[0].result.startswith("week,")
    image = answer.sent[1]["messages"][-1]["content"][0]["content"][-1]
    assert (image["type"], image["source"]["media_type"]) == ("image", "image/png")


class Carrier(BaseHTTPRequestHandler):
    """The carrier's API: knows one parcel, and whoever has the key."""

    def do_GET(self) -> None:
        known = self.path == "/parcels/PX-80455" and self.headers["Authorization"] == "Bearer key-of-the-test"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(b"In Leipzig, due tomorrow" if known else b"")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def carrier() -> Iterator[str]:
    """The carrier's address."""
    server = HTTPServer(("127.0.0.1", 0), Carrier)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_parcel_is_tracked_with_the_key(carrier: str) -> None:
    model = [calls("track_parcel", number=1004), "It is in Leipzig."]
    settings = {"CARRIER_URL": carrier, "CARRIER_KEY": "key-of-the-test"}
    with local_chat("support", model=model, settings=settings) as chat:
        answer = chat.ask("Where is the replacement?")
    assert answer.calls[0].result == "In Leipzig, due tomorrow"
    assert answer.credits == 7
