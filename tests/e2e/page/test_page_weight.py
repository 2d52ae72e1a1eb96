"""What the page loads and when, and how a conversation is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Response, Route

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script

BEFORE_THE_FIRST_ANSWER: Final = 300_000
"""Limits in uncompressed bytes: CloudFront compresses files, the local stack does not."""

CODE = "```python\ndef f(): pass\n```"


class Files:
    """The page's own files that were loaded: paths with their bytes."""

    def __init__(self, page: Page, url: str) -> None:
        self._url = url.rstrip("/") + "/"
        self._answers: list[Response] = []
        page.on("response", self._note)

    def _note(self, response: Response) -> None:
        path = response.url.removeprefix(self._url)
        if response.url.startswith(self._url) and not path.startswith(("v1/", "dev/")):
            self._answers.append(response)

    @property
    def loaded(self) -> dict[str, int]:
        return {
            answer.url.removeprefix(self._url): len(answer.body()) for answer in self._answers if answer.ok
        }


def on_demand(files: Files) -> list[str]:
    """The loaded files for colours, formulas and diagrams."""
    of_them = ("lib/highlight/", "lib/katex/", "js/colour", "lib/mermaid", "js/diagram", "diagram")
    return [path for path in files.loaded if path.startswith(of_them)]


def test_the_page_is_light_until_the_first_answer_and_loads_only_what_it_shows(
    visit: Callable[..., Reader], script: Script
) -> None:
    reader = visit()
    files = Files(reader.page, reader.url)
    reader.sign_in()
    reader.page.locator(".suggestions button").first.wait_for()
    reader.page.wait_for_load_state("networkidle")
    first = files.loaded
    assert {"", "css/answer.css", "js/main.js", "lib/inter.woff2"} <= set(first)
    assert sum(first.values()) < BEFORE_THE_FIRST_ANSWER, first
    assert not {"lib/marked.js", "lib/purify.js"} & set(first)
    script.says("**Plain**, for $5.")
    reader.ask(script.question()).locator(".answer strong").wait_for()
    assert on_demand(files) == []
    script.says(CODE)
    done = reader.ask(script.question())
    done.locator(".hljs-keyword").first.wait_for()
    assert {"lib/highlight/core.js", "lib/highlight/python.js"} <= set(on_demand(files))
    assert not [path for path in on_demand(files) if "katex" in path or "diagram" in path]


def test_a_slow_first_load_is_not_blank(visit: Callable[..., Reader]) -> None:
    page, url = (reader := visit()).page, reader.url
    held: list[Route] = []
    page.route("**/js/main.js", lambda route: held.append(route))  # noqa: PLW0108 - no builtin
    with page.expect_request("**/js/main.js"):
        page.goto(url, wait_until="commit")
    page.locator(".loading i").first.wait_for()
    held[0].continue_()
    page.get_by_label("Name").wait_for()
    assert not page.locator(".loading").is_visible()


def test_code_is_copied_by_keyboard(visit: Callable[..., Reader], script: Script) -> None:
    reader = visit(permissions=["clipboard-read", "clipboard-write"])
    reader.sign_in()
    script.says(f"Here:\n\n{CODE}")
    done = reader.ask(script.question())
    done.locator(".answer .hljs-keyword").first.wait_for()
    done.locator(".code .copy").focus()
    reader.page.keyboard.press("Enter")
    done.locator(".code .copy", has_text="Copied").wait_for()
    assert reader.page.evaluate("navigator.clipboard.readText()") == "def f(): pass\n"
    reader.page.keyboard.press("Tab")
    assert reader.page.evaluate("document.activeElement.tagName") == "PRE", "long lines scroll by keyboard"


SHOWN = "all => all.filter(element => element.checkVisibility({ visibilityProperty: true })).length"
ADDRESS = "element => getComputedStyle(element, '::after').content"
WHOLE = """() => {
    const thread = document.querySelector("#thread");
    const last = document.querySelector("li.exchange:last-child").getBoundingClientRect();
    return thread.scrollHeight <= thread.clientHeight && last.height > 0 && last.bottom <= thread.getBoundingClientRect().bottom + 1;
}"""


def test_a_conversation_prints_in_full_and_without_controls(
    visit: Callable[..., Reader], script: Script
) -> None:
    dark: dict[str, Any] = {"color_scheme": "dark"}
    reader = visit(**dark)
    reader.sign_in()
    script.asks(("retrieve_documentation", {"query": "How do I set up OAuth for the X Ads API?"}))
    script.says(
        "See [this](https://example.com/page).\n\n" + "\n\n".join(f"Paragraph {n}." for n in range(60))
    )
    done = reader.ask(script.question())
    done.locator(".steps > summary").click()
    done.locator(".answer a").wait_for()
    reader.page.emulate_media(media="print")
    for hidden in (
        "#composer",
        "#side",
        ".actions",
        ".question-foot",
        ".record-id",
        ".turns",
        "#credits",
        ".switch",
    ):
        assert reader.page.locator(hidden).evaluate_all(SHOWN) == 0, hidden
    for shown in (".question-text", ".steps > summary", ".answer p", ".sources li", "#title"):
        assert reader.page.locator(shown).evaluate_all(SHOWN) > 0, shown
    assert done.locator(".answer a").evaluate(ADDRESS) == '" (https://example.com/page)"'
    assert reader.page.evaluate(WHOLE), "nothing is cut off"
    background = "() => getComputedStyle(document.body).backgroundColor"
    assert reader.page.evaluate(background) == "rgb(255, 255, 255)"
    reader.page.emulate_media(media="screen")
