"""Every view and dialog of the page and how each is opened: what its accessibility tests walk."""

from __future__ import annotations

import base64
import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.fork_conversation import fork_conversation

from tests.clients.stack_client import Person
from tests.drivers.plugin_parts import parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import FilePayload, Locator, Page

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

SIZES: Final = {"desktop": (1280, 800), "tablet": (834, 1112), "phone": (390, 844)}
THEMES: Final = ("light", "dark")
NARROW: Final = 832
"""CSS pixels up to which the list of conversations is a drawer: 52rem."""

PNG: Final = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
PLAN: Final[FilePayload] = {
    "name": "plan.md",
    "mimeType": "text/markdown",
    "buffer": b"# Plan\nLaunch on 4 May.",
}
ANSWER: Final = """# Title

A paragraph with **bold**, `code`, a [link](https://example.com/) and $y^2$.[^a]

## Part

> quoted

- [x] done
- one more

| when | where | what |
|---|---|---|
| 2026-11-24 | https://example.com/a/rather/long/address/without/a/place/to/break/that/goes/on | words words words |

```python
@wraps(f)
class A(B):
    \"\"\"Doc.\"\"\"
    def f(self): return f"{self.x}" in {None}  # a comment that is longer than a phone is wide, and goes on
```

$$\\sum_{i=1}^{n} x_i = x_1 + x_2 + x_3 + x_4 + x_5 + x_6 + x_7 + x_8 + x_9 + x_{10} + x_{11} + x_{12} + x_{13}$$

<details><summary>More</summary>

Folded.

</details>

[^a]: By [a source](https://example.com/).
"""
COURSE: Final = b"Course Title: Knots\n\nLesson 0: Start\nThey hold.\n\nLesson 1: End\nAll is said."
NAMELESS: Final = "W" * 300
"""A text without a place to break."""


@dataclass(frozen=True, slots=True)
class View:
    """A state of the page.

    ``place``: what the page shows before, the name of a method of `Walk` or a function of one; ``opener``: the
    selector of the control that opens the view there, empty if the place is the view; ``title``: of a dialog;
    ``shown``: a selector of what is visible once it is open; ``module``: the module that opens the dialog, or the
    element or the file that is the view; ``more``: what a reader opens or enters then; ``back``: the selector of the
    control that leads back, empty for Escape.
    """

    name: str
    place: str | Callable[[Walk], None]
    opener: str = ""
    title: str = ""
    shown: str = ""
    module: str = ""
    more: Callable[[Walk], None] | None = None
    back: str = ""


