"""What the terminal shows of an answer, against what is stored: nothing is lost, at any width."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from dataclasses import dataclass

import pytest
from click.testing import CliRunner
from dualtrack.frozen import freeze
from dualtrack_stack.cli.client import ChatEvent
from dualtrack_stack.cli.main import main
from dualtrack_stack.cli.markdown import Markdown
from dualtrack_stack.cli.progress import LiveView, PlainView
from rich.cells import cell_len
from rich.console import Console

from tests.servers.api_server import AT, Script, api_server, conversation

CONVERSATION = "cv_" + "0" * 26
WIDTHS = [40, 80, 100, 200]


@dataclass(frozen=True, slots=True)
class Case:
    """Markdown, and what a terminal shows of it if that is not the very same characters."""

    name: str
    markdown: str
    shown: str = ""
    is_table: bool = False
    """Folded cells stand side by side: the characters are compared, not their order."""


LONG = "supercalifragilisticexpialidocious_" * 6
CASES = [
    Case("inline mathematics", r"So \(a_1 * b_2 * c_3\) and $x_i * y_i * z$, for $n < m$ and \(\vec{v}\,\)."),
    Case("display mathematics", "\\[\nx = 1 \\\\[4pt]\n+ y_1 * 2 * z \\,\n- 4\n= 5\n\\]"),
    Case("dollars on lines", "$$\na * b * c\n+ d\n# e\n1. f\n$$\n\nand $$g_1*h_1*i$$ in a line"),
    Case("an environment", "\\begin{align*}\na &= b \\\\\n- c &< d_1 \\\\\n\\end{align*}"),
    Case(
        "mathematics in a list",
        "- \\[\n  a\n  + b\n  \\]\n- $$\\alpha_1 * \\beta_1 * \\gamma$$",
        "\\[ a + b \\] $$\\alpha_1 * \\beta_1 * \\gamma$$",
    ),
    Case("mathematics in a quote", "> $$\n> a\n> + b\n> $$", "$$ a + b $$"),
    Case("mathematics without an end", "It is \\[ x_1 and\n\n$$ y_1 and \\( z"),
    Case("money", "From $5 to $6, and US$ 7_000_000."),
    Case("backslashes", r"\[ \] \\ \, \( \) \* \_ \# \$ \{ \} C:\dir\[x] \alpha" + "\\\nand on"),
    Case(
        "html blocks",
        "<script>\n  let a = b * c * d;\n</script>\n\n<details>\n<summary>More</summary>\n\nText.\n\n</details>\n<DIV class='x'>",
    ),
    Case("html blocks begin lines", "text\n<details><b>x</b></details>\n<script src=x></script>"),
    Case("html inline", "a <b>bold</b> <kbd>Ctrl</kbd> <br> <img src=x onerror=alert(1)> <x-y/> 1 < 2 > 0"),
    Case(
        "comments",
        "<!-- hidden\n\n  still * hidden * -->\n\na <!-- b --> c <?php d ?> <!DOCTYPE e> <![CDATA[f]]>",
    ),
    Case("entities", "&amp; &lt;b&gt; &copy; &#65; &#x42; &unknown; &", "& <b> © A B &unknown; &"),
    Case("entities of controls", "a&#27;[2J&#13;b&#7;", "a�[2Jb�"),
    Case(
        "emphasis",
        "*a* **b** ***c*** _d_ __e__ ~~f~~ ~g~ 2*3*4 snake_case_name `h  *i*`",
        "a b c d e f ~g~ 234 snake_case_name h  *i*",
    ),
    Case(
        "headings",
        "# One\n\n## Two #2\n\nThree\n=====\n\nFour\n---\n\n####### Seven",
        "One Two #2 Three Four ####### Seven",
    ),
    Case(
        "nested lists",
        "- a\n  - b\n    - c\n      * d\n+ e\n\n3. f\n7. g\n   1) h\n\n1. i\n1. j",
        "a b c d e 3. f 7. g 1) h 1. i 1. j",
    ),
    Case("deep lists", "\n".join(f"{'  ' * depth}* item{depth}" for depth in range(60))),
    Case("deep quotes", "> " * 60 + "deep\n\nand on"),
    Case("task lists", "- [x] done\n- [ ] open", "[x] done [ ] open"),
    Case(
        "fences",
        '```python title="a b"\nif a:\n\tb = "\\[" * 2\n\n    c()\n```\n~~~\n```\n~~~\n````md\n```x\n```\n````\n```\nopen',
        'python title="a b" if a: b = "\\[" * 2 c() ``` md ```x ``` open',
    ),
    Case("a fence in a list", "1. a\n\n   ```sh\n   ls | wc\n   ```", "1. a sh ls | wc"),
    Case("indented code", "a\n\n    b * c * d\n      <e>", "a b * c * d <e>"),
    Case("a long line of code", "```\n" + "x = 1; " * 60 + "\n```", "x = 1; " * 60),
    Case(
        "footnotes",
        "A[^1] and b[^note].\n\n[^1]: https://a.example\n[^note]: Some *words*.",
        "A[^1] and b[^note]. [^1]: https://a.example [^note]: Some words.",
    ),
    Case(
        "reference links",
        '[a][r], [r] and [b][].\n\n[r]: <https://a.example/a b> "T"\n[b]: https://b.example',
    ),
    Case(
        "links",
        '[a](https://a.example/%20ä?x_1*2 "T") [*b* `c`](d) [javascript](javascript:x)',
        'a (https://a.example/%20ä?x_1*2 "T") b c (d) [javascript](javascript:x)',
    ),
    Case(
        "autolinks",
        "<https://a.example/x_y_z> <me@a.example> https://b.example/_c_",
        "https://a.example/x_y_z me@a.example https://b.example/_c_",
    ),
    Case(
        "images",
        '![a *b*](c.png "T") and [![d](e.svg)](https://f.example)',
        '![a *b*](c.png "T") and ![d](e.svg) (https://f.example)',
    ),
    Case(
        "a table",
        "| a | b |\n|:--|--:|\n| 1 | `x \\| y` |\n| <br> | $\\|z\\|$ |",
        "a b 1 x\\|y <br> $\\|z\\|$",
        is_table=True,
    ),
    Case(
        "a table of long words",
        f"| a | b |\n|---|---|\n| {LONG} | {LONG} |\n| c |",
        f"a b {LONG} {LONG} c",
        is_table=True,
    ),
    Case(
        "a table of prose",
        "| a | b | c |\n|---|---|---|\n" + "| some words of prose " * 3 + "|",
        "a b c" + "some words of prose" * 3,
        is_table=True,
    ),
    Case(
        "a wide table",
        "|" + " head |" * 40 + "\n|" + "-|" * 40 + "\n|" + " cell_x |" * 40,
        "head" * 40 + "cell_x" * 40,
        is_table=True,
    ),
    Case("a row of too many cells", "| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |", "a b 1 2 3 4", is_table=True),
    Case("no table", "a | b\n|---|\nc || d"),
    Case("a table in a list", "- x\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |", "x a b 1 2", is_table=True),
    Case("east asian", "日本語" * 50 + " 한국어 🎉 👩‍👩‍👧‍👦 e\u0301 " + "漢字" * 60),
    Case("a long word", LONG * 4),
    Case("escape sequences", "a \x1b[31mred\x1b]0;title\x07 \x9b2J \x1b[2J", "a [31mred]0;title 2J [2J"),
    Case("line ends", "a\r\nb\r\n\r\n```\r\nc\r\n```\rd", "a b c d"),
    Case("console markup", "[bold]a[/bold] [/] :smile: [link=x]y[/link]"),
    Case("a rule", "a\n\n---\n\n***\n\nb", "a b"),
    Case("lines", "Roses are red,\nviolets blue."),
]
HARD = [
    Case(
        "hundreds of lines",
        "\n\n".join(
            f"\\[ x_{n} * y_{n} * z \\] <b>{n}</b>\n\n<details>{n}\n\n| a{n} | b |\n|---|---|\n| \\(c_{n}\\) | d |"
            for n in range(40)
        ),
        "".join(f"\\[x_{n}*y_{n}*z\\]<b>{n}</b><details>{n}a{n}b\\(c_{n}\\)d" for n in range(40)),
        is_table=True,
    ),
]
ALL = [*CASES, *HARD]
named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
_DRAWN = re.compile(r"^ *-+ *$|[─•▌]", re.MULTILINE)


def undrawn(shown: str) -> str:
    """Without our own console's sequences, and the lines and signs that are drawn."""
    return _DRAWN.sub("", _SEQUENCE.sub("", shown))


