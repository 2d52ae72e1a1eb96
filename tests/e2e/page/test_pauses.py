"""A chat that waits for its reader: the card, the list, a reload, two tabs, a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ToolAnnotations

from tests.clients.page_reader import accept_word
from tests.clients.stack_client import Person

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer


def waits(reader: Reader, script: Script, name: str = "to all") -> Locator:
    """The card of a call that needs approval, in a new conversation."""
    reader.page.get_by_role("radio", name="Careful", exact=True).check()
    script.asks(("kit_write", {"name": name}), text="I will send this to all.")
    reader.field.fill(script.question())
    reader.page.get_by_role("button", name="Send", exact=True).click()
    card = reader.page.get_by_label("Waiting for you", exact=True)
    card.get_by_role("button", name="Approve: kit_write").wait_for()
    return card


@pytest.fixture(autouse=True)
def gates(tools: ToolServer) -> None:
    """What is written in these tests is written at once."""
    for name in ("to all", "to Ann"):
        tools.gate(name).released.set()


def results(script: Script) -> list[dict[str, Any]]:
    """The tool results that the model was sent last."""
    return [
        block for block in script.requests()[-1]["messages"][-1]["content"] if block["type"] == "tool_result"
    ]


def test_a_call_is_shown_and_approved(reader: Reader, script: Script) -> None:
    card = waits(reader, script)
    assert card.get_by_role("row").all_inner_texts() == ["name\tto all"]
    assert "I will send this to all." in reader.page.locator(".interim").inner_text()
    reader.page.locator("#pauses").get_by_text("Waiting for you: 1", exact=True).wait_for()
    reader.page.locator(".waiting-mark").first.wait_for()
    script.says("Sent.")
    card.get_by_role("button", name="Approve: kit_write").click()
    reader.exchange("done")
    assert reader.answer() == "Sent."
    assert "to all" in str(results(script))
    reader.follow_up("() => document.getElementById('pauses').hidden")
    assert len(reader.event_requests) == 2, "one stream until the pause, one from the decision on"


def test_an_input_is_edited_and_the_model_is_told(reader: Reader, script: Script) -> None:
    card = waits(reader, script)
    card.get_by_role("button", name="Edit: kit_write").click()
    card.get_by_label("Arguments").fill('{"name": 7}')
    card.get_by_role("button", name="Approve as edited: kit_write").click()
    assert "name" in card.get_by_role("alert").inner_text(), "the server's words about the input"
    script.says("Sent to Ann.")
    card.get_by_label("Arguments").fill('{"name": "to Ann"}')
    card.get_by_role("button", name="Approve as edited: kit_write").click()
    reader.exchange("done")
    assert "to Ann" in str(results(script))


def test_what_is_written_in_a_card_stays_when_its_reader_comes_back(reader: Reader, script: Script) -> None:
    card = waits(reader, script)
    card.get_by_role("button", name="Edit: kit_write").click()
    card.get_by_label("Arguments").fill('{"name": "to Ann"}')
    for _ in range(3):  # the chat is read each time, and shown before it is read again
        with reader.page.expect_response(lambda answer: "/v1/chats/ch_" in answer.url):
            reader.page.dispatch_event("body", "visibilitychange")
    assert card.get_by_label("Arguments").input_value() == '{"name": "to Ann"}'
    assert card.get_by_label("Arguments").evaluate("field => field === document.activeElement")


def test_a_tool_is_allowed_for_the_conversation_and_taken_back(reader: Reader, script: Script) -> None:
    """Its next call runs unasked; the button in the head says so, and is the way back."""
    card = waits(reader, script)
    allowed = reader.page.locator("#allowed")
    assert allowed.is_hidden()
    script.says("Sent.")
    card.get_by_role("button", name="Allow in this conversation: kit_write").click()
    reader.exchange("done")
    allowed.wait_for()
    assert allowed.inner_text() == "Allowed here: 1"
    script.asks(("kit_write", {"name": "to Ann"}))
    script.says("Sent again.")
    reader.send(script.question("And to Ann."))
    reader.sees("Sent again.")
    reader.page.reload()
    allowed.click()
    dialog = reader.page.get_by_role("dialog", name="Allowed in this conversation")
    dialog.get_by_role("button", name="Take back: kit_write").click()
    allowed.wait_for(state="hidden")
    script.asks(("kit_write", {"name": "to Ann"}))
    reader.send(script.question("Once more."))
    reader.page.get_by_role("button", name="Approve: kit_write").wait_for()


def test_a_call_that_destroys_is_red_and_says_so(
    reader: Reader, script: Script, tools: ToolServer, root: Root
) -> None:
    with tools.offering("wipe", "Wipes it.", ToolAnnotations(destructive_hint=True)):
        root.invoke("Mcp", {"action": "refresh"})
        reader.page.get_by_role("radio", name="Careful", exact=True).check()
        script.asks(("kit_wipe", {"name": "all"}), ("kit_write", {"name": "to all"}))
        reader.send(script.question())
        card = reader.page.get_by_label("Waiting for you", exact=True)
        wipe = card.get_by_role("button", name="Approve: kit_wipe")
        wipe.wait_for()
        (said,) = card.locator(".pause-destroys").all()
        assert "It destroys something" in said.inner_text()
        colours = [
            one.evaluate("(drawn, name) => getComputedStyle(drawn)[name]", name)
            for one, name in (
                (said, "color"),
                (wipe, "backgroundColor"),
                (card.get_by_role("button", name="Approve: kit_write"), "backgroundColor"),
            )
        ]
        assert len({*colours[1:]}) == 2, "its button is not that of what can be mended"
        assert _is_red(colours[0])
    root.invoke("Mcp", {"action": "refresh"})


def _is_red(colour: str) -> bool:
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return red > 2 * max(green, blue)


def test_a_write_that_was_stopped_may_have_run(reader: Reader, script: Script, tools: ToolServer) -> None:
    """Its label can be seen, at once and after a reload."""
    script.asks(("kit_write", {"name": script.marker}))
    reader.send(script.question())
    assert tools.gate(script.marker).arrived.wait(60)
    reader.page.get_by_role("button", name="Stop").click()
    reader.exchange("cancelled")
    for _ in range(2):
        label = reader.exchange("cancelled").locator(".call-unknown")
        label.wait_for(state="attached")
        assert (label.text_content() or "").strip() == "may have run"
        reader.page.reload()
    tools.gate(script.marker).released.set()


HOSTILE = "to\u200b all\u202egnp\U000e0041" + "\n" * 40 + "x" * 3_000 + " and Mallory"


def test_what_is_hidden_is_marked_and_a_long_input_is_read_before_it_is_approved(
    reader: Reader, script: Script, tools: ToolServer
) -> None:
    tools.gate(HOSTILE).released.set()
    card = waits(reader, script, HOSTILE)
    marks = card.locator(".hidden-sign")
    assert marks.all_inner_texts() == ["\\u200b", "\\u202e", "\\U000e0041"]
    row = card.get_by_role("row").inner_text()
    assert "and Mallory" in row, "its end is in sight"
    assert "x" * 1_000 not in row
    assert not set("\u200b\u202e\U000e0041") & set(card.inner_text())
    approve = card.get_by_role("button", name="Approve: kit_write")
    assert approve.is_disabled()
    assert card.get_by_role("button", name="Allow in this conversation: kit_write").is_disabled()
    assert card.get_by_role("button", name="Decline: kit_write").is_enabled()
    card.get_by_role("button", name="Show all of name").click()
    assert "x" * 3_000 in card.get_by_role("row").inner_text()
    assert approve.is_enabled()
    assert card.get_by_text("Show all of its arguments").count() == 0
    script.says("Sent.")
    approve.click()
    reader.exchange("done")
    assert "and Mallory" in str(results(script))


def test_a_field_hides_nothing_of_an_edited_input(reader: Reader, script: Script, tools: ToolServer) -> None:
    """It has escapes; what is pasted is written out, and is sent by a second click."""
    tools.gate("b\u202ec").released.set()
    card = waits(reader, script, "a\u200bb")
    card.get_by_role("button", name="Edit: kit_write").click()
    field = card.get_by_label("Arguments")
    assert '"a\\u200bb"' in field.input_value()
    field.fill('{"name": "b\u202ec"}')
    send = card.get_by_role("button", name="Approve as edited: kit_write")
    send.click()
    assert field.input_value() == '{"name": "b\\u202ec"}'
    assert "cannot be seen" in field.evaluate("field => field.validationMessage")
    script.says("Sent.")
    send.click()
    reader.exchange("done")
    assert "b\u202ec" in str(results(script)) or "b\\u202ec" in str(results(script))


def test_a_word_is_accepted_in_the_reason_without_declining(reader: Reader, script: Script) -> None:
    card = waits(reader, script)
    card.get_by_role("button", name="Decline: kit_write").click()
    card.get_by_label("Reason").fill("高い")
    accept_word(reader.page)
    assert card.get_by_label("Reason").input_value() == "高い"
    script.says("I did not send it.")
    reader.page.keyboard.press("Enter")
    reader.exchange("done")
    assert "高い" in str(results(script))


def test_a_declined_call_tells_the_reason(reader: Reader, script: Script) -> None:
    card = waits(reader, script)
    card.get_by_role("button", name="Decline: kit_write").click()
    card.get_by_label("Reason").fill("Too many people.")
    script.says("I did not send it.")
    card.get_by_role("button", name="Decline: kit_write").click()
    reader.exchange("done")
    assert "The user declined this call: Too many people." in str(results(script))


def test_a_pause_survives_a_reload_and_two_tabs_agree(reader: Reader, script: Script) -> None:
    waits(reader, script)
    reader.page.reload()
    card = reader.page.get_by_label("Waiting for you", exact=True)
    card.get_by_role("button", name="Approve: kit_write").wait_for()
    other = reader.page.context.new_page()
    other.goto(reader.page.url)
    other.get_by_role("button", name="Approve: kit_write").wait_for()
    script.says("Sent.")
    card.get_by_role("button", name="Approve: kit_write").click()
    reader.exchange("done")
    other.locator('li.exchange[data-status="done"]').wait_for()
    assert other.get_by_label("Waiting for you", exact=True).count() == 0


def test_two_tabs_agree_on_what_is_allowed(reader: Reader, script: Script) -> None:
    """Allowed in one and taken back in the other, without a reload in either."""
    card, page = waits(reader, script), reader.page
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Approve: kit_write").wait_for()
    script.says("Sent.")
    card.get_by_role("button", name="Allow in this conversation: kit_write").click()
    other.locator("#allowed").get_by_text("Allowed here: 1").click()
    other.get_by_role("button", name="Take back: kit_write").click()
    page.locator("#allowed").wait_for(state="hidden")
    reader.exchange("done")


def test_the_list_comes_back_after_it_could_not_be_read(reader: Reader, script: Script) -> None:
    """As the reader comes back to the tab; the card of the open conversation does not need it."""
    waits(reader, script)
    page, listed = reader.page, reader.page.locator("#pauses")
    page.route("**/v1/pauses", lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/v1/pauses")):
        page.reload()
    page.get_by_role("button", name="Approve: kit_write").wait_for()
    assert listed.is_hidden()
    page.unroute("**/v1/pauses")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    listed.click()
    dialog = page.get_by_role("dialog", name="Waiting for you")
    assert "kit_write" in dialog.inner_text()


def test_a_message_to_a_waiting_conversation_says_what_to_do(reader: Reader, script: Script) -> None:
    waits(reader, script)
    reader.field.fill(script.question("And then?"))
    # the card is drawn before the stream has ended, and Enter does nothing until then
    reader.page.get_by_role("button", name="Send", exact=True).click()
    reader.sees("This conversation waits for your decision.")
    reader.page.get_by_role("button", name="Stop it").click()
    reader.exchange("cancelled")
    assert reader.field.input_value() == script.question("And then?")


def test_calls_are_decided_by_keyboard_and_the_focus_goes_on(reader: Reader, script: Script) -> None:
    """To the next call, and after the last one to the message."""
    page = reader.page
    page.get_by_role("radio", name="Careful", exact=True).check()
    script.asks(("kit_write", {"name": "to all"}), ("kit_write", {"name": "to Ann"}))
    reader.send(script.question())
    page.get_by_role("button", name="Decline: kit_write").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.type("No.")
    page.keyboard.press("Enter")
    reader.follow_up("() => document.querySelectorAll('.pause-call').length === 1")
    page.locator('[aria-label="Approve: kit_write"]:focus').wait_for()
    script.says("To Ann alone.")
    page.keyboard.press("Enter")
    page.locator("#message:focus").wait_for()
    reader.exchange("done")


def test_a_question_is_answered_by_an_option_or_in_the_readers_words(reader: Reader, script: Script) -> None:
    """By keyboard too; what is sent is what the model reads."""
    reader.page.get_by_role("radio", name="Careful", exact=True).check()
    asked = {"question": "Which boat?", "options": ["The red one", "The blue one"]}
    script.asks(("ask_user", asked), ("ask_user", {"question": "For how many?"}))
    reader.field.fill(script.question())
    reader.page.get_by_role("button", name="Send", exact=True).click()
    card = reader.page.get_by_label("Waiting for you", exact=True)
    card.get_by_role("heading", name="Which boat?").wait_for()
    card.get_by_role("button", name="The blue one: ask_user").click()
    card.get_by_role("heading", name="Which boat?").wait_for(state="detached")
    card.get_by_label("Your answer").focus()
    reader.page.keyboard.type("Four people.")
    reader.page.keyboard.press("Tab")
    script.says("Booked.")
    reader.page.keyboard.press("Enter")
    reader.exchange("done")
    assert ["The blue one" in str(results(script)), "Four people." in str(results(script))] == [True, True]


def test_what_a_program_is_asked_for_is_shown_and_can_be_entered(
    root: Root, reader: Reader, script: Script
) -> None:
    """A chat that a program of the same user has started."""
    look_up = {"name": "look_up", "description": "Looks a word up.", "input_schema": {"type": "object"}}
    script.asks(("look_up", {"word": "dinghy"}))
    program = Person(root.stack.url, root.stack.token(reader.name))
    body = {"message": script.question(), "tools": [look_up]}
    started = program.http.post("/v1/chats", json=body).json()
    program.close()
    reader.page.goto(f"{reader.url}#{started['conversation_id']}")
    card = reader.page.get_by_label("Waiting for you", exact=True)
    card.get_by_role("heading", name="Waiting for a program to run look_up").wait_for()
    assert card.get_by_role("row").all_inner_texts() == ["word\tdinghy"]
    card.get_by_role("button", name="Enter the result: look_up").click()
    card.get_by_label("Result", exact=True).fill("A small boat.")
    script.says("It is a small boat.")
    card.get_by_role("button", name="Send the result: look_up").click()
    reader.exchange("done")
    assert "A small boat." in str(results(script))