@dataclass
class Walk:
    """A signed-in administrator's page, and the conversations that the views show."""

    reader: Reader
    outside: Page
    """A page that is not signed in."""
    root: Root
    script: Script
    tools: ToolServer
    addresses: dict[str, str] = field(default_factory=dict)
    _place: str | Callable[[Walk], None] = ""

    @property
    def page(self) -> Page:
        """The page that the view is on."""
        return self.outside if self._place in ("sign_in", "refused_sign_in", "docs") else self.reader.page

    @property
    def is_narrow(self) -> bool:
        """Whether the list of conversations is a drawer."""
        return (self.page.viewport_size or {"width": 0})["width"] <= NARROW

    # ── what there is to see ──

    def prepare(self) -> None:
        """Conversations, a key and what plug-ins show, made through the API."""
        identity = self.root.stack.token(self.reader.name)
        self.root.grant(identity.user_id)
        with contextlib.closing(Person(self.root.stack.url, identity)) as person:
            self._prepare_chats(person)
            key = {"name": "N" * 60, "scopes": ["chat"], "caps": {"credits_day": 25}}
            made = person.http.post("/v1/keys", json=key)
            assert made.is_success, made.text
            for part in parts("page_views"):
                part.prepare(person)
        self.page.goto(self.reader.url)
        self.page.get_by_label("Name").fill(self.reader.name)
        self.page.get_by_label("As an administrator").check()
        self.page.get_by_role("button", name="Sign in").click()
        self.page.locator("#conversations a").first.wait_for()

    def _prepare_chats(self, person: Person) -> None:
        def start(name: str, question: str = "", **more: Any) -> dict[str, Any]:
            message = self.script.branch(name).question(question) if name != "graph" else question
            started = person.http.post("/v1/chats", json={"message": message, **more})
            assert started.status_code == 202, started.text
            self.addresses[name] = started.json()["conversation_id"]
            return dict(started.json())

        talk, waiting, failed = (self.script.branch(name) for name in ("talk", "waiting", "failed"))
        talk.asks(
            ("kit_fail", {"reason": "out of paper"}),
            ("kit_echo", {"text": "long " * 200}),
            ("retrieve_documentation", {"query": "How do I set up OAuth for the X Ads API?"}),
            text="Looking it up.",
            thought="Which tool? The kit.",
        )
        talk.says(ANSWER)
        talk.says("Second.")
        failed.refuses(400)
        waiting.asks(("kit_write", {"name": NAMELESS, "note": "to all"}), text="I will write to all.")
        self.script.branch("asked").asks(
            ("ask_user", {"question": "Which boat?", "options": ["The red one", "The blue one"]}),
            ("look_up", {"word": "dinghy"}),
        )
        self.script.branch("allowed").asks(("kit_write", {"name": "to Ann"}))
        self.script.branch("allowed").says("Written.")
        self.tools.gate("to Ann").released.set()

        plan = {
            "media_type": "text/markdown",
            "name": "plan.md",
            "data": base64.b64encode(PLAN["buffer"]).decode(),
        }
        dot = {"media_type": "image/png", "name": "dot.png", "data": PNG}
        question = "What is this?\n\n```js\nlet a = 1;\n```"
        talked = start("talk", question, attachments=[dot, plan])
        start("graph", "What is connected to Biofilter 11?", profile="graph")
        started = [start("failed", "Break.")]
        paused = [start("waiting", profile="careful")]
        look_up = {"name": "look_up", "description": "Looks a word up.", "input_schema": {"type": "object"}}
        paused += [start("asked", profile="careful", tools=[look_up]), start("allowed", profile="careful")]
        for chat in paused:
            person.until(chat["chat_id"], lambda event: event.kind == "paused")
        (call,) = person.chat(paused[-1]["chat_id"])["pause"]["calls"]
        decision = {"id": call["id"], "approve": True, "for": "conversation"}
        decided = person.http.post(
            f"/v1/chats/{paused[-1]['chat_id']}/decisions", json={"decisions": [decision]}
        )
        assert decided.is_success, decided.text
        assert person.finish(talked["chat_id"])["status"] == "done"
        person.finish(started[0]["chat_id"])
        person.ask(talk.question("And then?"), self.addresses["talk"])
        for _ in range(4):
            fork_conversation(self.root.stores(), person.id, self.addresses["talk"], 1)

    # ── places ──

    def go(self, view: View, size: str) -> None:
        """To where a view is opened from, in a window of this size."""
        width, height = SIZES[size]
        self.close()
        self._place = view.place
        self.page.set_viewport_size({"width": width, "height": height})
        place = getattr(Walk, view.place) if isinstance(view.place, str) else view.place
        place(self)

    def close(self) -> None:
        """Close what is open over the place."""
        page = self.reader.page
        search = page.locator("#conversation-search")
        if search.input_value():
            search.evaluate("field => { field.value = ''; field.dispatchEvent(new Event('input')) }")
        for _ in range(2):
            if page.locator("dialog[open]").count() or page.locator(".side-is-open").count():
                page.keyboard.press("Escape")

    def open(self, view: View, how: Callable[[Locator], None]) -> None:
        """Open a view from its place; ``how`` acts on the control that opens it."""
        if view.opener:
            how(self.opener(view))
        if view.title:
            self.dialog(view.title)
        if view.shown:
            self.page.locator(view.shown).first.wait_for()
        if view.more:
            view.more(self)

    def dialog(self, title: str) -> None:
        """Wait until the dialog has this title."""
        self.page.locator("dialog[open]").get_by_role("heading", name=title, exact=True).wait_for()

    def opener(self, view: View) -> Locator:
        """The control that opens a view, within reach."""
        opener = self.page.locator(view.opener).first
        if opener.evaluate("element => element.closest('[inert]') !== null"):
            self.page.locator("#side-open").click()
        return opener

    def sign_in(self) -> None:
        """The first page."""
        self.outside.goto(self.reader.url)
        self.outside.get_by_role("button", name="Sign in").wait_for()

    def refused_sign_in(self) -> None:
        """A sign-in that was refused."""
        self.sign_in()
        self.outside.route("**/dev/token*", lambda route: route.fulfill(status=500, json={}))
        self.outside.get_by_label("Name").fill("ann")
        self.outside.get_by_role("button", name="Sign in").click()
        self.outside.locator("#sign-in-problem").wait_for()
        self.outside.unroute("**/dev/token*")

    def docs(self) -> None:
        """The page of the API."""
        self.outside.goto(f"{self.reader.url}/docs")
        self.outside.get_by_role("heading", name="The API", exact=True).wait_for()

    def new(self) -> None:
        """A new conversation."""
        self._conversation("", "#suggestions button")

    def talk(self) -> None:
        """One with everything that an answer can have."""
        self._conversation("talk", ".answer .math.drawn")
        self.page.locator('[data-branches="1"]').wait_for()
        self.page.locator(".question .file img[src]").wait_for()

    def steps(self) -> None:
        """The same with its steps unfolded."""
        self.talk()
        unfold(self)

    def graph(self) -> None:
        """An answer from the graph."""
        self._conversation("graph", ".exchange[data-status=done]")
        unfold(self)

    def memory(self) -> None:
        """The two tracks of a conversation."""
        self.talk()
        self.page.locator("#show-memory").click()
        self.page.locator(".usage-drawing").wait_for()
        unfold(self)

    def failed(self) -> None:
        """A chat that failed."""
        self._conversation("failed", ".exchange[data-status=failed] [data-receipt]")

    def waiting(self) -> None:
        """A call that waits for approval."""
        self._conversation("waiting", ".pause-card")

    def asked(self) -> None:
        """A question to the reader, and a call that a program runs."""
        self._conversation("asked", ".pause-question")

    def allowed(self) -> None:
        """A tool that may run unasked."""
        self._conversation("allowed", "#allowed:not([hidden])")

    def attached(self) -> None:
        """A file that is to be sent along."""
        self.new()
        if not self.page.locator("#files li").count():
            self.page.locator("#picker").set_input_files([PLAN])

    def credits(self) -> None:
        """The account, over a conversation."""
        self.talk()
        self.page.locator("#credits").click()
        self.page.locator("dialog .ledger a").first.wait_for()

    def settings(self) -> None:
        """The settings, over a conversation."""
        self.talk()
        self.page.evaluate("document.getElementById('settings').click()")
        self.dialog("Settings")
        self.page.locator("dialog .api-keys").wait_for()
        unfold(self)

    def courses(self) -> None:
        """The corpus of courses, with an upload."""
        bad: FilePayload = {"name": "bad.txt", "mimeType": "", "buffer": b"\xff\xfe"}
        good: FilePayload = {"name": "knots.txt", "mimeType": "", "buffer": COURSE}
        self._corpus("courses", good, bad)

    def replaced(self) -> None:
        """Files that are to replace all others."""
        self.courses()
        self.page.locator(".corpus-upload [type=checkbox]").check()
        files: list[FilePayload] = [{"name": "a.txt", "mimeType": "", "buffer": COURSE}]
        self.page.locator("#corpus-view input[type=file]").set_input_files(files)

    def corpus_graph(self) -> None:
        """The graph's files, with a bad one."""
        bad: FilePayload = {"name": "bad.csv", "mimeType": "", "buffer": b"from,type,to\na,LOCATED IN,b\n"}
        self._corpus("graph", bad)

    def _conversation(self, name: str, shown: str) -> None:
        self.page.goto(f"{self.reader.url}/#")
        self.page.locator("#agents:not([hidden])").wait_for()
        if name:
            self.page.goto(f"{self.reader.url}/#{self.addresses[name]}")
        self.page.locator(shown).first.wait_for()

    def _corpus(self, name: str, *files: FilePayload) -> None:
        self.page.goto(f"{self.reader.url}/#{name}")
        self.page.locator(".documents, .published .muted").first.wait_for()
        if self.page.locator("#corpus-view .job-head").count():
            return
        self.page.locator("#corpus-view input[type=file]").set_input_files(list(files))
        self.page.locator("#corpus-view .job-head", has_text=re.compile("^Done:|Nothing")).wait_for()


