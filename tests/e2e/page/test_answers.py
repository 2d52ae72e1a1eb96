"""How answers and the user's code are drawn: the page's modules under its policy, without a stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.page import vendor

from tests.clients.browser import axe_source
from tests.clients.page_reader import PATIENCE_MS
from tests.servers.page_parts import serve_page_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Locator, Page, Request

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

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


class Sheet:
    """An empty page on which exchanges are drawn. ``asked``: the paths of the loaded files."""

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
        page.goto(url)

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


@pytest.fixture(scope="module")
def parts() -> Iterator[str]:
    with serve_page_parts() as url:
        yield url


@pytest.fixture
def open_sheet(browser: Browser, parts: str) -> Iterator[Callable[..., Sheet]]:
    """A sheet by Playwright's context options; fails on console errors."""
    sheets: list[Sheet] = []

    def new_sheet(**options: object) -> Sheet:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})  # type: ignore[arg-type]
        sheets.append(Sheet(context.new_page(), parts))
        return sheets[-1]

    yield new_sheet
    for sheet in sheets:
        sheet.page.context.close()
        assert sheet.errors == []


@pytest.fixture
def sheet(open_sheet: Callable[..., Sheet]) -> Sheet:
    return open_sheet()


def fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```\n"


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_that_is_json_is_drawn_as_lists_and_tables(open_sheet: Callable[..., Sheet]) -> None:
    """In bounds, whatever its size; its texts are no markup. Any other answer stays text."""
    sheet = open_sheet(viewport={"width": 390, "height": 844})
    order = {
        "id": "AB-1 <img src=x onerror=alert(1)>",
        "paid": False,
        "items": [{"n": 1, "name": "nut"}, {"n": 2, "name": "bolt", "tags": ["a", "b"]}],
        "notes": [],
        "parts": [{"of": {"deep": [1, 2]}}],
    }
    answer = sheet.draw(json.dumps(order))
    value = sheet.page.locator(".json-value")
    value.wait_for()
    assert not answer.is_visible()
    assert value.locator("> dl > dt").all_inner_texts() == ["id", "paid", "items", "notes", "parts"]
    assert value.locator("> dl > dd").nth(0).inner_text() == order["id"]
    assert value.locator("> dl > dd").nth(1).inner_text() == "no"
    assert value.locator("caption").all_inner_texts() == ["items (2)"]
    assert value.locator("tbody tr").nth(1).locator("td").all_inner_texts() == ["2", "bolt", "a, b"]
    assert value.locator("dl dl li").all_inner_texts() == ["1", "2"]
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert sheet.page.evaluate(overflow) <= 0
    sheet.page.evaluate(axe_source())
    assert (
        sheet.page.evaluate("axe.run('.json-value').then(found => found.violations.map(each => each.id))")
        == []
    )
    sheet.draw(json.dumps([[number] for number in range(1_000)]))
    value.get_by_text("800 more of 1,000 lines").wait_for()
    assert value.locator("> ol > li").count() == 200
    for text in ("{not JSON}", "Words.", "7", '{"a":' * 50_000):
        assert sheet.draw(text).is_visible()
        value.wait_for(state="detached")


# ── code ────────────────────────────────────────────────────────────────────────────────────────────


def test_code_of_a_known_language_is_coloured_and_nothing_else_is_loaded(sheet: Sheet) -> None:
    answer = sheet.draw(
        fenced("py", "def f(x):\n    return 'a'") + fenced("klingon", "def f(x)") + fenced("", "def")
    )
    answer.locator(".hljs-keyword", has_text="def").wait_for()
    assert sheet.loaded("lib/highlight/") == ["core.js", "python.js"]
    assert answer.locator(".code-head span").all_inner_texts() == ["py", "klingon", ""]
    assert answer.locator("pre").first.inner_text() == "def f(x):\n    return 'a'\n"
    assert answer.locator("pre").nth(1).locator("span").count() == 0


def test_a_plain_answer_loads_neither_colours_nor_formulas_nor_diagrams(sheet: Sheet) -> None:
    sheet.draw(
        "**Plain.** It costs $5, or $10 with a `tool`.\n\n"
        + fenced("", "x")
        + "\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    sheet.page.wait_for_load_state("networkidle")
    on_demand = ("highlight", "katex", "colour", "diagram", "mermaid")
    assert not [path for path in sheet.asked if any(part in path for part in on_demand)]


def test_streamed_text_is_plain_until_its_block_ends(sheet: Sheet) -> None:
    answer = sheet.draw("```python\ndef f(x):", whole=False)
    assert answer.locator("pre").inner_text().strip() == "def f(x):"
    sheet.page.wait_for_load_state("networkidle")
    assert sheet.loaded("lib/highlight/") == []
    sheet.draw(fenced("python", "def f(x): pass") + "\nAnd $x^2$", whole=False)
    answer.locator(".hljs-keyword", has_text="def").wait_for()
    assert sheet.loaded("lib/katex/") == [], "the last block goes on"
    sheet.draw(fenced("python", "def f(x): pass") + "\nAnd $x^2$.")
    answer.locator(".math.drawn").wait_for()
    assert answer.locator(".hljs-keyword").count() == 2, "drawn blocks are kept"


