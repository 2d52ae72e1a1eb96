"""Branches on the page: a question edited or repeated, another next question, switching between branches."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from dualtrack.chat.fork_conversation import fork_conversation

from tests.clients.browser import axe_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import FilePayload, Locator

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script
    from tests.clients.stack_client import Root

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FILES: list[FilePayload] = [
    {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
    {"name": "plan.md", "mimeType": "text/markdown", "buffer": b"Launch on 4 May."},
]


def edit(reader: Reader, number: int, text: str) -> Locator:
    """The editor of a question, filled with a text."""
    reader.page.get_by_role("button", name=f"Edit question {number}", exact=True).click()
    editor = reader.page.get_by_role("form", name=f"Edit question {number}")
    editor.get_by_role("textbox").fill(text)
    return editor


def figure(reader: Reader, number: int) -> str:
    """The number of the shown branch at a question, and how many there are."""
    return reader.page.locator(f'[data-branches="{number}"]').inner_text()


def questions(reader: Reader) -> list[str]:
    return reader.page.locator(".question-text").all_inner_texts()


def test_a_question_is_asked_differently_and_again_with_its_files(reader: Reader, script: Script) -> None:
    first, second = script.question("What are these?"), script.question("What is this, exactly?")
    script.says("Dots.")
    script.says("Plans only.")
    script.says("Once more.")
    reader.page.locator("#picker").set_input_files(FILES)
    reader.page.locator("#files li").nth(1).wait_for()
    reader.ask(first)
    original = reader.location
    reader.page.reload()
    reader.exchange("done")

    editor = edit(reader, 1, second)
    editor.get_by_role("button", name="Remove dot.png").click()
    editor.get_by_role("textbox").press("Enter")
    reader.sees("Plans only.")
    reader.exchange("done")
    assert questions(reader) == [second]
    assert reader.page.locator("#welcome").is_hidden()
    reader.page.get_by_role("heading", level=1, name=second).wait_for()
    assert reader.exchange().locator(".question .file").all_inner_texts() == ["plan.md\n1 KB"]
    asked = json.dumps(script.requests()[-1]["messages"])
    assert "Launch on 4 May." in asked
    assert '"image"' not in asked

    reader.page.get_by_role("button", name="Regenerate the answer to question 1").click()
    reader.sees("Once more.")
    assert questions(reader) == [second]
    assert "Launch on 4 May." in json.dumps(script.requests()[-1]["messages"])
    reader.page.locator('[data-branches="1"]', has_text="3/3").wait_for()

    reader.page.get_by_role("link", name="Previous branch, 2 of 3").press("Enter")
    reader.page.locator('[data-branches="1"]', has_text="2/3").wait_for()
    reader.page.locator('[data-branches="1"]:focus').wait_for()  # the keyboard focus stays here
    reader.page.keyboard.press("Shift+Tab")
    reader.page.keyboard.press("Enter")
    reader.page.locator('[data-branches="1"]', has_text="1/3").wait_for()
    assert reader.location == f"{original}/q1"
    assert questions(reader) == [first]
    assert reader.answer() == "Dots."
    reader.page.go_back()
    reader.page.locator('[data-branches="1"]', has_text="2/3").wait_for()


def test_another_next_question_begins_a_branch_that_starts_empty(reader: Reader, script: Script) -> None:
    for text in ("One.", "Two.", "Instead.", "And on."):
        script.says(text)
    reader.ask(script.question("first"))
    reader.ask(script.question("second"))
    original = reader.location
    reader.page.get_by_role("button", name="Branch from here, after question 1").click()
    reader.page.locator("#next-branches", has_text="2/2").wait_for()
    assert questions(reader) == [script.question("first")]
    assert reader.page.evaluate("document.activeElement.id") == "message"
    reader.ask(script.question("instead"))
    assert not reader.page.locator("#next-branches").is_visible()
    again = reader.page.get_by_role("button", name="Branch from here, after question 1")
    assert again.get_attribute("aria-disabled") is None, "it was used and is available again"
    assert figure(reader, 2) == "2/2"
    came_from = reader.page.locator("#branched-from")
    assert came_from.inner_text().startswith("Branched from ")
    branch = reader.location

    reader.page.route("**/v1/chats/ch_*", lambda _: None)  # held until the route is removed
    reader.page.reload()
    reader.page.locator('[data-branches="2"]', has_text="2/2").wait_for()
    reader.page.unroute("**/v1/chats/ch_*")
    reader.exchange().locator(".figures", has_text="5 credits").wait_for()
    assert figure(reader, 2) == "2/2", "late figures do not change it"
    reader.page.locator('[data-branches="2"]').click()
    dialog = reader.page.get_by_role("dialog")
    dialog.get_by_text(script.question("second")).wait_for()
    dialog.get_by_text(script.question("instead")).wait_for()
    dialog.get_by_role("button", name=script.question("second")).click()
    reader.sees("Two.")
    assert reader.location == f"{original}/q2"
    side = reader.page.get_by_role("navigation", name="Conversations")
    reader.page.get_by_role("link", name=f"Next branch, 2 of 2: {script.question('instead')}").wait_for()
    side.get_by_role(
        "button", name=re.compile(f"^Rename .*branch: {re.escape(script.question('instead'))}$")
    ).wait_for()
    side.get_by_role("link", name=f"Branch: {script.question('instead')}").click()
    reader.sees("Instead.")
    reader.page.get_by_role("button", name="Memory").click()
    came_from.get_by_role("link").click()
    reader.sees("Two.")
    reader.page.locator('[data-branches="2"]:focus').wait_for()

    side.get_by_role("button", name=re.compile("^Delete")).first.click()
    assert "Its branches stay" in reader.page.get_by_role("dialog").inner_text()
    reader.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    reader.sees("What would you like to know?")
    reader.page.goto(f"{reader.url}/#{branch}")
    reader.sees("Instead.")
    assert questions(reader) == [script.question("first"), script.question("instead")]
    reader.ask(script.question("on"))


def test_an_edit_that_cannot_be_sent_keeps_its_text_and_leaves_no_branch(
    reader: Reader, script: Script
) -> None:
    page = reader.page
    script.says("Yes.")
    reader.ask(script.question())
    before = reader.location
    poor: dict[str, Any] = {
        "code": "insufficient_credits",
        "message": "Not enough.",
        "required": 5,
        "available": 0,
    }
    poor |= {"resets_at": "2026-01-01T00:00:00Z", "upgrade": {"message": "", "plans": [], "packs": []}}
    page.route("**/v1/chats", lambda route: route.fulfill(status=402, json={"error": poor}))
    editor = edit(reader, 1, "Something else")
    with page.expect_response(lambda response: response.request.method == "DELETE") as deleted:
        editor.get_by_role("button", name="Send").click()
    assert deleted.value.status == 204
    editor.get_by_text("Nothing is lost").wait_for()
    assert editor.get_by_role("textbox").input_value() == "Something else"
    page.unroute("**/v1/chats")
    page.route("**/fork", lambda route: route.abort())
    editor.get_by_role("button", name="Send").click()
    editor.get_by_text("The server cannot be reached.").wait_for()
    assert reader.location == before
    assert questions(reader) == []
    page.reload()
    reader.exchange("done")
    page.get_by_role("button", name="Edit question 1").click()
    assert editor.get_by_role("textbox").input_value() == "Something else"
    editor.get_by_role("textbox").press("Escape")
    assert questions(reader) == [script.question()]
    assert page.evaluate("document.activeElement.dataset.edit") == "q1"
    page.locator("#conversations a").first.wait_for()  # the list is read beside the conversation
    assert page.locator("#conversations a").count() == 1


def test_while_an_answer_is_written_an_earlier_question_can_be_branched_from(
    reader: Reader, script: Script
) -> None:
    stopped, slow = script.branch("stopped"), script.branch("slow")
    stopped.says("word " * 400, chunk=5, delay_chunk=0.1)
    reader.send(stopped.question())
    reader.shows("word word")
    reader.page.get_by_role("button", name="Stop", exact=True).click()
    reader.exchange("cancelled")
    slow.says("word " * 400, chunk=5, delay_chunk=0.1)
    reader.send(slow.question())
    reader.shows("word word")
    again = reader.page.get_by_role("button", name="Try again")
    assert again.get_attribute("aria-disabled") == "true"
    again.click(force=True)
    reader.page.get_by_role("alert").filter(has_text="An answer is being written").wait_for()
    reader.page.get_by_role("button", name="Branch from here, after question 1").click()
    reader.page.locator("#next-branches", has_text="2/2").wait_for()
    assert len(questions(reader)) == 1
    reader.page.go_back()
    reader.shows("word word")
    reader.page.get_by_role("button", name="Stop", exact=True).click()
    reader.exchange("cancelled")


TREE = """async () => {
    const { branchesOf, families, homeOf } = await import("/js/branches.js");
    const made = (id, forked_from, before) => ({ conversation_id: id, forked_from, before, created_at: id });
    const known = all => new Map(all.map(conversation => [conversation.conversation_id, conversation]));
    const of = (all, id) => Object.fromEntries([...branchesOf(known(all), id)].map(([number, { at, ids }]) => [number, `${at + 1}: ${ids}`]));
    // a fork of a fork before a question that its parent only shares stands beside both
    const tree = [made("a"), made("b", "a", 3), made("c", "b", 2), made("d", "b", 4), made("e", "a", 3), made("x", "a", 0)];
    const many = [made("p"), ...Array.from({ length: 50 }, (_, n) => made(`f${100 + n}`, "p", 2))];
    return {
        a: of(tree, "a"), b: of(tree, "b"), c: of(tree, "c"), d: of(tree, "d"), x: of(tree, "x"),
        gone: of(tree.slice(1), "d"),
        circle: homeOf(known([made("u", "v", 2), made("v", "u", 2)]), "u", 1).length,
        many: branchesOf(known(many), "f149").get(2).at,
        families: families([...tree].reverse()).map(({ root, branches }) => [root.conversation_id, branches.map(branch => branch.conversation_id).join("")]),
    };
}"""


def test_where_branches_part(reader: Reader) -> None:
    seen = reader.page.evaluate(TREE)
    assert seen["a"] == {"2": "1: a,c", "3": "1: a,b,e"}
    assert seen["b"] == {"2": "1: b,c", "3": "2: a,b,e", "4": "1: b,d"}
    assert seen["c"] == {"2": "2: a,c"}
    assert seen["d"] == {"2": "1: d,c", "3": "2: a,d,e", "4": "2: b,d"}
    assert seen["x"] == {}
    assert seen["gone"] == {"2": "1: d,c", "3": "1: d,e", "4": "2: b,d"}
    assert seen["circle"] == 1
    assert seen["many"] == 50
    assert seen["families"] == [["a", "xedcb"]]


def test_fifty_branches_are_readable(visit: Callable[..., Reader], root: Root, script: Script) -> None:
    axe = axe_source()
    reader = visit(reduced_motion="reduce", color_scheme="dark")
    reader.sign_in()
    script.says("Yes.")
    reader.ask(script.question())
    user = root.stack.token(reader.name).user_id
    for _ in range(49):
        fork_conversation(root.stores(), user, reader.location, 1)
    reader.page.reload()
    reader.page.locator('[data-branches="1"]', has_text="1/50").wait_for()

    def check(where: str) -> None:
        reader.page.evaluate(axe)
        report = reader.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [
            (violation["id"], [node["html"] for node in violation["nodes"]])
            for violation in report["violations"]
        ] == [], where
        assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where

    def look_around(size: str) -> None:
        check(f"figure, {size}")
        if size == "phone":
            reader.page.get_by_role("button", name="Conversations").click()
        rows = reader.page.locator("#conversations .branch a")
        rows.nth(2).wait_for()
        assert rows.count() == 3
        reader.page.get_by_role("button", name="All 49 branches").click()
        rows.nth(48).wait_for()
        check(f"list, {size}")
        reader.page.get_by_role("button", name="Fewer branches").click()
        rows.nth(3).wait_for(state="detached")
        assert rows.count() == 3
        if size == "phone":
            reader.page.keyboard.press("Escape")
        reader.page.get_by_role("button", name="Edit question 1").click()
        check(f"editor, {size}")
        reader.page.get_by_role("button", name="Cancel").click()
        reader.page.locator('[data-branches="1"]').click()
        reader.page.locator(".branch-list li").nth(49).wait_for()
        check(f"dialog, {size}")
        reader.page.keyboard.press("Escape")

    look_around("wide")
    reader.page.set_viewport_size({"width": 390, "height": 844})
    look_around("phone")