def unfold(walk: Walk) -> None:
    """Open everything that is folded."""
    walk.page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")


def searching(words: str, found: str) -> Callable[[Walk], None]:
    """Searches the list of conversations with Ctrl K."""

    def act(walk: Walk) -> None:
        walk.page.keyboard.press("Control+k")
        walk.page.keyboard.insert_text(words)
        walk.page.locator("#status").get_by_text(found).wait_for(state="attached")

    return act


def listing(walk: Walk) -> None:
    """Opens the list where it is a drawer, with all branches."""
    if walk.is_narrow:
        walk.page.locator("#side-open").click()
    walk.page.locator("[data-family]").first.wait_for()


def refused(status: int, error: dict[str, Any], shown: str) -> Callable[[Walk], None]:
    """Sends a message that the API refuses."""

    def act(walk: Walk) -> None:
        walk.page.route("**/v1/chats", lambda route: route.fulfill(status=status, json={"error": error}))
        walk.reader.field.fill("One more.")
        walk.page.get_by_role("button", name="Send", exact=True).click()
        walk.page.get_by_role("alert").filter(has_text=shown).wait_for()
        walk.page.unroute("**/v1/chats")
        walk.reader.field.fill("")

    return act


def too_long(walk: Walk) -> None:
    """Writes more than a message takes."""
    walk.reader.field.fill("x" * 32_001)
    walk.page.get_by_role("button", name="send it as a file").wait_for()


