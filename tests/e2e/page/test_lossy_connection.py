"""A chat over a line that loses packets: what the page shows at its end is what the API has, once."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

import pytest

from tests.clients.stack_client import Person, chats_of
from tests.long_forms import LONG
from tests.servers.lossy_line import losing

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

SEED: Final = int(os.environ.get("DUALTRACK_LINE_SEED", "20261125"))
SEEDS: Final = range(SEED, SEED + (6 if LONG else 2))
SENDINGS: Final = 30
"""How often a reader presses Enter before giving up."""
ANSWER: Final = "\n\n".join(f"Paragraph {number} says **{number}**." for number in range(1, 41))
SLOWLY: Final = {"chunk": 24, "delay_chunk": 0.02}

SENT_OR_BACK = """() => document.querySelector("li.exchange:last-child:not([data-status=sending])")
    || document.getElementById("message").value"""


def send(reader: Reader, text: str) -> Locator:
    """Press Enter until the message is sent, as a reader does who is told that the server cannot be reached."""
    exchanges = reader.page.locator("li.exchange")
    before = exchanges.count()
    reader.field.fill(text)
    for _ in range(SENDINGS):
        reader.field.press("Enter")
        reader.page.wait_for_function(SENT_OR_BACK)
        if exchanges.count() > before:
            return exchanges.nth(before)
        assert reader.field.input_value() == text, "the message is as it was written"
    raise AssertionError("the message could not be sent")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_chat_over_a_line_that_loses_packets_ends_as_the_api_has_it(
    visit: Callable[..., Reader], root: Root, script: Script, tools: ToolServer, seed: int
) -> None:
    """With its tools: no step twice, no text doubled or lost, one chat for each question."""
    where = f"seed {seed}"
    with losing(root.stack.url, str(seed)) as line:
        reader = visit(line.url)
        reader.sign_in()
        tools.gate(script.marker).released.set()
        script.asks(
            ("kit_echo", {"text": "first " * 300}), ("kit_hold", {"name": script.marker}), text="Looking."
        )
        script.asks(("kit_echo", {"text": "second"}), text="Looking again.", **SLOWLY)
        script.says(ANSWER, **SLOWLY)
        script.says("And that is all.", **SLOWLY)
        line.begin()
        send(reader, script.question("first"))
        done = reader.exchange("done")
        first = done.locator(".answer").inner_text()
        names = [name.strip() for name in done.locator(".call .tool").all_text_contents()]
        interim = done.locator(".turn > .interim").all_text_contents()
        send(reader, script.question("second"))
        reader.exchange("done", index=1)
        second = reader.answer()
        line.end()
        assert line.resets > 0, where
        assert first.count("Paragraph 7 ") == 1, where
        with contextlib.closing(Person(root.stack.url, root.stack.token(reader.name))) as person:
            assert len(chats_of(root.stores(), person.id)) == 2, where
            (conversation,) = person.get("/v1/conversations")["conversations"]
            records = person.records(conversation["conversation_id"])
        answers = [each["content"] for each in records if each["record_id"].endswith("-r")]
        assert answers == [ANSWER, "And that is all."], where
        assert (names, interim, script.left, len(script.requests())) == (
            ["kit_echo", "kit_hold", "kit_echo"],
            ["Looking.", "Looking again."],
            0,
            4,
        ), where
        reader.page.reload()  # over a line that is well again
        reader.exchange("done", index=1)
        shown = reader.page.locator(".answer").all_inner_texts()
        # an answer stays as it was written if its formatting could not be loaded over this line
        assert [first.replace("**", ""), second] == [text.replace("**", "") for text in shown], where
        assert names == [name.strip() for name in reader.page.locator(".call .tool").all_text_contents()], (
            where
        )


def test_a_part_of_the_page_that_cannot_be_loaded_is_told_and_loads_later(reader: Reader) -> None:
    page = reader.page
    page.route("**/js/credits_view.js", lambda route: route.abort())
    page.locator("#credits").click()
    reader.sees("Part of the page did not load.")
    assert [error for error in reader.errors if "did not load" not in error] == []
    reader.errors.clear()
    page.unroute("**/js/credits_view.js")
    page.locator("#credits").click()
    page.locator("dialog[open]").get_by_role("heading", name="Credits").wait_for()
