"""Every view and dialog at three sizes and in both themes: found without fault by axe, within the window, by keyboard.

The list is `tests.drivers.page_views.all_views`. The short form looks at each view on a light desktop and at one other
size and theme, which ``DUALTRACK_VIEW_SEED`` draws; the long form at three, and ``DUALTRACK_VIEW_LOOKS=6`` at all.
"""

from __future__ import annotations

import os
import random
import re
import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack_stack.page import web

from tests.clients.browser import axe_source
from tests.clients.page_reader import PATIENCE_MS, Reader
from tests.clients.script import Script
from tests.drivers.page_views import SIZES, THEMES, View, Walk, all_views
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.local.offline_model.server import OfflineModel
    from playwright.sync_api import Browser, Locator, Page

    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

SEED: Final = os.environ.get("DUALTRACK_VIEW_SEED", "20261125")
VIEWS: Final = all_views()
LOOKS: Final = [(size, theme) for size in SIZES for theme in THEMES]
LOOKS_OF_A_VIEW: Final = int(os.environ.get("DUALTRACK_VIEW_LOOKS", "3" if LONG else "2"))

MISFITS = """() => {
    const scrolls = "pre, textarea, .table-scroll, .result-table, .math";
    const isWider = (element) => element.scrollWidth > element.clientWidth + 1 && element.checkVisibility()
        && ["auto", "scroll"].includes(getComputedStyle(element).overflowX) && !element.matches(scrolls);
    const wider = [...document.querySelectorAll("*")].filter(isWider).map((element) => element.outerHTML.slice(0, 120));
    const isSqueezed = (element) => element.clientHeight < 24 && element.scrollHeight > 24 && element.checkVisibility()
        && ["auto", "scroll"].includes(getComputedStyle(element).overflowY);
    const squeezed = [...document.querySelectorAll("*")].filter(isSqueezed).map((element) => element.outerHTML.slice(0, 120));
    return [...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []), ...wider, ...squeezed];
}"""
"""What scrolls sideways and is neither code nor a table, and what scrolls within less than a line."""

IS_INSIDE = """() => {
    const dialog = document.querySelector("dialog[open]");
    return !dialog || dialog.contains(document.activeElement);
}"""
"""Whether what has the focus is inside an open dialog."""

WATCH = """() => {
    window.nameOf = (element) => [
        element.localName, element.id, element.name, element.getAttribute("aria-label"), element.getAttribute("href"),
        element.textContent.trim().slice(0, 80),
    ].join(" ");
    if (!window.reached) document.addEventListener("focusin", (event) => window.reached.add(nameOf(event.target)));
    window.reached = new Set();
    document.activeElement.blur();
}"""
"""Notes what gets the focus, by a name that it keeps when it is drawn again."""

IS_MARKED = """() => {
    const probe = document.createElement("i");
    probe.style.color = "var(--accent)";
    document.body.append(probe);
    const accent = getComputedStyle(probe).color;
    probe.remove();
    const element = document.activeElement;
    const dialog = document.querySelector("dialog[open]");
    if (element === document.body || element === dialog) return true;
    const isRing = (one) => {
        const style = getComputedStyle(one);
        return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) || style.stroke === accent
            || (one.matches(".composer, .question-editor") && style.borderColor === accent);
    };
    const lines = [element, element.parentElement, element.parentElement?.parentElement].filter(Boolean);
    const box = element.getBoundingClientRect();
    return (!dialog || dialog.contains(element)) && lines.some(isRing)
        && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
}"""
"""Whether what has the focus is in sight, marked, and inside an open dialog."""

MISSED = """() => {
    const root = document.querySelector("dialog[open]") ?? document;
    const isControl = (element) => element.tabIndex >= 0 && !element.disabled && !element.closest("[inert]")
        && element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })
        && (element.type !== "radio" || element.checked);
    return [...root.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
        .filter(isControl).filter((element) => !window.reached.has(nameOf(element))).map((element) => element.outerHTML.slice(0, 160));
}"""
"""The controls that can be used and have not had the focus."""


@pytest.fixture(scope="module")
def walk(browser: Browser, root: Root, model: OfflineModel, tools: ToolServer) -> Iterator[Walk]:
    """One page for all tests of this file."""
    options: dict[str, Any] = {"reduced_motion": "reduce"}
    context, outside = browser.new_context(**options), browser.new_context(**options)
    reader = Reader(context.new_page(), f"reader-{uuid.uuid4().hex[:12]}", root.stack.url)
    script = Script(model, f"marker-{uuid.uuid4().hex[:12]}")
    walk = Walk(reader, outside.new_page(), root, script, tools)
    walk.outside.set_default_timeout(PATIENCE_MS)
    walk.prepare()
    yield walk
    reader.leave()
    outside.close()
    assert reader.errors == []


def looks(view: View) -> list[tuple[str, str]]:
    """The sizes and themes at which a view is looked at."""
    first, *others = LOOKS
    drawn = random.Random(f"{SEED} {view.name}").sample(others, LOOKS_OF_A_VIEW - 1)
    return drawn if view.place == "docs" and not LONG else [first, *drawn]


