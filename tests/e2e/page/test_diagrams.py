"""Diagrams: pictures of what an answer writes, drawn in a frame that reaches nothing, through the stack's front."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.clients.answer_sheet import FLOW, fenced

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Request

    from tests.clients.answer_sheet import Sheet
    from tests.clients.page_reader import Reader
    from tests.clients.script import Script


def test_a_diagram_of_an_answer_is_a_picture_and_stays_one(reader: Reader, script: Script) -> None:
    """In a chat, as its reader meets it, and when the page is opened again."""
    script.says(f"So:\n\n{fenced('mermaid', FLOW)}")
    reader.ask(script.question()).locator(".picture img").wait_for()
    reader.page.reload()
    reader.exchange("done").locator(".picture img").wait_for()
    reader.page.wait_for_function("() => document.querySelector('.picture img').naturalWidth > 100")


def settled(answer: Locator, count: int) -> None:
    """Wait until so many blocks are pictures, or say why they are none."""
    answer.page.wait_for_function(
        """count => document.querySelectorAll(".picture img").length
            + document.querySelectorAll(".code-head .why").length === count""",
        arg=count,
    )


def test_a_diagram_is_a_picture_whose_source_is_shown_on_request(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet()
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


def test_a_diagram_is_drawn_once_its_fence_is_closed_and_it_is_in_sight(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet()
    answer = sheet.draw(f"```mermaid\n{FLOW}", whole=False)
    assert answer.locator("pre").inner_text().strip() == FLOW
    high = "\n\n".join(f"Paragraph {n}." for n in range(200))
    sheet.draw(f"{high}\n\n{fenced('mermaid', FLOW)}")
    sheet.page.wait_for_load_state("networkidle")
    assert sheet.loaded("js/diagram") == []
    answer.locator(".code").scroll_into_view_if_needed()
    answer.locator(".picture img").wait_for()


TOO_MANY_EDGES = "flowchart LR\n" + " & ".join(f"a{n}" for n in range(300)) + " --> " + " & ".join("abcd")


NO_PICTURES = {
    "flowchart LR\n  a --> --> b": "has an error in line 2",
    "---\ntitle: x\n---\n%% c\n%%{init: {'theme':\n'dark'}}%%\nflowchart LR\n\n%% d\n  a --> --> b": "has an error in line 10",
    "sequenceDiagram\r\n%% c\r\nA->>B: x\r\nno such thing\r\nB->>A: y": "has an error in line 4",
    "classDiagram\nclass A {\n+x\n": "has an error in line 3",
    'pie title x\n%% c\n"a" : 1\n"b" : x': "has an error in line 4",
    "sankey-beta\n\na,b,1\na,b\n": "has an error",
    "gitGraph\ncommit\ncheckout x": "has an error",
    "no kind of diagram": "is of no kind that is drawn here",
    "mindmap\n  root": "is of no kind that is drawn here",
    "": "is of no kind that is drawn here",
    "flowchart LR\n" + "a --> b\n" * 1_000: "is longer than 5,000 characters",
    TOO_MANY_EDGES: "has more than 300 edges",
    "%%{init: {'flowchart': {'nodeSpacing': 1e9}}}%%\nflowchart LR\na --> b\na --> c": "is too large a picture",
}


def told(answer: Locator) -> list[str]:
    """Why diagrams stay code."""
    return answer.locator(".why").all_inner_texts()


def test_what_is_no_diagram_or_too_large_stays_code_and_says_so(sheet: Sheet) -> None:
    for text, why in NO_PICTURES.items():
        answer = sheet.draw(fenced("mermaid", text))
        settled(answer, 1)
        assert told(answer) == [f". This diagram {why}."], text[:80]
        assert answer.locator("pre").is_visible()
        assert answer.locator(".code-head button").all_inner_texts() == ["Copy"]


@pytest.mark.parametrize("part", ["js/diagrams.js", "js/diagram_frame.js", "lib/mermaid.js", "diagram.html"])
def test_a_diagram_whose_parts_did_not_load_says_so_and_the_next_one_is_drawn(
    open_sheet: Callable[..., Sheet], part: str
) -> None:
    """Not that it is slow. Nor does the frame run another version's scripts, which its policy does not know."""
    sheet = open_sheet()
    if part == "diagram.html":
        sheet.page.route("**/js/diagram_frame.js", lambda route: route.fulfill(body="globalThis.answer = 1;"))
    else:
        sheet.page.route(f"**/{part}", lambda route: route.abort())
    answer = sheet.draw(fenced("mermaid", FLOW))
    settled(answer, 1)
    assert told(answer) == [". This diagram was not drawn: part of the page did not load."]
    sheet.page.unroute_all()
    if part != "js/diagrams.js":  # the browser remembers a module that it could not load
        answer = sheet.draw(f"Again.\n\n{fenced('mermaid', FLOW)}")
        answer.locator(".picture img").wait_for()
    sheet.errors[:] = [error for error in sheet.errors if not error.startswith(EXPECTED)]


EXPECTED = ("Failed to load resource", "Executing inline script violates")
"""What the browser's console says of them."""

SLOW = "block-beta\n" + "block\n" * 200 + "a\n" + "end\n" * 200


