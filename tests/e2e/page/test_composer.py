"""No text of the user is lost, and the page stays within its window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.page_reader import accept_word

if TYPE_CHECKING:
    from playwright.sync_api import FilePayload, Route

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script

NOTE: FilePayload = {"name": "note.txt", "mimeType": "text/plain", "buffer": b"Launch on 4 May."}
LONGEST = 32_000


def told(reader: Reader, text: str) -> None:
    """Wait until the composer shows this message."""
    reader.page.get_by_role("alert").filter(has_text=text).wait_for()


def test_a_text_that_is_too_long_is_kept_whole_and_can_be_sent_as_a_file(
    reader: Reader, script: Script
) -> None:
    text = "🪁" * (LONGEST + 7)  # two UTF-16 units each
    reader.field.fill("🪁" * LONGEST)
    assert not reader.page.get_by_role("alert").inner_text()
    reader.page.evaluate("text => navigator.clipboard.writeText(text)", text)
    reader.field.press("Control+a")
    reader.field.press("Control+v")
    told(reader, "at most 32,000 characters; this one is 7 too long.")
    reader.field.press("Enter")
    assert reader.field.input_value() == text
    assert reader.page.locator("li.exchange").count() == 0
    reader.page.get_by_role("button", name="send it as a file").click()
    reader.page.locator("#files").get_by_text("message.txt").wait_for()
    assert not reader.field.input_value()
    reader.field.press("Enter")
    told(reader, "Say what the files are for")
    script.says("Kites.")
    reader.ask(script.question("What is it about?"))
    assert "message.txt" in reader.exchange().locator(".question .file").inner_text()


def test_each_conversation_has_its_draft_which_a_reload_keeps(reader: Reader, script: Script) -> None:
    new = reader.page.get_by_role("button", name="New conversation")
    script.says("Yes.")
    reader.ask(script.question())
    reader.field.fill("and then?")
    new.click()
    reader.sees("What would you like to know?")
    assert not reader.field.input_value()
    reader.page.locator("#picker").set_input_files([NOTE])
    reader.page.locator("#files").get_by_text("note.txt").wait_for()
    reader.field.fill("something new")
    reader.page.go_back()
    reader.sees("Yes.")
    assert reader.field.input_value() == "and then?"
    reader.page.reload()
    reader.sees("Yes.")
    assert reader.field.input_value() == "and then?"
    new.click()
    reader.sees("What would you like to know?")
    assert reader.field.input_value() == "something new"
    reader.page.get_by_role("button", name="Sign out").click()
    reader.page.get_by_label("Name").fill(reader.name)
    reader.page.get_by_role("button", name="Sign in").click()
    reader.credits_shown("45")
    assert not reader.field.input_value()
    assert reader.page.evaluate("sessionStorage.getItem('dualtrack.drafts')") is None


def test_arrow_up_in_an_empty_field_recalls_questions(reader: Reader, script: Script) -> None:
    asked = []
    for answer in ("One.", "Two."):
        script.says(answer)
        asked.append(script.question())
        reader.ask(asked[-1])
    shown = []
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        reader.field.press(key)
        shown.append(reader.field.input_value())
    assert shown == [asked[1], asked[0], asked[0], asked[1], ""]
    reader.field.fill("my own text")
    reader.field.press("ArrowUp")
    assert reader.field.input_value() == "my own text"


def test_text_written_during_an_answer_is_kept_with_a_reason(reader: Reader, script: Script) -> None:
    script.says("word " * 400, chunk=5, delay_chunk=0.1)
    reader.send(script.question())
    reader.shows("word word")
    reader.send("and then?")
    told(reader, "The answer is still being written.")
    assert reader.field.input_value() == "and then?"
    reader.page.reload()
    reader.shows("word word")
    assert reader.field.input_value() == "and then?"
    reader.page.get_by_role("button", name="Stop", exact=True).click()
    stopped = reader.exchange("cancelled")
    kept = stopped.locator(".answer").inner_text()
    reader.page.reload()
    assert reader.exchange("cancelled").locator(".answer").inner_text() == kept


def test_a_refused_message_is_restored_before_newer_text(reader: Reader) -> None:
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    reader.page.route("**/v1/chats", hold)
    with reader.page.expect_request("**/v1/chats"):
        reader.send("first")
    reader.field.fill("second")
    error = {"code": "invalid_request", "message": "Not like this."}
    waiting[0].fulfill(status=400, json={"error": error})
    told(reader, "Not like this.")
    assert reader.field.input_value() == "first\n\nsecond"


SIZES = """() => {
    const page = document.documentElement;
    return [page.scrollHeight - innerHeight, page.scrollWidth - innerWidth];
}"""


def test_the_page_is_never_taller_than_its_window(reader: Reader, script: Script) -> None:
    for _ in range(2):
        script.asks(("kit_echo", {"text": "x"}))
        script.says("\n\n".join(f"Paragraph {number}." for number in range(1, 40)))
        reader.ask(script.question())
    for steps in reader.page.locator(".steps > summary").all():
        steps.click()
    for width in (1280, 390):  # with scroll bars, without phone emulation
        reader.page.set_viewport_size({"width": width, "height": 800})
        assert reader.page.evaluate(SIZES) == [0, 0]
        reader.page.get_by_role("button", name="Memory").click()
        reader.page.locator("table.tracks").wait_for()
        assert reader.page.evaluate(SIZES) == [0, 0]
        reader.page.get_by_role("button", name="Chat", exact=True).click()


def test_enter_that_accepts_a_word_sends_nothing_in_any_field(reader: Reader, script: Script) -> None:
    """Neither Safari's, of code 229, nor one within a composition; the next one does what it does."""
    page = reader.page
    reader.field.fill(script.question("日本語"))
    accept_word(page)
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3})
    page.keyboard.press("Enter")
    session.send("Input.insertText", {"text": "日本"})
    assert reader.field.input_value().strip().endswith("日本")
    assert page.locator(".exchange").count() == 0
    script.says("はい。")
    page.keyboard.press("Enter")
    reader.exchange("done")

    page.get_by_role("button", name="Edit question 1").click()
    editor = page.get_by_label("Question 1, edited")
    editor.fill("別の質問")
    accept_word(page)
    assert editor.input_value() == "別の質問"
    page.keyboard.press("Escape")

    search = page.get_by_role("searchbox")
    search.fill("日本")
    accept_word(page)
    assert search.evaluate("field => field === document.activeElement")