def characters(text: str) -> str:
    return "".join(text.split())


def same(shown: str, case: Case) -> bool:
    seen, expected = characters(undrawn(shown)), characters(case.shown or case.markdown)
    if case.is_table:  # with pipes, it stands as it was written
        return Counter(seen.replace("|", "")) == Counter(expected.replace("|", ""))
    return seen == expected


def console_of(width: int) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=4_000, legacy_windows=False, _environ={}
    )


def live_view(markdown: str, width: int) -> tuple[str, str]:
    """What stands in the moving region while the answer is streamed, and above it at the end."""
    console = console_of(width)
    view = LiveView(console)
    turn = {"turn": 1, "max_turns": 15, "final": False}
    view.show(ChatEvent(1, "turn", freeze(turn)))
    view.show(ChatEvent(2, "delta", freeze({"turn": 1, "text": markdown})))
    with console.capture() as region:
        console.print(view.region())
    with console.capture() as answer:
        view.show(ChatEvent(3, "answer", freeze({"response": markdown})))
    return region.get(), answer.get()


@pytest.mark.parametrize("width", WIDTHS)
@named
def test_a_terminal_shows_all_of_an_answer(case: Case, width: int) -> None:
    region, answer = live_view(case.markdown, width)
    assert same(answer, case), answer
    assert same(re.sub(r"[^\n]*writing[^\n]*\n?\Z", "", region), case), region
    lines = undrawn(answer).splitlines()
    assert max(cell_len(line) for line in lines) <= width