def test_a_grammar_that_takes_too_long_is_given_up_and_the_next_block_has_its_colours(sheet: Sheet) -> None:
    hostile = "[a](" * 5000  # takes minutes
    answer = sheet.draw(fenced("markdown", hostile) + fenced("python", "def f(): pass"))
    answer.locator(".hljs-keyword", has_text="def").wait_for()
    assert answer.locator("pre").first.inner_text().strip() == hostile
    assert answer.locator("pre").first.locator("span").count() == 0


def test_every_vendored_language_colours_something(sheet: Sheet) -> None:
    seen = sheet.page.evaluate("async () => (await import('/js/languages.js')).LANGUAGES")
    assert seen == list(vendor.LANGUAGES)
    sheet.draw(
        "\n".join(
            fenced(language, "<p class='a'>\n# 1\n@@ -1 +1 @@\n$x = \"a\" 12\nGET / HTTP/1.1\nend\n\\a{b}")
            for language in seen
        )
    )
    sheet.page.wait_for_function(
        "count => document.querySelectorAll('.answer pre:has([class^=hljs])').length === count", arg=len(seen)
    )


def test_the_users_fenced_code_is_code(sheet: Sheet) -> None:
    sheet.draw("Yes.", question="Why?\n\n```python\ndef f():\n    pass\n```\n<b>It</b> is *mine*.")
    question = sheet.page.locator(".question-text")
    question.locator(".hljs-keyword", has_text="def").wait_for()
    assert question.locator("pre").inner_text() == "def f():\n    pass"
    assert question.locator("p").all_inner_texts() == ["Why?", "<b>It</b> is *mine*."]
    assert question.locator("b, em").count() == 0, "everything else is plain text"


PIECES = (
    "async (texts) => { const { piecesOf } = await import('/js/fences.js'); return texts.map(piecesOf); }"
)


def test_fences_are_read_as_commonmark_reads_them(sheet: Sheet) -> None:
    code = {"code": "a\n", "language": "js"}
    cases: dict[str, list[dict[str, str]]] = {
        "plain": [{"text": "plain"}],
        "~~~js x\na\n\n~~~": [code],
        "````js\na\n\n````\n": [code],
        "```js\na\n": [code],
        "````\n```\n````": [{"code": "```", "language": ""}],
        "```a`b```": [{"text": "```a`b```"}],
        "    ```\na": [{"text": "    ```\na"}],
        "x\n```\n```": [{"text": "x"}, {"code": "", "language": ""}],
        "": [],
    }
    assert sheet.page.evaluate(PIECES, list(cases)) == list(cases.values())


