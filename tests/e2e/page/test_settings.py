"""Settings, shortcuts, the receipt and the picture of dollars and credits; a session in several tabs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script

PAPER = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(250, 249, 246)", "rgb(23, 22, 20)"


def test_the_theme_is_the_systems_or_a_stored_choice(visit: Callable[..., Reader]) -> None:
    reader = visit(color_scheme="dark")
    reader.sign_in()
    assert reader.page.evaluate(PAPER) == DARK
    reader.page.get_by_role("button", name="Settings").click()
    theme = reader.page.get_by_role("group", name="Theme")
    theme.get_by_label("Light").check()
    assert reader.page.evaluate(PAPER) == LIGHT
    reader.page.reload()
    reader.credits_shown("50")
    assert reader.page.evaluate(PAPER) == LIGHT
    assert reader.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    reader.page.get_by_role("button", name="Settings").click()
    theme.get_by_label("System").check()
    assert reader.page.evaluate(PAPER) == DARK


def test_settings_show_the_agent_with_its_model_tools_and_prices(reader: Reader) -> None:
    reader.page.get_by_role("radio", name="Small", exact=True).check()
    reader.page.get_by_role("button", name="Settings").click()
    dialog = reader.page.get_by_role("dialog", name="Settings")
    shown = dialog.locator(".agent-details[open]")
    assert shown.locator("summary").inner_text() == "Small"
    assert shown.locator("code").inner_text().startswith("claude-")
    documentation = shown.get_by_role("row", name="retrieve_documentation")
    assert "10 credits" in documentation.inner_text()
    assert dialog.get_by_role("heading", name="Keyboard").is_visible()


def test_a_github_token_is_connected_and_problems_are_shown(reader: Reader) -> None:
    reader.page.get_by_role("button", name="Settings").click()
    dialog = reader.page.get_by_role("dialog", name="Settings")
    field = dialog.get_by_label("Personal access token")
    field.wait_for()
    reader.page.route("**/v1/connections/github", lambda route: route.abort())
    field.fill("github_pat_x")
    field.press("Enter")
    dialog.get_by_role("alert").get_by_text("The server cannot be reached.").wait_for()
    reader.page.unroute("**/v1/connections/github")
    field.fill("github_pat_x")
    field.press("Enter")
    dialog.get_by_text("stored, encrypted").wait_for()
    dialog.get_by_role("button", name="Disconnect").click()
    field.wait_for()
    said = reader.page.evaluate("""async () => {
        const { isRefusedToken } = await import("/js/connections.js");
        const call = { tool: "github_search", state: "error", preview: "Tool execution failed: the MCP server github did not accept the token (HTTP 401)." };
        return [call, { ...call, state: "ok" }, { ...call, tool: "kit_echo" }, { ...call, preview: "" }].map(isRefusedToken);
    }""")
    assert said == [True, False, False, False]


def test_shortcuts_work_and_do_not_interfere_with_typing(reader: Reader, script: Script) -> None:
    page = reader.page
    script.says("word " * 400, chunk=5, delay_chunk=0.1)
    page.keyboard.press("Alt+Shift+KeyM")
    page.keyboard.type(f"{script.question()} Really?")
    assert reader.field.input_value().endswith("Really?"), "a question mark is text here"
    page.keyboard.press("Enter")
    reader.shows("word word")
    page.keyboard.press("Alt+Shift+KeyX")
    reader.exchange("cancelled")
    page.locator("#thread").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Settings")
    dialog.get_by_text("Find a conversation").wait_for()
    page.keyboard.press("Alt+Shift+KeyN")
    assert reader.location, "a dialog keeps the focus"
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+Shift+KeyN")
    reader.follow_up("() => location.hash === ''")
    pressed = page.evaluate("""async () => {
        const { shortcutOf } = await import("/js/shortcuts.js");
        const key = (code, key, more) => ({ code, key, altKey: false, shiftKey: false, ctrlKey: false, metaKey: false, ...more });
        const chord = { altKey: true, shiftKey: true };
        return [
            shortcutOf(key("KeyN", "˜", chord), true), shortcutOf(key("KeyN", "n", { altKey: true }), false),
            shortcutOf(key("KeyN", "N", { ...chord, ctrlKey: true }), false), shortcutOf(key("Slash", "?", { shiftKey: true }), false),
            shortcutOf(key("Slash", "?", { shiftKey: true }), true), shortcutOf(key("KeyN", "n", {}), false),
            shortcutOf(key("KeyK", "k", { ctrlKey: true }), true), shortcutOf(key("KeyK", "л", { metaKey: true }), true),
            shortcutOf(key("KeyV", "k", { ctrlKey: true }), false), shortcutOf(key("KeyK", "t", { ctrlKey: true }), false),
            shortcutOf(key("KeyK", "K", { ctrlKey: true, shiftKey: true }), false), shortcutOf(key("KeyK", "k", {}), false),
        ];
    }""")
    assert pressed == ["new", "", "", "settings", "", "", "search", "search", "search", "", "", ""]


def test_the_receipt_is_drawn_from_the_figures_of_an_answer(reader: Reader, script: Script) -> None:
    script.asks(("kit_echo", {"text": "x"}))
    script.says("Done.")
    done = reader.ask(script.question())
    done.get_by_role("button", name="Receipt of question 1").click()
    dialog = reader.page.get_by_role("dialog", name="Receipt")
    rows = dialog.locator(".receipt tbody tr")
    rows.nth(2).wait_for()
    steps = [row.locator("th").inner_text() for row in rows.all()]
    assert steps[:3] == ["Model call 1", "kit_echo", "Model call 2"]
    assert "7 credits" in dialog.locator(".facts").first.inner_text()
    starts = [float(bar.get_attribute("x").rstrip("%")) for bar in rows.locator(".step-bar .took").all()]  # type: ignore[union-attr]
    assert starts == sorted(starts)
    assert starts[-1] > starts[0]
    assert rows.nth(1).locator("td").last.inner_text() == "2"


def test_a_receipts_chart_places_every_step(reader: Reader) -> None:
    drawn = reader.page.evaluate("""async () => {
        const { timeline } = await import("/js/receipt_lines.js");
        const { dollars } = await import("/js/format.js");
        const line = (kind, second, seconds, more) => ({ kind, id: kind, at: second === null ? null : new Date(second * 1000).toISOString(), seconds, dollars: 0, estimated: false, ...more });
        const lines = [
            line("chat", 0, undefined, { credits: 5 }), line("model", 1, 4, { turn: 1, first_seconds: 2, dollars: 0.003 }),
            line("tool", 5, 5, { tool: "look_up", is_error: true, credits: 2 }), line("model", null, null, { turn: null, dollars: 0.001, estimated: true }),
            line("ledger", 0, undefined), line("aws", null, undefined, { dollars: 1 }),
        ];
        const { seconds, rows } = timeline({ created_at: new Date(0).toISOString(), lines });
        return { seconds, rows: rows.map(row => [row.name, row.from, row.took, row.first, row.share, row.failed]), written: [0, 12.5, 0.0123, 0.000044, 1e-12].map(dollars) };
    }""")
    assert drawn["seconds"] == 10
    assert drawn["rows"] == [
        ["Model call 1", 0.1, 0.4, 0.2, 0.75, False],
        ["look_up", 0.5, 0.5, 0, 0, True],
        ["Model calls", None, 0, 0, 0.25, False],
    ]
    assert drawn["written"] == ["$0", "$12.5000", "$0.0123", "$0.000044", "$0.000000000"]


def test_dollars_and_credits_are_drawn_question_by_question(reader: Reader, script: Script) -> None:
    script.asks(("kit_echo", {"text": "long " * 1_000}))
    script.says("First. " * 100)
    script.says("Second.")
    reader.ask(script.question("one"))
    reader.ask(script.question("two"))
    reader.page.get_by_role("button", name="Memory").click()
    drawing = reader.page.locator(".usage-drawing")
    drawing.wait_for()
    words = drawing.get_attribute("aria-label") or ""
    assert re.fullmatch(
        r"\$0\.\d+, with the full history \$0\.\d+: [+−±]\d+ % so far, estimated, fictional; 12 credits\.",
        words,
    )
    assert words.split(";")[0] in reader.page.locator(".figures").last.inner_text()
    height = "all => all.map(bar => Number(bar.getAttribute('height')))"
    full, own, charged = (
        drawing.locator(f"rect.{name}").evaluate_all(height) for name in ("full", "own", "charged")
    )
    assert own[0] == pytest.approx(full[0], rel=0.01), "the first question has nothing to save, nor to pay"
    assert full[1] > 0
    assert charged[0] > charged[1]
    table = reader.page.locator(".usage table")
    assert not table.is_visible()
    reader.page.locator(".usage summary").click()
    assert [row.locator("td").last.inner_text() for row in table.locator("tbody tr").all()] == ["7", "5"]


def test_a_new_tab_is_signed_in_and_signing_out_ends_all(reader: Reader) -> None:
    second = reader.page.context.new_page()
    second.goto(reader.url)
    second.locator("#credits-figure").get_by_text("50", exact=True).wait_for()
    assert second.locator("#who").inner_text() == reader.name
    kept = "() => JSON.stringify({ ...localStorage }) + document.cookie"
    token = second.evaluate("JSON.parse(sessionStorage['dualtrack.session']).token")
    assert token not in second.evaluate(kept), "nothing remains after the tabs"
    second.get_by_role("button", name="Sign out").click()
    second.get_by_label("Name").wait_for()
    reader.page.get_by_label("Name").wait_for()
    assert not reader.page.evaluate("sessionStorage['dualtrack.session']")


def test_a_session_ends_with_the_last_tab_and_a_refused_one_is_not_shared(reader: Reader) -> None:
    context = reader.page.context
    second = context.new_page()
    second.goto(reader.url)
    second.locator("#who", has_text=reader.name).wait_for()
    taken = second.evaluate("""async () => {
        const { sessionFor } = await import("/js/session.js");
        const session = sessionFor({ kind: "local" });
        const { state } = session;
        const claims = (name, iat) => `e30.${btoa(JSON.stringify({ sub: name, iat }))}.x`;
        const mine = JSON.parse(atob(state.token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
        const before = [session.takes({ token: claims("else", mine.iat + 9) }, true), session.takes({ token: claims(mine.sub, mine.iat - 9) }, true)];
        session.drop();
        const after = [session.takes(state, true), session.takes({ token: claims(mine.sub, 1) }, false), session.takes({ token: claims(mine.sub, 1) }, true)];
        return [...before, ...after];
    }""")
    assert taken == [False, False, False, False, True]
    second.close()
    reader.page.goto("about:blank")
    third = context.new_page()
    third.goto(reader.url)
    third.get_by_label("Name").wait_for()


def test_the_page_works_by_keyboard_alone(visit: Callable[..., Reader], script: Script) -> None:
    """Sign in, ask, open the receipt, search, export, settings, sign out: without a pointer."""
    reader = visit()
    page = reader.page
    page.goto(reader.url)
    reach(reader, "#sign-in-name", "Shift+Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type(reader.name)
    page.keyboard.press("Enter")
    reader.credits_shown("50")
    script.says("By hand.")
    reader.follow_up("() => document.activeElement.id === 'message'")
    page.keyboard.type(script.question())
    page.keyboard.press("Enter")
    reader.exchange("done")
    reach(reader, "[data-receipt]", "Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Receipt").locator(".receipt").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.receipt"), "focus is back"
    page.keyboard.press("Alt+Shift+KeyF")
    reach(reader, "#conversations [aria-label^=Export]", "Tab")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Export the conversation").get_by_role("button", name="JSON").wait_for()
    page.keyboard.press("Escape")
    reach(reader, "#settings", "Tab")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Settings").locator(".agent-details").first.wait_for()
    reach(reader, "[name=theme]", "Tab")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.documentElement.dataset.theme") != "system"
    page.keyboard.press("Escape")
    reach(reader, "#sign-out", "Tab")
    page.keyboard.press("Enter")
    page.get_by_label("Name").wait_for()


def reach(reader: Reader, selector: str, key: str) -> None:
    """Press Tab until something has the focus."""
    for _ in range(60):
        if reader.page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
        reader.page.keyboard.press(key)
    raise AssertionError(selector)
