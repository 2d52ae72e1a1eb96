"""The list of conversations: by date, searched, running ones marked, exported; a busy one names its chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.clients.page_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page, Route

    from tests.clients.script import Script
    from tests.servers.tool_server import ToolServer

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def titles(reader: Reader) -> Locator:
    return reader.page.locator("#conversations a")


def test_groups_are_named_by_date_and_unique(reader: Reader) -> None:
    shown = reader.page.evaluate("""async () => {
        const { groupsOf } = await import("/js/date_groups.js");
        const now = new Date(2026, 2, 3, 12);
        const day = days => new Date(2026, 2, 3 - days, 9).toISOString();
        const family = (days, ...branches) => ({ root: { listed_at: day(days) }, branches: branches.map(ago => ({ listed_at: day(ago) })) });
        const listed = [family(0), family(30, 1), family(2), family(7), family(8), family(40), family(100)];
        return groupsOf(listed, now).map(group => [group.name, group.families.length]);
    }""")
    assert shown == [
        ["Today", 1],
        ["Yesterday", 1],
        ["Previous 7 days", 2],
        ["February", 1],
        ["January", 1],
        ["November 2025", 1],
    ]


def test_the_latest_conversation_comes_first(reader: Reader, script: Script) -> None:
    for text in ("One.", "Two.", "Three."):
        script.says(text)
    reader.ask(script.question("Apples."))
    first = reader.location
    reader.page.get_by_role("button", name="New conversation").click()
    reader.ask(script.question("Pears."))
    reader.follow_up("() => document.querySelectorAll('#conversations a').length === 2")
    assert titles(reader).nth(1).get_attribute("href") == f"#{first}"
    titles(reader).nth(1).click()
    reader.exchange("done")
    reader.ask(script.question("More apples."))
    reader.follow_up("address => document.querySelector('#conversations a').hash === `#${address}`", first)
    assert reader.page.locator("#conversations h2").all_inner_texts() == ["Today"]


def test_a_title_that_the_model_makes_after_the_answer_is_shown(reader: Reader, script: Script) -> None:
    """Here it is in the list from the second time that this is read with the ended chat."""
    read = 0

    def titled(route: Route) -> None:
        nonlocal read
        answer = route.fetch()
        listed = answer.json()
        read += any("running_chat_id" not in conversation for conversation in listed["conversations"])
        for conversation in listed["conversations"] if read > 1 else ():
            conversation["title"] = "Boats of the model"
        route.fulfill(response=answer, json=listed)

    reader.page.route("**/v1/conversations?*", titled)
    script.says("The red one.")
    reader.ask(script.question("Which boat?"))
    titles(reader).filter(has_text="Boats of the model").wait_for()
    reader.page.locator("#title", has_text="Boats of the model").wait_for()
    reader.page.unroute("**/v1/conversations?*")


def test_a_search_finds_questions_and_answers_and_keeps_up_with_typing(
    reader: Reader, script: Script
) -> None:
    for question, answer in (("Apples of the north", "A kumquat is small."), ("Pears of the south", "Two.")):
        script.says(answer)
        reader.page.get_by_role("button", name="New conversation").click()
        reader.ask(script.question(question))
    script.says("Three.")
    reader.ask(script.question("And plums?"))
    field = reader.page.get_by_label("Search conversations")
    reader.page.keyboard.press("Alt+Shift+KeyF")
    assert field.evaluate("element => element === document.activeElement")
    reader.page.keyboard.type("plums south", delay=5)
    titles(reader).filter(has_text="Pears").wait_for()
    reader.follow_up("() => document.querySelectorAll('#conversations a').length === 1")
    field.fill("nothing like it")
    reader.sees("Nothing found.")
    field.press("Escape")
    reader.follow_up("() => document.querySelectorAll('#conversations a').length === 2")
    assert field.input_value() == ""
    reader.field.focus()
    reader.page.keyboard.press("Control+k")
    reader.page.keyboard.type("small kumquats", delay=5)
    titles(reader).filter(has_text="Apples").wait_for()
    reader.follow_up("() => document.querySelectorAll('#conversations a').length === 1")
    reader.page.keyboard.press("Enter")  # to the first hit, which the next one opens
    reader.follow_up("() => document.activeElement.closest('#conversations a')")
    reader.page.keyboard.press("Enter")
    reader.sees("A kumquat is small.")


def test_ctrl_k_opens_the_list_on_a_narrow_screen(visit: Callable[..., Reader]) -> None:
    reader = visit(**PHONE)
    reader.sign_in()
    reader.page.keyboard.press("Meta+k")
    field = reader.page.get_by_label("Search conversations")
    assert field.evaluate("element => element === document.activeElement && !element.closest('[inert]')")
    reader.page.keyboard.press("Escape")
    reader.page.locator("#side-open[aria-expanded=false]").wait_for()


def test_a_running_conversation_is_marked_and_a_busy_one_names_its_chat(
    reader: Reader, script: Script, tools: ToolServer
) -> None:
    script.asks(("kit_hold", {"name": script.marker}))
    script.says("Held and done.")
    reader.send(script.question())
    reader.exchange().locator(".call.running").wait_for()
    conversation, chat = reader.location.split("/")
    other = reader.page.context.new_page()
    other.goto(reader.url)
    other.locator(f'#conversations a[href="#{conversation}"] .running-mark').wait_for()
    refused = other.evaluate(
        """async ([conversation, chat]) => {
            const { tellBusy } = await import("/js/busy_notice.js");
            const { Api, Refusal } = await import("/js/api.js");
            const { sessionFor } = await import("/js/session.js");
            const api = new Api({ api: "" }, sessionFor({ kind: "local" }), () => {});
            const problem = await api.startChat({ message: "Me too", conversation_id: conversation }, "k1").catch(error => error);
            const said = [];
            await tellBusy(api, problem, conversation, { follow: () => {}, notice: (...parts) => said.push(...parts) });
            return [problem.code, said.map(part => part.textContent ?? part).join("|")];
        }""",
        [conversation, chat],
    )
    assert refused == [
        "conversation_busy",
        f"A chat is still running in this conversation: {chat}|Follow itStop it",
    ]
    other.locator(f'#conversations a[href="#{conversation}"]').click()
    other.locator(".call.running").wait_for()  # it is followed although it was started in another tab
    tools.release_all()
    other.get_by_text("Held and done.").wait_for()
    reader.exchange("done")
    other.locator(f'#conversations a[href="#{conversation}"]:not(:has(.running-mark))').wait_for()


def test_what_is_asked_in_another_tab_is_shown_in_its_place(reader: Reader, script: Script) -> None:
    """When the reader comes back, and behind a question that was asked without having seen it."""
    for text in ("One.", "Two.", "Three.", "Four."):
        script.says(text)
    reader.ask(script.question("First."))
    page = reader.page.context.new_page()
    page.goto(reader.page.url)
    other = Reader(page, reader.name, reader.url)
    other.sees("One.")
    other.ask(script.question("Second."))
    reader.page.evaluate("window.dispatchEvent(new Event('focus'))")
    reader.sees("Two.")
    reader.credits_shown("40")
    other.ask(script.question("Third."))
    reader.ask(script.question("Fourth."))
    reader.sees("Three.")
    assert questions(reader.page) == ["First.", "Second.", "Third.", "Fourth."]
    assert other.errors == []


def questions(page: Page) -> list[str]:
    """The last word of each question."""
    return [text.split()[-1] for text in page.locator(".question-text").all_inner_texts()]


def test_an_export_has_every_record_whole(reader: Reader, script: Script, tmp_path: Path) -> None:
    long_text = "Numbers: " + ", ".join(str(number) for number in range(400))
    script.asks(("kit_echo", {"text": long_text}))
    script.says("Counted:\n```py\nprint(400)\n```")
    reader.ask(script.question("Count them."))
    reader.page.get_by_role("button", name="Export").click()
    dialog = reader.page.get_by_role("dialog")
    got = {}
    for name in ("Markdown", "JSON"):
        with reader.page.expect_download() as download:
            dialog.get_by_role("button", name=name).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        got[path.suffix] = path.read_text(encoding="utf-8")
        dialog.get_by_text("Saved.").wait_for()
    assert got[".md"].startswith("# ")
    assert "### q1-t1 · kit_echo" in got[".md"]
    assert long_text in got[".md"]
    assert "### q1-r · answer" in got[".md"]
    data = json.loads(got[".json"])
    assert data["conversation"]["conversation_id"] == reader.location
    assert [record["record_id"] for record in data["full"]] == ["q1", "q1-t1", "q1-r"]
    assert [record["record_id"] for record in data["summarised"]] == ["q1", "q1-t1-sum", "q1-r-sum"]
    assert long_text in data["full"][1]["result"]


def test_an_export_goes_through_all_pages_and_pieces(reader: Reader) -> None:
    seen = reader.page.evaluate("""async () => {
        const { openExport } = await import("/js/export_dialog.js");
        const { fenced, fileName } = await import("/js/export_text.js");
        const asked = [];
        const record = number => ({ record_id: `q${number}`, type: "message", role: "user", content: "cut", created_at: "t" });
        const api = {
            conversation: async (id, track, signal, onPage) => {
                asked.push(track);
                const pages = [[record(1), { ...record(2), next_offset: 3 }], [record(3)]];
                pages.forEach(onPage);
                return { conversation_id: id, title: "T", profile: "p", created_at: "t", records: pages.flat() };
            },
            record: async (id, name) => (asked.push(name), { ...record(2), content: "cut and the rest" }),
        };
        const texts = [];
        const real = URL.createObjectURL;
        URL.createObjectURL = blob => (texts.push(blob.text()), real(blob));
        openExport(api, "cv_1", "T");
        document.querySelector("#dialog .buttons button").click();
        const state = document.querySelector("#dialog [role=status]");
        await new Promise(done => new MutationObserver(() => state.textContent === "Saved." && done()).observe(state, { childList: true }));
        return { asked, text: await texts[0], fence: fenced("a ```` b"), name: fileName("Größe: 10 % / a", "md") };
    }""")
    assert seen["asked"] == ["full", "q2"]
    assert seen["text"].count("\ncut\n") == 2
    assert "cut and the rest" in seen["text"]
    assert seen["fence"] == "`````\na ```` b\n`````"
    assert seen["name"] == "Größe-10-a.md"