# ── formulas ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("With $n$ and $x_1 + 2$: \\(a\\).", ["n", "x_1 + 2", "a"]),
        ("So:\n$$\na = b\n$$\nand\n\n\\[\nc\n\\]", ["a = b", "c"]),
        ("- in a list\n  $$x$$\n\n> \\[y\\]", ["x", "y"]),
        ("```math\nz^2\n```", ["z^2"]),
        ("It costs $5 and $10, US$5/A$7, $1M-$2M or 10$ and 20$.", []),
        ("From $HOME to $PATH, $5 to all and nothing$ more.", []),
        ("Code: `$x$`, escaped: \\$x\\$, spaced: $ x $, empty: $$ $$.", []),
        ("A blank line: $$a\n\nb, and an end: $$a", []),
        (f"Too long: $${'x' * 3000}$$", []),
        ("Wrong: $\\frac{$ and $\\nonesuch$", []),
    ],
)
def test_formulas_are_drawn_and_money_is_not(sheet: Sheet, text: str, formulas: list[str]) -> None:
    answer = sheet.draw(f"{text}\n\n$last$")
    answer.locator(".math.drawn annotation", has_text="last").wait_for(state="attached")
    assert answer.locator("annotation").all_text_contents() == [*formulas, "last"]


def test_text_that_is_no_formula_is_unchanged(sheet: Sheet) -> None:
    answer = sheet.draw("It costs $5 and $10.\n\nWrong: $\\frac{$\n\n$last$")
    answer.locator(".math.drawn").wait_for()
    assert answer.locator("p").nth(0).inner_text() == "It costs $5 and $10."
    assert answer.locator("p").nth(1).inner_text() == "Wrong: $\\frac{$"


def test_formulas_bring_no_links_images_styles_or_attributes(sheet: Sheet) -> None:
    attack = (
        "\\href{javascript:alert(1)}{a} \\url{https://example.com} \\includegraphics{https://example.com/x.png} "
        "\\htmlId{message}{b} \\htmlData{copy=code}{c} \\htmlStyle{position:fixed}{d} \\htmlClass{button}{e} "
        "\\fcolorbox{red}{yellow}{f} \\rule{9999em}{9999em} <img src=x onerror=alert(1)>"
    )
    answer = sheet.draw(
        "\n\n".join(f"${command}$" for command in attack.split(" ")) + f"\n\n$${attack}$$\n\n$\\vec{{v}}$"
    )
    answer.locator(".math.drawn svg").last.wait_for()
    assert answer.locator("a, img, script, #message, .button, [data-copy=code]").count() == 0
    assert answer.evaluate("element => element.scrollWidth <= innerWidth && element.scrollHeight < 3000"), (
        "sizes are bounded"
    )


def test_a_screen_reader_reads_formulas_once(sheet: Sheet) -> None:
    answer = sheet.draw("# Sums\n\nThe value of $x$ is:\n\n$$y^2$$\n\n- [x] done\n\n| a |\n|---|\n| 1 |")
    answer.locator(".math.drawn").nth(1).wait_for()
    tree = answer.aria_snapshot()
    assert 'heading "Sums" [level=3]' in tree
    assert "- math: x\n" in tree
    assert "- math: y 2\n" in tree
    assert 'group "Table"' in tree
    assert tree.count("y") == 1


# ── diagrams ────────────────────────────────────────────────────────────────────────────────────────

FLOW = "flowchart LR\n    ask[Ask] -->|once| answer{Answer}\n    style ask fill:#f9f"


def settled(answer: Locator, count: int) -> None:
    """Wait until so many blocks are pictures, or say why they are none."""
    answer.page.wait_for_function(
        """count => document.querySelectorAll(".picture img").length
            + [...document.querySelectorAll(".code-head span")].filter(each => each.textContent.includes(",")).length
            === count""",
        arg=count,
    )


def test_a_diagram_is_a_picture_whose_source_is_shown_on_request(sheet: Sheet) -> None:
    answer = sheet.draw(fenced("mermaid", FLOW))
    picture = answer.locator(".picture img")
    picture.wait_for()
    sheet.page.wait_for_function("document.querySelector('.picture img').naturalWidth > 100")
    assert sheet.loaded("lib/mermaid") == [".js"]
    assert sheet.page.locator("iframe").count() == 0, "the frame is gone"
    assert picture.get_attribute("alt") == (
        "Diagram: flowchart LR ask[Ask] -->|once| answer{Answer} style ask fill:#f9f"
    )
    source = answer.get_by_role("button", name="Source")
    assert not answer.locator("pre").is_visible()
    source.press("Enter")
    assert source.get_attribute("aria-expanded") == "true"
    assert answer.locator("pre").inner_text() == f"{FLOW}\n"
    source.press("Enter")
    assert not answer.locator("pre").is_visible()