def running(walk: Walk) -> None:
    """Asks what takes a while, and loses the connection."""
    script = walk.script.branch(f"running-{walk.page.viewport_size}")
    script.asks(("kit_hold", {"name": script.marker}), text="Looking.", thought="Hm.")
    walk.page.route("**/events", lambda route: route.abort())
    walk.reader.send(script.question())
    walk.page.get_by_text("Connection lost").wait_for()
    walk.page.unroute("**/events")
    walk.page.locator(".call.running").wait_for()


SHORT: Final = {
    "code": "insufficient_credits",
    "message": "Not enough.",
    "required": 5,
    "available": 3,
    "resets_at": "2026-01-01T00:00:00Z",
    "upgrade": {
        "message": "",
        "plans": [{"name": "plus", "credits_per_day": 150, "dollars_per_month": 19}],
        "packs": [{"credits": 500, "dollars": 20}],
    },
}
PAUSED: Final = {"code": "conversation_paused", "message": "It waits.", "chat_id": "ch_elsewhere"}
IN_LIST: Final = "#conversations li:has([aria-current]) [data-act={}]"
NAMED: Final = "[aria-label^='{}']"
CANCEL: Final = "dialog .boxed-list button:text-is('Cancel')"

VIEWS: Final = (
    View("sign-in", "sign_in", module="sign-in"),
    View("sign-in, refused", "refused_sign_in"),
    View("API", "docs", module="docs.html", more=unfold),
    View("new conversation", "new", more=unfold),
    View("list", "new", more=listing),
    View("search", "new", more=searching("biofilter", "1 conversation found.")),
    View("search without a hit", "new", more=searching("nothing like it", "No conversation found.")),
    View("answer", "steps", module="chat-view"),
    View("failed chat", "failed"),
    View("running chat", "new", more=running),
    View("question, edited", "talk", "[data-edit=q1]", shown=".question-editor"),
    View("approval", "waiting"),
    View(
        "approval, edited",
        "waiting",
        NAMED.format("Edit: kit"),
        shown=".pause-input",
        back=NAMED.format("Back:"),
    ),
    View(
        "approval, declined",
        "waiting",
        NAMED.format("Decline: kit"),
        shown=".pause-call input",
        back=NAMED.format("Back:"),
    ),
    View("question to the reader", "asked"),
    View(
        "result to enter",
        "asked",
        NAMED.format("Enter the result"),
        shown=".pause-input",
        back=NAMED.format("Back: look"),
    ),
    View("too little credit", "new", more=refused(402, SHORT, "Not enough credits")),
    View("waiting conversation", "waiting", more=refused(409, PAUSED, "waits for your decision")),
    View("too long", "new", more=too_long),
    View("memory", "memory", module="memory-view"),
    View(
        "record of a call",
        "steps",
        "[data-record=q1-t1]",
        "Record q1-t1",
        "dialog .raw",
        "record_dialog",
        unfold,
    ),
    View(
        "record of an answer",
        "talk",
        ".figures [data-record=q1-r]",
        "Record q1-r",
        "dialog .prose",
        "",
        unfold,
    ),
    View("record from the graph", "graph", "[data-record=q1-t1]", "Record q1-t1", ".neighbours", "", unfold),
    View("receipt", "talk", "[data-receipt]", "Receipt", "dialog .receipt", "receipt_dialog"),
    View(
        "branches",
        "talk",
        '[data-branches="1"]',
        "Branches at question 1",
        "dialog .branch-list",
        "branches_dialog",
    ),
    View("file", "talk", 'button[data-name="plan.md"]', "plan.md", "dialog .raw", "stored_files"),
    View("attachment", "attached", NAMED.format("Preview"), "plan.md", "dialog .raw", "attachments"),
    View("waiting chats", "talk", "#pauses", "Waiting for you", "dialog .pause-list", "pauses_list"),
    View(
        "allowed tools", "allowed", "#allowed", "Allowed in this conversation", "dialog li", "allowed_tools"
    ),
    View("credits", "talk", "#credits", "Credits", "dialog .ledger a", "credits_view"),
    View(
        "erase my account",
        "credits",
        ".dialog section .link-button",
        "Erase my account",
        "dialog input",
        "credits_view",
    ),
    View("settings", "talk", "#settings", "Settings", "dialog .api-keys", "settings_dialog", unfold),
    View("key changed", "settings", NAMED.format("Change "), shown="dialog li form", back=CANCEL),
    View("key revoked", "settings", NAMED.format("Revoke "), shown="dialog .danger", back=CANCEL),
    View(
        "export",
        "talk",
        IN_LIST.format("Export"),
        "Export the conversation",
        "dialog .buttons",
        "export_dialog",
    ),
    View("rename", "talk", IN_LIST.format("Rename"), "Rename the conversation", "dialog input", "sidebar"),
    View("delete", "talk", IN_LIST.format("Delete"), "Delete the conversation?", "dialog .danger", "sidebar"),
    View("courses", "courses", module="corpus-view"),
    View(
        "delete a course",
        "courses",
        ".documents button",
        "Delete the course?",
        "dialog .danger",
        "corpus_view",
    ),
    View("replace all courses", "replaced", "", "Replace all courses?", "dialog .danger", "corpus_view"),
    View("graph", "corpus_graph"),
)
"""Every view and dialog but those of plug-ins, which are the ``VIEWS`` of their ``page_views.py``."""


def all_views() -> tuple[View, ...]:
    """With those of plug-ins."""
    return (*VIEWS, *(view for part in parts("page_views") for view in part.VIEWS))
