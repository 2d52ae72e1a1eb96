"""The agent of a conversation: chosen before it begins, shown wherever it is listed, fixed from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.profiles import all_profiles

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.clients.page_reader import Reader
    from tests.clients.script import Script


OFFERED = """{
    tools: [{ name: "count_nodes", description: "Counts nodes.", price: 2 }, { name: "look_up", description: "Looks up.", price: 10 }],
    profiles: [
        { name: "assistant", description: "Helps.", tools: ["look_up"], suggestions: ["Ask me"] },
        { name: "graph_chat", description: "Answers from the graph.", tools: ["count_nodes", "look_up", "gone"], suggestions: ["How many assets?", "List them"] },
    ],
}"""

SHOWN = """async ([offered, fixed]) => {
    const { Agents } = await import("/js/agents.js");
    const picked = [];
    const agents = new Agents(text => picked.push(text));
    agents.offered = offered;
    agents.draw(fixed);
    const texts = selector => [...document.querySelectorAll(selector)].map(element => element.textContent);
    document.querySelector("#suggestions button").click();
    return {
        picked, chosen: agents.chosen, several: agents.several, hidden: document.querySelector("#agents").hidden,
        names: texts(".agent-name"), tools: texts("#agent-tools summary"), suggestions: texts("#suggestions li"),
    };
}"""


def picker(reader: Reader) -> Locator:
    """The choice of agents, once it is shown."""
    group = reader.page.get_by_role("group", name="Agent")
    group.wait_for()
    return group


def shown(reader: Reader, offered: Any, fixed: str = "") -> Any:
    """How the page shows these agents."""
    return reader.page.evaluate(SHOWN, [offered, fixed])


def test_a_new_conversation_begins_with_the_agent_that_was_chosen(reader: Reader, script: Script) -> None:
    choice = picker(reader)
    assert choice.get_by_role("radio", name="Assistant", exact=True).is_checked()
    small = choice.get_by_role("radio", name="Small", exact=True)
    small.check()
    assert small.evaluate(
        "element => document.getElementById(element.getAttribute('aria-describedby')).textContent"
    )
    script.says("Small talk.")
    reader.ask(script.question())
    assert not choice.is_visible(), "it is fixed now"
    assert reader.page.locator("#agent").inner_text() == "Small"
    side = reader.page.get_by_role("navigation", name="Conversations")
    assert "Small" in side.locator("#conversations").get_by_role("link").inner_text()

    script.says("Still small.")
    reader.ask(script.question("more"))
    reader.page.reload()
    reader.sees("Still small.")
    reader.page.locator("#agent", has_text="Small").wait_for()  # as the server has it
    assert not choice.is_visible()
    reader.page.get_by_role("button", name="New conversation").click()
    picker(reader).get_by_role("radio", name="Assistant", exact=True).check()
    assert not reader.page.locator("#agent").is_visible()


def test_agents_are_chosen_by_keyboard(reader: Reader) -> None:
    choice = picker(reader)
    choice.get_by_role("radio", name="Assistant", exact=True).focus()
    names = choice.get_by_role("radio").evaluate_all("all => all.map(radio => radio.value)")
    reader.page.keyboard.press("ArrowDown")
    chosen = reader.page.evaluate("document.activeElement.value")
    assert chosen == names[(names.index("assistant") + 1) % len(names)]
    assert reader.page.evaluate("document.activeElement.checked")
    reader.page.keyboard.press("Tab")
    tools = reader.page.locator("#agent-tools details")
    assert not tools.evaluate("element => element.open")
    reader.page.keyboard.press("Enter")
    tools.locator("li").first.wait_for()
    assert "credits" in tools.locator("li .price").first.inner_text()
    suggested = reader.page.locator("#suggestions button").all_inner_texts()
    known = all_profiles()  # small, the deployment's own profile, has the assistant's
    assert suggested == list(known.get(chosen, known["assistant"]).suggestions)


def test_a_single_agent_is_not_shown(reader: Reader) -> None:
    picker(reader)
    offered = reader.page.evaluate(f"() => ({OFFERED})")
    both = shown(reader, offered)
    assert both == {
        "picked": ["Ask me"],
        "chosen": "assistant",
        "several": True,
        "hidden": False,
        "names": ["Assistant", "Graph chat"],
        "tools": ["1 tool, 10 credits a call"],
        "suggestions": ["Ask me"],
    }
    begun = shown(reader, offered, "graph_chat")
    assert (begun["hidden"], begun["tools"]) == (True, ["2 tools, 2 to 10 credits a call"])
    assert begun["suggestions"] == ["How many assets?", "List them"]
    alone = shown(reader, offered | {"profiles": offered["profiles"][1:]})
    assert (alone["several"], alone["hidden"], alone["tools"]) == (False, True, [])
    assert (alone["chosen"], alone["suggestions"]) == ("graph_chat", ["How many assets?", "List them"])


SOURCES = """async () => {
    const { sourceList, webAddress } = await import("/js/source_list.js");
    const lesson = { title: "Knots - Lesson 0", url: "https://learn.example.com/knots/0" };
    const list = sourceList([
        { ...lesson, record_id: "q1-t1" }, { title: "Ropes - Lesson 4", url: null }, { ...lesson, record_id: "q1-t2" },
        { ...lesson, record_id: "q1-t1" }, { ...lesson, title: "Knots" }, { title: "Bad", url: "javascript:alert(1)" },
    ]);
    return {
        head: list.querySelector("summary").textContent, open: list.open,
        listed: [...list.querySelectorAll("li")].map(item => item.textContent),
        links: [...list.querySelectorAll("a")].map(link => [link.href, link.target, link.rel]),
        refused: ["javascript:alert(1)", " data:text/html,x", "//evil.example", "/v1/me", "https://user:word@evil.example/", "https://[", ""].map(webAddress),
        taken: webAddress("HTTPS://Learn.example.com/a b"),
    };
}"""


def test_a_source_is_listed_once_and_links_only_to_the_web(reader: Reader) -> None:
    seen = reader.page.evaluate(SOURCES)
    assert seen["head"] == "4 sources"
    assert not seen["open"]
    assert seen["listed"] == ["Knots - Lesson 0q1-t1q1-t2", "Ropes - Lesson 4", "Knots", "Bad"]
    link = ["https://learn.example.com/knots/0", "_blank", "noopener noreferrer nofollow"]
    assert seen["links"] == [link, link]
    assert seen["refused"] == [None] * 7
    assert seen["taken"] == "https://learn.example.com/a%20b"