def test_a_diagram_is_drawn_once_its_fence_is_closed_and_it_is_in_sight(sheet: Sheet) -> None:
    answer = sheet.draw(f"```mermaid\n{FLOW}", whole=False)
    assert answer.locator("pre").inner_text().strip() == FLOW
    high = "\n\n".join(f"Paragraph {n}." for n in range(200))
    sheet.draw(f"{high}\n\n{fenced('mermaid', FLOW)}")
    sheet.page.wait_for_load_state("networkidle")
    assert sheet.loaded("js/diagram") == []
    answer.locator(".code").scroll_into_view_if_needed()
    answer.locator(".picture img").wait_for()


TOO_MANY_EDGES = "flowchart LR\n" + " & ".join(f"a{n}" for n in range(300)) + " --> " + " & ".join("abcd")


def test_what_is_no_diagram_or_too_large_stays_code_and_says_so(sheet: Sheet) -> None:
    texts = {
        "flowchart LR\n  a --> --> b": "mermaid, invalid",
        "no kind of diagram": "mermaid, invalid",
        "": "mermaid, invalid",
        "flowchart LR\n" + "a --> b\n" * 1_000: "mermaid, too large",
        TOO_MANY_EDGES: "mermaid, too large",
        "%%{init: {'flowchart': {'nodeSpacing': 1e9}}}%%\nflowchart LR\na --> b\na --> c": "mermaid, too large",
    }
    for text, told in texts.items():
        answer = sheet.draw(fenced("mermaid", text))
        settled(answer, 1)
        assert answer.locator(".code-head span").inner_text() == told, text[:80]
        assert answer.locator("pre").is_visible()
        assert answer.locator(".code-head button").all_inner_texts() == ["Copy"]


SLOW = "block-beta\n" + "block\n" * 200 + "a\n" + "end\n" * 200


def test_a_diagram_that_takes_too_long_is_given_up_and_the_next_one_drawn(sheet: Sheet) -> None:
    answer = sheet.draw(fenced("mermaid", SLOW) + fenced("mermaid", FLOW))
    answer.locator(".code-head span", has_text="mermaid, too slow").wait_for()
    answer.locator(".code").last.scroll_into_view_if_needed()
    answer.locator(".code").last.locator(".picture img").wait_for()
    assert sheet.page.locator("iframe").count() == 0