def findings(page: Page) -> list[Any]:
    """What axe finds with all of its rules."""
    if page.evaluate("window.axe === undefined"):
        page.evaluate(axe_source())
    report = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        (violation["id"], [(node["html"], node["failureSummary"]) for node in violation["nodes"]])
        for violation in report["violations"]
    ]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_axe_finds_nothing_and_everything_fits(walk: Walk, view: View) -> None:
    for size, theme in looks(view):
        where = f"{size}, {theme}, seed {SEED}"
        walk.go(view, size)
        walk.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        walk.open(view, lambda opener: opener.click())
        assert findings(walk.page) == [], where
        assert walk.page.evaluate(MISFITS) == [], where
    width, height = SIZES["phone"]
    walk.page.set_viewport_size({"width": width, "height": height})
    assert walk.page.evaluate(MISFITS) == []


def opened(opener: Locator) -> None:
    """By keyboard."""
    opener.focus()
    opener.page.keyboard.press("Enter")


@pytest.mark.parametrize("view", [view for view in VIEWS if view.opener], ids=lambda view: view.name)
def test_it_opens_and_closes_by_keyboard_and_the_focus_comes_back(walk: Walk, view: View) -> None:
    from playwright.sync_api import expect

    for size in SIZES if LONG else random.Random(f"{SEED} {view.name}").sample([*SIZES], 1):
        walk.go(view, size)
        page = walk.page  # that of the view: the test before may have been on the other one
        walk.open(view, opened)
        page.wait_for_function("() => document.activeElement !== document.body")
        assert page.evaluate(IS_INSIDE), f"{size}: the focus is behind the dialog"
        if view.title:
            page.dispatch_event("body", "visibilitychange")  # what is behind it is drawn again
        if view.back:
            opened(page.locator(view.back).first)
        else:
            page.keyboard.press("Escape")
        page.wait_for_function("() => document.activeElement !== document.body")
        opener = page.locator(view.opener).first
        if opener.count():  # it is not part of the dialog that was left
            expect(opener).to_be_focused(timeout=PATIENCE_MS)


PARTS: Final = 20
"""Presses of Tab beyond one for each control: a field for a time has several parts."""
PLACES: Final = {
    view.name if view.title else view.place: view for view in VIEWS if view.title or not view.opener
}
"""A view of each place, and every dialog."""


@pytest.mark.skipif(not LONG, reason="more than a minute: DUALTRACK_LONG=1")
@pytest.mark.parametrize("view", PLACES.values(), ids=lambda view: view.name)
def test_the_tab_key_reaches_every_control(walk: Walk, view: View) -> None:
    """It shows where it is each time, and stays in an open dialog."""
    from playwright.sync_api import TimeoutError as Late

    walk.go(view, "desktop")
    walk.open(view, opened)
    page = walk.page
    page.evaluate(WATCH)
    missed = page.evaluate(MISSED)
    whole = left = len(missed) + PARTS
    while missed and left:  # a whole round without a name that is new: many controls can share one
        page.keyboard.press("Tab")
        try:
            page.wait_for_function(IS_MARKED)
        except Late:
            pytest.fail(
                f"not marked, or out of sight: {page.evaluate('document.activeElement.outerHTML')[:300]}"
            )
        before, missed = len(missed), page.evaluate(MISSED)
        left = whole if len(missed) < before else left - 1
    assert missed == [], page.evaluate("[...window.reached].slice(-5)")


def test_every_view_and_dialog_is_on_the_list() -> None:
    """By its module and its title, of which each call of `dialogs.js` names one."""
    listed = {(view.module, view.title) for view in VIEWS}
    modules = {
        path.removeprefix("js/").removeprefix("plugins/").removesuffix(".js"): file.read_text(
            encoding="utf-8"
        )
        for path, file in web.files().items()
        if path.endswith(".js") and not path.startswith("lib/")
    }
    assert [name for name, text in modules.items() if re.search(r'showModal|h\("dialog"', text)] == [
        "dialogs"
    ]
    missing = [
        (name, title)
        for name, text in modules.items()
        for title in titles(text)
        if not any(module == name and re.fullmatch(pattern(title), known) for module, known in listed)
    ]
    assert missing == []
    markup = web.files()["index.html"].read_text(encoding="utf-8")
    views = {*re.findall(r'id="([a-z]+-view|sign-in)"', markup)}
    # a diagram is drawn in its frame, and shown elsewhere
    views |= {path for path in web.files() if path.endswith(".html")} - {"index.html", "diagram.html"}
    assert views == {module for module, title in listed if module and not title}


def titles(text: str) -> set[str]:
    """The titles of the dialogs that a module opens, as its source writes them."""
    imported = re.search(r'import \{([^}]*)\} from "(?:\.|\.\./\.\./js)/dialogs\.js"', text)
    names = [name.strip() for name in imported.group(1).split(",")] if imported else []
    opening = "|".join(name for name in names if name and name != "close")
    return set(re.findall(rf"(?<![\w.])(?:{opening})\(\s*([^,)]+?)\s*[,)]", text)) if opening else set()


def pattern(title: str) -> str:
    """The titles that a source can write."""
    if title[0] not in '"`':
        return ".+"
    return ".+".join(map(re.escape, re.split(r"\$\{[^}]*\}", title[1:-1])))