@pytest.mark.parametrize("case", [Case("nothing", ""), Case("blank", " \n\t\n")], ids=lambda case: case.name)
def test_nothing_is_shown_of_nothing(case: Case) -> None:
    assert not characters(undrawn(live_view(case.markdown, 80)[1]))


@pytest.mark.parametrize("width", [1, 5, 12, 20])
def test_a_narrow_terminal_shows_all_that_it_can_fold(width: int) -> None:
    for markdown in ("A $x_1$ b.", "1. a\n   - b", "> a\n> > b", "| a | b |\n|---|---|\n| c | d |"):
        shown = characters(undrawn(live_view(markdown, width)[1]))
        assert all(shown.count(letter) == markdown.count(letter) for letter in "abcdx")


@pytest.mark.parametrize(
    ("text", "shown", "bold"),
    [
        ("これは**「強調」**です", "これは「強調」です", "「強調」"),
        ("これは**強調。**です", "これは強調。です", "強調。"),
        ("です**(強調)**です", "です(強調)です", "(強調)"),
        ("한국어**(강조)**입니다", "한국어(강조)입니다", "(강조)"),
        ("𠀋**(a)**𠀋", "𠀋(a)𠀋", "(a)"),
        ("a**(b)**c", "a**(b)**c", ""),
        ("**https://a.example/b。**です", "https://a.example/b。です", "https://a.example/b。"),
    ],
)
def test_emphasis_beside_cjk_is_drawn(text: str, shown: str, bold: str) -> None:
    console = Console(width=80, file=io.StringIO())
    segments = [part for line in console.render_lines(Markdown(text), pad=False) for part in line]
    assert "".join(part.text for part in segments).strip() == shown
    assert "".join(part.text for part in segments if part.style and part.style.bold) == bold


def test_a_terminal_keeps_lines() -> None:
    markdown = "Roses *are* red,\nviolets blue.\n\n<pre>\n  a\n    b\n</pre>\n\n\\[\nx\n  + y\n\\]"
    shown = [line.rstrip() for line in undrawn(live_view(markdown, 80)[1]).splitlines()]
    assert shown == [
        "", "Roses are red,", "violets blue.", "", "<pre>", "  a", "    b", "</pre>", "", "\\[", "x", "  + y", "\\]", "",
    ]  # fmt: skip


@named
def test_a_pipe_and_show_print_what_is_stored(case: Case) -> None:
    stored = re.sub(r"\r\n?", "\n", case.markdown)
    stored = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", stored)  # those that can control a terminal
    stream = io.StringIO()
    PlainView(stream).show(ChatEvent(1, "answer", freeze({"response": case.markdown})))
    assert stream.getvalue() == f"\n{stored}\n\n"

    record = {
        "record_id": "q1-r",
        "role": "assistant",
        "type": "message",
        "content": case.markdown,
        "created_at": AT,
    }
    served = Script(conversations=[conversation(CONVERSATION, "T")], records={CONVERSATION: [record]})
    with api_server(served) as url:
        for what in (CONVERSATION, f"{CONVERSATION}/q1-r"):
            result = CliRunner().invoke(main, ["show", what, "--url", url])
            assert result.stdout.endswith(f"answer, 2026-11-21 21:31 UTC\n{stored}\n"), result.output


@pytest.mark.parametrize(
    "hostile",
    ["\\[\n", "$$ a\n", "\\[", "$a ", "\\begin{a}\n", "|a|b|\n|-|-|\n|1|2|3|\n", "> ", "- ", "<!-- ", "\\", "- \\[\n\\]x\n"],
)  # fmt: skip
def test_reading_hostile_markdown_is_linear(hostile: str) -> None:
    """Counted, not timed: twice the text takes about twice the calls."""
    few, many = (_calls(hostile * (size // len(hostile))) for size in (4_000, 8_000))
    assert many < 3 * few


def _calls(markdown: str) -> int:
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        Markdown(markdown)
    finally:
        sys.setprofile(None)
    return counted