def test_an_answer_has_at_most_twenty_diagrams(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet(viewport={"width": 1280, "height": 300})
    answer = sheet.draw(fenced("mermaid", FLOW) * 200)
    answer.locator(".picture img").first.wait_for()
    assert answer.locator(".code-head span", has_text="too many").count() == 180
    assert sheet.page.locator("iframe").count() <= 1, "one at a time"


ATTACKS = {
    "click": 'flowchart LR\na --> b\nclick a "javascript:alert(1)"\nclick b call alert(1)\nclick a href "https://evil.example/"',
    "markup": 'flowchart LR\na["<img src=https://evil.example/x onerror=alert(1)><script>alert(1)</script><b>B</b>"]',
    "directive": (
        "%%{init: {'securityLevel': 'loose', 'htmlLabels': true, 'flowchart': {'htmlLabels': true}, "
        "'secure': [], 'maxTextSize': 1000000}}%%\n"
        'flowchart LR\na["<iframe src=https://evil.example/></iframe>"]\nclick a "javascript:alert(1)"'
    ),
    "front matter": (
        "---\nconfig:\n  securityLevel: loose\n  htmlLabels: true\n  themeCSS: '* { background: url(https://evil.example/) }'\n"
        "---\nflowchart LR\na --> b"
    ),
    "theme": "%%{init: {'themeCSS': '@import url(https://evil.example/x.css); rect { fill: url(https://evil.example/) }'}}%%\nflowchart LR\na",
    "font": "%%{init: {'fontFamily': 'x; src: url(https://evil.example/)'}}%%\nflowchart LR\na --> b",
    "style": "flowchart LR\na\nstyle a fill:url(https://evil.example/),background:url(https://evil.example/)",
    "image": 'flowchart LR\na@{ img: "https://evil.example/x.png", label: "x" }\na --> b',
    "link": 'sequenceDiagram\nparticipant A\nlink A: x @ javascript:alert(1)\nlinks A: {"y": "https://evil.example/"}\nA->>A: x',
    "foreign object": 'flowchart LR\na["</text><foreignObject><body onload=alert(1)></body></foreignObject>"]',
    "prototype": "%%{init: {'__proto__': {'securityLevel': 'loose'}, 'constructor': {'prototype': {'x': 1}}}}%%\nflowchart LR\na",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_diagram_runs_nothing_and_loads_nothing(sheet: Sheet, attack: str) -> None:
    """It is a picture or code, and no request leaves the page for another host."""
    asked: list[Request] = []
    shown: list[str] = []
    sheet.page.context.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - it looks at its signature
    sheet.page.on("dialog", lambda dialog: shown.append(dialog.message))
    answer = sheet.draw(fenced("mermaid", ATTACKS[attack]) + fenced("mermaid", FLOW))
    answer.locator(".picture img").last.wait_for()
    settled(answer, 2)
    answer.locator(".picture img").first.click()
    own = sheet.page.url.removesuffix("parts")
    foreign = [request for request in asked if not request.url.startswith((own, f"blob:{own}"))]
    assert [(request.url, request.failure) for request in foreign if request.failure != "csp"] == []
    assert shown == []
    assert answer.locator("a, svg:not(.icon), script, foreignObject, iframe, object").count() == 0
    sheet.errors[:] = [
        error for error in sheet.errors if "violates the following Content Security" not in error
    ]


REACH = """async () => {
    const reached = [];
    try { if (parent !== self && parent.document) reached.push("parent"); } catch {}
    try { sessionStorage.length; reached.push("storage"); } catch {}
    for (const address of ["/config.json", "https://evil.example/"])
        await fetch(address).then(() => reached.push(address), () => {});
    const image = new Image();
    await new Promise(done => { image.onload = image.onerror = event => done(event.type === "load" && reached.push("image")); image.src = "/favicon.svg"; });
    document.body.innerHTML = "<script>window.inline = 1</script><img src=x onerror='window.inline = 1'>";
    const frame = document.createElement("iframe");
    frame.src = "/index.html";
    document.body.append(frame);
    try { new Function("window.inline = 1")(); } catch {}
    if (window.inline) reached.push("inline");
    return [self.origin, frames[0]?.length ?? 0, reached];
}"""


def test_the_frame_has_no_origin_and_reaches_nothing(sheet: Sheet) -> None:
    """Whatever runs in it, even opened by itself; the page's frames cannot be led elsewhere."""
    own = sheet.page.url.removesuffix("parts")
    sheet.page.goto(f"{own}diagram.html")
    assert sheet.page.evaluate(REACH) == ["null", 0, []]
    sheet.page.goto(f"{own}parts")
    with sheet.page.expect_event(
        "framenavigated", lambda frame: frame.url.endswith("diagram.html")
    ) as framed:
        sheet.page.evaluate(
            "document.body.append(Object.assign(document.createElement('iframe'), {src: '/diagram.html'}))"
        )
    framed.value.wait_for_load_state()
    assert framed.value.evaluate(REACH) == ["null", 0, []]
    with sheet.page.expect_console_message(lambda said: 'directive: "frame-src' in said.text):
        sheet.page.evaluate(
            "document.body.append(Object.assign(document.createElement('iframe'), {src: 'https://evil.example/'}))"
        )
    with sheet.page.expect_console_message(lambda said: "frame-ancestors" in said.text):
        sheet.page.evaluate(
            "document.body.append(Object.assign(document.createElement('iframe'), {src: '/index.html'}))"
        )
    sheet.errors.clear()


@pytest.mark.parametrize(
    "answer", [7, None, {"svg": 7}, {"svg": "<svg/>", "width": 1e9, "height": 1}, {"problem": "<b>x</b>"}]
)
def test_what_the_frame_says_is_checked(sheet: Sheet, answer: object) -> None:
    """A frame that was taken over can send anything: no more than a word of the page's own is shown."""
    told = f"addEventListener('message', ({{ ports: [port] }}) => port.postMessage({json.dumps(answer)}))"
    sheet.page.route(
        "**/js/diagram_frame.js", lambda route: route.fulfill(body=told, content_type="text/javascript")
    )
    drawn = sheet.draw(fenced("mermaid", FLOW))
    settled(drawn, 1)
    assert drawn.locator(".code-head span").inner_text() in ("mermaid, invalid", "mermaid, too large")


def test_a_diagram_is_dark_in_the_dark_and_light_on_paper(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet(color_scheme="dark")
    picture = sheet.draw(fenced("mermaid", FLOW)).locator(".picture img")
    picture.wait_for()
    look = "element => getComputedStyle(element).filter"
    assert "invert" in picture.evaluate(look)
    sheet.page.emulate_media(media="print")
    assert picture.evaluate(look) == "none"
    assert sheet.answer.locator(".code-head button:visible, pre:visible").count() == 0


# ── text ────────────────────────────────────────────────────────────────────────────────────────────


def test_headings_differ_and_lists_keep_their_numbers(sheet: Sheet) -> None:
    answer = sheet.draw(
        "# a\n\n## b\n\n### c\n\n#### d\n\ntext\n\n3. three\n4. four\n\n- [x] done\n- [ ] open\n- other"
    )
    look = "all => all.map(element => getComputedStyle(element).fontSize + getComputedStyle(element).color)"
    looks = answer.locator("h3, h4, h5, h6").evaluate_all(look)
    assert len(looks) == len(set(looks)) == 4
    assert answer.locator("ol").get_attribute("start") == "3"
    dots = answer.locator("ul li").evaluate_all(
        "all => all.map(element => getComputedStyle(element).listStyleType)"
    )
    assert dots == ["none", "none", "disc"]


def test_tables_keep_their_words_and_scroll_by_themselves(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet(**LOOKS["phone"])
    word = "retrieval_augmented_generation"
    answer = sheet.draw(
        f"| name | {word} | {word} | n |\n|---|---|---|--:|\n| {word} | a b c | {word} | 12 |"
    )
    scroller = answer.locator(".table-scroll")
    assert scroller.evaluate("element => element.scrollWidth > element.clientWidth")
    assert sheet.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    lines = answer.locator("td, th").evaluate_all(
        "all => all.map(element => { const range = document.createRange(); range.selectNodeContents(element); return range.getClientRects().length })"
    )
    assert set(lines) == {1}, "no cell of one word has two lines"
    assert answer.locator("td").last.evaluate("element => getComputedStyle(element).textAlign") == "right"
    scroller.focus()
    sheet.page.keyboard.press("ArrowRight")
    sheet.page.wait_for_function("() => document.querySelector('.table-scroll').scrollLeft > 0")


HOSTILE = (
    "*a_",
    "_a*",
    "**a*",
    "~a",
    "> ",
    "1. ",
    "- - ",
    "[a](",
    "![",
    "`a",
    "$a ",
    "$$a",
    "\\[\n",
    "a\n$$b$$\n",
    "# a\n",
)


IN_SIGHT = """element => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
}"""


def test_copy_stays_in_sight_while_long_code_scrolls_by(sheet: Sheet) -> None:
    code = sheet.draw(fenced("", "\n".join(f"line {n}" for n in range(200)))).locator(".code")
    sheet.page.evaluate(
        "document.querySelector('.thread').style.height = '100vh'"
    )  # as on the page, it scrolls
    code.hover()
    sheet.page.mouse.wheel(0, 1_500)
    sheet.page.wait_for_function("() => document.querySelector('.code').getBoundingClientRect().top < -500")
    assert code.locator(".copy").evaluate(IN_SIGHT)


def test_dates_and_addresses_in_a_table_are_not_broken(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet(viewport={"width": 390, "height": 844})
    address = "https://example.com/a-long-path/with-hyphens/that-could-break"
    answer = sheet.draw(
        f"| when | where | what |\n|---|---|---|\n| 2026-11-24 10:00 | {address} | {'words ' * 30} |\n"
    )
    cells = answer.locator("td")
    wraps = cells.evaluate_all("cells => cells.map(cell => getComputedStyle(cell).whiteSpace)")
    assert wraps == ["nowrap", "nowrap", "normal"]
    assert sheet.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
        "the table alone scrolls"
    )


def test_folded_passages_and_footnotes_are_drawn_and_bring_nothing_else(sheet: Sheet) -> None:
    answer = sheet.draw(
        "It is so.[^a] And *so*.[^2]\n\n<details><summary>More **here**</summary>\n\n- one\n- <img src=x onerror=alert(1)>\n\n"
        "</details>\n\n[^a]: By [a source](https://example.com/).\n[^2]: <b onclick=alert(1)>Told</b>.\n"
    )
    assert answer.locator("sup").all_inner_texts() == ["a", "2", "a", "2"]
    assert answer.locator(".footnote").all_inner_texts() == [
        "a By a source.",
        "2 <b onclick=alert(1)>Told</b>.",
    ]
    folded = answer.locator("details")
    assert not folded.locator("li").first.is_visible()
    folded.locator("summary", has=sheet.page.locator("strong")).press("Enter")
    assert folded.locator("li").all_inner_texts() == ["one", "<img src=x onerror=alert(1)>"]


@pytest.mark.parametrize(
    "text", ["<details><summary>x</summary>" * 2_000, "[^a]: x\n" * 7_000, "[^" * 29_000]
)
def test_many_beginnings_of_them_are_drawn_in_bounds(sheet: Sheet, text: str) -> None:
    assert sheet.draw(text).inner_text()


@pytest.mark.parametrize("seed", HOSTILE)
def test_a_hostile_text_is_shown(sheet: Sheet, seed: str) -> None:
    """Without bounds some of these take minutes or end in an error; the test's time limit detects it."""
    text = seed * (20_000 // len(seed)) + "\n\nThe end."
    assert sheet.draw(text).inner_text().endswith("The end.")


def test_a_text_of_any_length_is_shown_as_written(sheet: Sheet) -> None:
    text = "**a** " * 170_000
    answer = sheet.draw(text.strip(), question=text + "\n```\n" * 5001)
    assert answer.locator("p.plain").inner_text() == text.strip()
    assert sheet.page.locator(".question-text pre").count() == 2501


# ── everybody ───────────────────────────────────────────────────────────────────────────────────────

ALL = (
    "# Title\n\n## Part\n\n> quoted\n\n- [x] done\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    + fenced(
        "python",
        '@wraps(f)\nclass A(B):\n    """Doc."""\n    x: int = 12  # comment\n    def f(self): return f"{self.x}" in {None}',
    )
    + fenced(
        "html",
        '<!-- c --><p class="a" id=b>&amp;</p><style>.a:hover { color: #fff }</style><script>let a = /b/g;</script>',
    )
    + fenced("diff", "- old\n+ new\n@@ 1 @@")
    + fenced("bash", 'echo "$HOME" | grep -v x && exit 1')
    + fenced("yaml", "a: &b [1, true]\n# c")
    + fenced("markdown", "# t\n*a* **b** [c](d) `e`\n> q\n- l")
    + fenced("mermaid", FLOW)
    + "\n$$\\sum x$$ and $y$"
)


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_in_an_answer(open_sheet: Callable[..., Sheet], look: str) -> None:
    axe = axe_source()
    sheet = open_sheet(**LOOKS[look])
    sheet.draw(ALL, question="```js\nlet a = 1;\n```")
    sheet.page.wait_for_function(
        "() => document.querySelectorAll('.code pre:has([class^=hljs])').length === 7 && document.querySelectorAll('.math.drawn').length === 2"
    )
    sheet.answer.locator(".code", has_text="mermaid").scroll_into_view_if_needed()
    sheet.answer.locator(".picture img").wait_for()
    sheet.page.evaluate(axe)
    report = sheet.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [
        (violation["id"], [node["html"] for node in violation["nodes"]]) for violation in report["violations"]
    ] == []
    assert sheet.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
