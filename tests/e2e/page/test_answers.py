"""How answers and the user's code are drawn: on the page that the stack's front serves, emptied."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.page import vendor

from tests.clients.answer_sheet import FLOW, fenced
from tests.clients.browser import axe_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.answer_sheet import Sheet

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


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


def test_code_of_a_known_language_is_coloured_and_nothing_else_is_loaded(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet()
    answer = sheet.draw(
        fenced("py", "def f(x):\n    return 'a'") + fenced("klingon", "def f(x)") + fenced("", "def")
    )
    answer.locator(".hljs-keyword", has_text="def").wait_for()
    assert sheet.loaded("lib/highlight/") == ["core.js", "python.js"]
    assert answer.locator(".code-head span").all_inner_texts() == ["py", "klingon", ""]
    assert answer.locator("pre").first.inner_text() == "def f(x):\n    return 'a'\n"
    assert answer.locator("pre").nth(1).locator("span").count() == 0


def test_a_plain_answer_loads_neither_colours_nor_formulas_nor_diagrams(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet()
    sheet.draw(
        "**Plain.** It costs $5, or $10 with a `tool`.\n\n"
        + fenced("", "x")
        + "\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    sheet.page.wait_for_load_state("networkidle")
    on_demand = ("highlight", "katex", "colour", "diagram", "mermaid")
    assert not [path for path in sheet.asked if any(part in path for part in on_demand)]


def test_streamed_text_is_plain_until_its_block_ends(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet()
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


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("これは**「強調」**です", "これは<strong>「強調」</strong>です"),
        ("です**(強調)**です", "です<strong>(強調)</strong>です"),
        ("~~「削除」~~です", "<del>「削除」</del>です"),
        ("한국어**(강조)**입니다", "한국어<strong>(강조)</strong>입니다"),
        ("𠀋**(a)**𠀋", "𠀋<strong>(a)</strong>𠀋"),
        ("a**(b)**c", "a**(b)**c"),
        ("**A**と***「C」***", "<strong>A</strong>と<em><strong>「C」</strong></em>"),
    ],
)
def test_emphasis_beside_cjk_is_drawn(sheet: Sheet, text: str, markup: str) -> None:
    assert sheet.draw(text).locator("p").inner_html() == markup


def test_a_bare_link_ends_with_its_sentence(sheet: Sheet) -> None:
    answer = sheet.draw(
        "見て:https://a.example/b。次は(https://a.example/日本)、**https://a.example/c。**です"
    )
    links = answer.get_by_role("link")
    assert links.all_inner_texts() == ["https://a.example/b", "https://a.example/日本", "https://a.example/c"]
    assert answer.locator("strong").inner_text() == "https://a.example/c。"


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
