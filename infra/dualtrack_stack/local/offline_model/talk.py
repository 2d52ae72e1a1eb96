"""Messages answered without any tool: greetings, thanks, "What can you do?", and requests that need a language
model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from dualtrack.profiles import all_profiles

from . import courses, graph, samples

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["greeting", "thanks", "help", "compose", ""]

REAL_MODEL = "For answers of a language model set `ANTHROPIC_API_KEY` and start dualtrack again."

_GREETING = re.compile(
    r"\A\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|how are you)\b[\w\s,.!?'-]{0,24}\Z",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"\A\W*(?:(?:ok(?:ay)?|great|perfect|cool|nice|many)\W+)?(?:thanks?|thank you|thx|cheers)\b[^?\n]{0,80}\Z"
    r"|\A\W*(?:ok(?:ay)?|great|perfect|cool|nice|bye|goodbye)\W*\Z",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"\A\W*(?:please )?help(?: me)?\W*\Z|\bwhat (?:can|do) you (?:do|know|offer|help)\b|\bhow can you help\b"
    r"|\bwho are you\b|\bwhat are you\b|\bwhich (?:sample )?(?:documents|docs|agents|profiles|tools) (?:are there|do you have)\b",
    re.IGNORECASE,
)
_COMPOSE = re.compile(
    r"\A\W*(?:(?:please|can you|could you|would you|now)\W+){0,3}"
    r"(?:write|generate|create|draft|compose|implement|make|translate|paint|draw|invent)\b",
    re.IGNORECASE,
)


def kind_of(question: str) -> Kind:
    """The kind of such a message; empty for anything else. ``compose``: asks for a new text."""
    message = courses.plain(question).strip()
    if _HELP.search(message) and len(message) <= 80:
        return "help"
    if _THANKS.match(message):
        return "thanks"
    if _GREETING.match(message):
        return "greeting"
    return "compose" if _COMPOSE.match(message) else ""


def reply_to(kind: Kind, offered: Iterable[str], *, only_samples: bool) -> str:
    """The answer to a kind of talk, for an agent with these tools."""
    tools = frozenset(offered)
    if kind == "thanks":
        return "You are welcome."
    if kind == "greeting":
        return f"Hello! {_ABILITY} {_try(tools)}"
    if kind == "compose":
        return (
            "I cannot write that: I am no language model, only fixed rules that show what tools find. "
            f"{_try(tools)}\n\n{REAL_MODEL}"
        )
    known = what_is_known(tools, only_samples=only_samples)
    return f"{_ABILITY}\n\n{known}\n\n{_try(tools)}\n\n{_agents()}\n\n{REAL_MODEL}"


_ABILITY = "I call the tools that a message asks for and show what of their results matches it."


def nothing_known(offered: Iterable[str], *, only_samples: bool) -> str:
    """Says that nothing is known about the question, and what is known."""
    tools = frozenset(offered)
    known = what_is_known(tools, only_samples=only_samples)
    return f"I know nothing about that, so I called no tool.\n\n{known}\n\n{_try(tools)}\n\n{REAL_MODEL}"


def what_is_known(tools: frozenset[str], *, only_samples: bool) -> str:
    """The sources of answers."""
    if courses.SEARCH in tools:
        return "The course materials that were loaded: ask what they teach, or for a course's outline."
    if graph.is_offered(tools):
        return "The graph that was loaded: ask for counts, lists, connections and paths."
    sources = [
        f"There are sample documents about {_listed(samples.titles())}."
        if only_samples
        else "I can search the documentation of libraries: ask how to do something.",
        "I can fetch earlier records of this conversation in full: ask for something from earlier.",
    ]
    if any(name.startswith("github_") for name in tools):
        sources.append("I can ask GitHub: name a repository as `owner/name`.")
    return " ".join(sources)


def _try(tools: frozenset[str]) -> str:
    examples = "\n".join(f"- {question}" for question in _suggestions(tools)[:3])
    return f"Try, for instance:\n\n{examples}"


def _suggestions(tools: frozenset[str]) -> tuple[str, ...]:
    name = "courses" if courses.SEARCH in tools else "graph" if graph.is_offered(tools) else "assistant"
    return all_profiles()[name].suggestions


def _agents() -> str:
    lines = "\n".join(f"- `{profile.name}`: {profile.description}" for profile in all_profiles().values())
    return f"The agents (choose one on the page, or with `--profile`):\n\n{lines}"


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