def test_a_diagram_that_takes_too_long_is_given_up_and_the_next_one_drawn(sheet: Sheet) -> None:
    answer = sheet.draw(fenced("mermaid", SLOW) + fenced("mermaid", FLOW))
    answer.locator(".why", has_text="This diagram was not drawn within 5 seconds.").wait_for()
    answer.locator(".code").last.scroll_into_view_if_needed()
    answer.locator(".code").last.locator(".picture img").wait_for()
    assert sheet.page.locator("iframe").count() == 0


def test_an_answer_has_at_most_twenty_diagrams(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet(viewport={"width": 1280, "height": 300})
    answer = sheet.draw(fenced("mermaid", FLOW) * 200)
    answer.locator(".picture img").first.wait_for()
    assert answer.locator(".why", has_text="is not drawn: at most 20 of an answer are").count() == 180
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
def test_a_diagram_runs_nothing_and_loads_nothing(open_sheet: Callable[..., Sheet], attack: str) -> None:
    """It is a picture or code, and no request leaves the page for another host."""
    sheet = open_sheet()
    asked: list[Request] = []
    shown: list[str] = []
    sheet.page.context.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - it looks at its signature
    sheet.page.on("dialog", lambda dialog: shown.append(dialog.message))
    answer = sheet.draw(fenced("mermaid", ATTACKS[attack]) + fenced("mermaid", FLOW))
    answer.locator(".picture img").last.wait_for()
    settled(answer, 2)
    answer.locator(".picture img").first.click()
    own = sheet.page.url
    foreign = [request for request in asked if not request.url.startswith((own, f"blob:{own}"))]
    assert [(request.url, request.failure) for request in foreign if request.failure != "csp"] == []
    assert shown == []
    assert answer.locator("a, svg:not(.icon), script, foreignObject, iframe, object").count() == 0
    sheet.errors[:] = [
        error for error in sheet.errors if "violates the following Content Security" not in error
    ]


LARGE = {
    "a gantt of millions of days": (
        "gantt\ndateFormat YYYY-MM-DD\ntickInterval 1day\nexcludes weekends\nsection A\n"
        "x :a1, 0001-01-01, 9999-12-31\ny :a2, 2024-01-01, 90000000d"
    ),
    "a hundred million bits": 'packet-beta\n0-99999999: "a"',
    "one row of a hundred million columns": "block-beta\ncolumns 100000000\na:100000000 b",
    "sizes beyond numbers": "%%{init: {'sequence': {'width': 1e300, 'height': 1e300}}}%%\nsequenceDiagram\na->>b: x",
}

ALIVE = "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => done(true))))"


@pytest.mark.parametrize("diagram", LARGE)
def test_the_page_stays_alive_beside_a_diagram_that_would_be_endless(sheet: Sheet, diagram: str) -> None:
    """It answers while the frame works, which is gone afterwards, and the next one is drawn."""
    answer = sheet.draw(fenced("mermaid", LARGE[diagram]) + fenced("mermaid", FLOW))
    sheet.page.locator("iframe").first.wait_for(state="attached")
    assert sheet.page.evaluate(ALIVE)
    settled(answer, 2)
    assert told(answer.locator(".code").first)
    assert answer.locator(".code").last.locator(".picture img").count() == 1
    assert sheet.page.locator("iframe").count() == 0
    sheet.errors[:] = [error for error in sheet.errors if "Expected number" not in error]


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


def test_the_frame_has_no_origin_and_reaches_nothing(open_sheet: Callable[..., Sheet]) -> None:
    """Whatever runs in it, even opened by itself; the page's frames cannot be led elsewhere."""
    sheet = open_sheet()
    own = sheet.page.url
    sheet.page.goto(f"{own}diagram.html")
    assert sheet.page.evaluate(REACH) == ["null", 0, []]
    sheet.open(own)
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
    "answer",
    [
        7,
        None,
        {"svg": 7},
        {"svg": "<svg/>", "width": 1e9, "height": 1},
        {"problem": "<b>x</b>", "line": "<b>"},
    ],
)
def test_what_the_frame_says_is_checked(open_sheet: Callable[..., Sheet], answer: object) -> None:
    """A frame that was taken over can send anything: no more than a sentence of the page's own is shown."""
    sheet = open_sheet()
    said = f"addEventListener('message', ({{ ports: [port] }}) => port.postMessage({json.dumps(answer)}))"
    frame = f"<!doctype html><script>{said}</script>"
    sheet.page.route("**/diagram.html", lambda route: route.fulfill(body=frame, content_type="text/html"))
    drawn = sheet.draw(fenced("mermaid", FLOW))
    settled(drawn, 1)
    assert told(drawn)[0] in (". This diagram has an error.", ". This diagram is too large a picture.")


def test_a_diagram_is_dark_in_the_dark_and_light_on_paper(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet(color_scheme="dark")
    picture = sheet.draw(fenced("mermaid", FLOW)).locator(".picture img")
    picture.wait_for()
    look = "element => getComputedStyle(element).filter"
    assert "invert" in picture.evaluate(look)
    sheet.page.emulate_media(media="print")
    assert picture.evaluate(look) == "none"
    assert sheet.answer.locator(".code-head button:visible, pre:visible").count() == 0
