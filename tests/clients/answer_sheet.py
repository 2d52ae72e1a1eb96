"""The page that the stack's front serves, emptied: exchanges are drawn on it without a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.page_reader import PATIENCE_MS

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

FLOW = "flowchart LR\n    ask[Ask] -->|once| answer{Answer}\n    style ask fill:#f9f"


def fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```\n"


DRAW = """async ([text, whole, question]) => {
    const { ask } = await import("/js/exchange.js");
    const { ExchangeView } = await import("/js/exchange_view.js");
    const { ready } = await import("/js/answer_text.js");
    await ready();
    const status = whole ? "done" : "running";
    const running = [{ turn: 1, maxTurns: 15, text, calls: [], began: "2026-01-01T00:00:00Z", ended: "" }];
    const exchange = { ...ask(question), messageId: "q1", status, response: whole ? text : null, turns: whole ? [] : running };
    if (window.view) window.view.update(exchange);
    else document.querySelector("#exchanges").append((window.view = new ExchangeView(exchange)).element);
}"""

EMPTY = """() => {
    const [main, title, list] = ["main", "h1", "ol"].map(name => document.createElement(name));
    title.textContent = "Parts";
    main.className = "thread";
    list.id = list.className = "exchanges";
    main.append(title, list);
    document.body.replaceChildren(document.querySelector("#status"), main);
    delete window.view;
}"""


class Sheet:
    """The page before anybody signs in, with an empty list of exchanges in its place, on which they are drawn.
    ``asked``: the paths of the loaded files.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on(
            "request", lambda request: self.asked.append(request.url.partition("//")[2].partition("/")[2])
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.open(url)

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.wait_for_function("() => document.querySelector('#sign-in-name').value")
        self.empty()

    def empty(self) -> None:
        self.page.evaluate(EMPTY)
        self.errors.clear()

    def draw(self, text: str, *, whole: bool = True, question: str = "?") -> Locator:
        """Draw a whole or a partial answer; the element of its text."""
        self.page.evaluate(DRAW, [text, whole, question])
        return self.answer

    @property
    def answer(self) -> Locator:
        return self.page.locator(".answer")

    def loaded(self, part: str) -> list[str]:
        """The names of the loaded files of a library."""
        return sorted(path.removeprefix(part) for path in set(self.asked) if path.startswith(part))
