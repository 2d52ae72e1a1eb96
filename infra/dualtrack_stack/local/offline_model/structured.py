"""Structured output: a value for a JSON Schema, filled from the request by the names of its fields.

Made for dualtrack's own requests: the library and topic of a question, a choice among listed ids, a ranking of
numbered excerpts. Any other schema gets plain values that are valid for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .prose import overlap, words
from .schemas import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LABELLED = re.compile(
    r"(?:^|\n)[^\w\n]*+(?:the\s+)?(?:user'?s?\s+|original\s+)?(?:question|request|query|message)\W*"
    r"[:>]\s*(.+)",
    re.IGNORECASE,
)
_TAGGED = re.compile(r"<(?:question|request|query)>\s*(.*?)\s*</", re.DOTALL)
_NUMBERED = re.compile(
    r"^[^\S\n]*+(?:\[(\d+)\]|(\d+)[.):]\s|<\w+\s+(?:index|id|n|number)=[\"']?(\d+)[\"']?[^>]*>)", re.MULTILINE
)
_LIBRARY_ID = re.compile(r"(?<![\w/:.])/[\w.-]+/[\w.-]+(?:[/@][\w.-]+)?")
_AFTER = re.compile(r"\b(?:for|with|using|in|on|from|of)\s+((?:the\s+)?[^,.;:?!()]+)", re.IGNORECASE)
_PROPER = re.compile(r"\b(?:[A-Z][\w.+#-]*|[a-z]+[-_.][\w.-]*\w)(?:\s+(?:[A-Z][\w.+#-]*|ads?|api|sdk))*")
_LEADING = re.compile(
    r"^(?:how (?:do|can|should|would) (?:i|we|you|one)|how to|what is|what are|please|show me|explain)\s+",
    re.IGNORECASE,
)
_LANGUAGE = (
    r"(?:python|javascript|typescript|java|kotlin|scala|rust|ruby|php|perl|swift|bash|shell|golang|go|c\+\+|c#"
    r"|\.net|node\.?js|linux|macos|windows|ubuntu|(?-i:Node|C|R))(?![\w+#]|\.\w)"
)
_IN_A_LANGUAGE = re.compile(
    rf"(?<![\w.])(?:in|with|using|for|from|on|via)\s+(?:(?:an?|the|my|plain)\s+)*{_LANGUAGE}(?:\s+\d[\w.]*)?"
    rf"(?:\s*(?:,|/|\band\b|\bor\b)\s*{_LANGUAGE})*"
    r"(?:\s+(?:code|scripts?|programs?|app|application|project|function|service)\b)?",
    re.IGNORECASE,
)
"""Where the code is to run: rarely the product that the question is about."""

_ONLY_LANGUAGE = re.compile(_LANGUAGE, re.IGNORECASE)
_GENERIC = re.compile(
    r"(?:apis?|sdks?|cli|rest|https?|urls?|json|csv|xml|ya?ml|html|pdf|sql|ids?)", re.IGNORECASE
)
"""Capitalised words that are no product's name."""

_USED = re.compile(
    r"\b(?:use|using|with|for|in|on|from|via|install|configure|integrate|set ?up|query|call|connect to)\s+"
    r"(?:the\s+)?((?!(?:an?|my|our|some|it|them)\b)[\w.+#-]+"
    r"(?:\s+(?!(?:and|for|from|in|of|on|or|to|using|with)\b)[\w.+#-]+){0,2})$",
    re.IGNORECASE,
)
"""The product at the end of a sentence without names: "… use dynamodb", "… for twitter ads"."""

_QUESTION_WORDS = frozenset(
    ("how", "what", "which", "where", "when", "why", "who", "can", "could", "please", "show", "i", "is", "do")
)

_LIBRARY = {"library", "libraryname", "product", "package", "framework", "name", "software"}
_TOPIC = {"topic", "subject", "task", "aspect", "focus"}


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The source of the fields' values."""

    question: str
    library: str
    topic: str
    numbered: tuple[tuple[int, str], ...]
    ids: tuple[tuple[str, str], ...]

    def ranked_numbers(self) -> list[int]:
        """The numbers of the listed excerpts, best first."""
        return [number for number, _ in _ranked(self.question, self.numbered)]

    def ranked_ids(self) -> list[str]:
        """The listed ids, best first."""
        return [name for name, _ in _ranked(f"{self.library} {self.question}", self.ids)]


def fill(schema: Mapping[str, Any], prompt: str) -> Any:
    """A value that is valid for the schema."""
    return _value(schema, "", _read(prompt), schema)


def _ranked(question: str, items: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
    wanted = frozenset(words(question))
    return sorted(items, key=lambda item: overlap(wanted, item[1]), reverse=True)


def _read(prompt: str) -> _Prompt:
    labelled = _TAGGED.search(prompt) or _LABELLED.search(prompt)
    question = (labelled[1] if labelled else prompt.strip().split("\n\n")[0]).strip().strip("\"'")
    library, topic = split_request(question)
    return _Prompt(question, library, topic, _numbered(prompt), _ids(prompt))


def split_request(question: str) -> tuple[str, str]:
    """``(library, topic)``: the product that a question names, and the rest of it.

    "How do I set up OAuth for Twitter ads?" gives ("Twitter ads", "set up OAuth"). The code's language is the product
    only if there is no other: "How do I use the X Ads API in Python?" gives ("X Ads API", "use in Python"), "How do I
    read a file in Python?" ("Python", "read a file").
    """
    plain = _LEADING.sub("", " ".join(question.split())).rstrip("?!. ")
    library = _apart_from_the_language(plain) or _named(plain)
    if not library:
        after = _phrases(plain)
        library = " ".join((after[-1] if after else plain).split()[:3])
    topic = re.sub(rf"\b(?:for|with|using|in|on|from|of)?\s*(?:the\s+)?{re.escape(library)}", " ", plain)
    topic = " ".join(topic.split())
    return library[:100] or "unknown", topic or plain or "overview"


def _apart_from_the_language(plain: str) -> str:
    """The product in a question that also names a language, if there is one."""
    rest = " ".join(_IN_A_LANGUAGE.sub(" ", plain).split())
    if rest == plain:
        return ""
    used = _USED.search(rest)
    return _named(rest, _is_a_name) or (used[1] if used and _is_a_name(used[1]) else "")


def _is_a_name(phrase: str) -> bool:
    return not (_ONLY_LANGUAGE.fullmatch(phrase) or _GENERIC.fullmatch(phrase))


def _phrases(plain: str) -> list[str]:
    """What follows each preposition."""
    return [re.sub(r"^the\s+", "", match[1]) for match in _AFTER.finditer(plain)]


def _named(plain: str, counts: Callable[[str], bool] = bool) -> str:
    """The last name after a preposition, else the last name; only of accepted names."""
    for phrase in (*reversed(_phrases(plain)), plain):
        name = _product(phrase, counts)
        if name:
            return name
    return ""


def _product(text: str, counts: Callable[[str], bool]) -> str:
    for match in reversed(list(_PROPER.finditer(text))):
        name = match[0].rstrip(".-")
        if match[0].split()[0].lower() not in _QUESTION_WORDS and counts(name):
            return name
    return ""


def _numbered(prompt: str) -> tuple[tuple[int, str], ...]:
    starts = list(_NUMBERED.finditer(prompt))
    return tuple(
        (int(match[1] or match[2] or match[3]), prompt[match.end() : end])
        for match, end in zip(starts, _ends(starts, prompt), strict=True)
    )


def _ends(starts: list[re.Match[str]], prompt: str) -> list[int]:
    """Where the text after each match ends: at the next one."""
    return [*(match.start() for match in starts[1:]), len(prompt)][: len(starts)]


def _ids(prompt: str) -> tuple[tuple[str, str], ...]:
    starts = list(_LIBRARY_ID.finditer(prompt))
    contexts: dict[str, str] = {}
    for match, end in zip(starts, _ends(starts, prompt), strict=True):
        # The listing may put a title before the id on its line and details after it.
        before = prompt[prompt.rfind("\n", 0, match.start()) + 1 : match.start()]
        contexts.setdefault(match[0], f"{before} {match[0]} {prompt[match.end() : end]}")
    return tuple(contexts.items())


def _value(schema: Mapping[str, Any], name: str, prompt: _Prompt, root: Mapping[str, Any]) -> Any:
    schema = resolve(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        options = [(option, str(option)) for option in schema["enum"]]
        return _ranked(prompt.question, options)[0][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            options_of = [resolve(option, root) for option in schema[key]]
            chosen = next((option for option in options_of if option.get("type") != "null"), options_of[0])
            return _value(chosen, name, prompt, root)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((choice for choice in kind if choice != "null"), "null")
    return _of_type(kind, schema, name, prompt, root)


def _of_type(
    kind: Any, schema: Mapping[str, Any], name: str, prompt: _Prompt, root: Mapping[str, Any]
) -> Any:
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties") or {}
        return {key: _value(child, key, prompt, root) for key, child in properties.items()}
    if kind == "array":
        return _array(schema, name, prompt, root)
    if kind in ("integer", "number"):
        return _number(name, prompt)
    return {"boolean": False, "null": None}.get(kind, _string(name, prompt))


def _array(schema: Mapping[str, Any], name: str, prompt: _Prompt, root: Mapping[str, Any]) -> list[Any]:
    items = resolve(schema.get("items") or {}, root)
    kind = items.get("type")
    if kind in ("integer", "number"):
        return list(prompt.ranked_numbers())
    if kind == "object":
        return [_ranked_object(items, rank, prompt, root) for rank in range(len(prompt.numbered))]
    if kind == "string" and not items.get("enum"):
        if prompt.ids:
            return prompt.ranked_ids()
        if prompt.numbered and _is_ranking(name):
            return [str(number) for number in prompt.ranked_numbers()]
        return list(dict.fromkeys((prompt.question, prompt.topic, f"{prompt.library} {prompt.topic}")))
    return [_value(items, name, prompt, root)] if schema.get("minItems") else []


def _is_ranking(name: str) -> bool:
    return bool(re.search(r"rank|order|ids?$|index|best|relevan", name, re.IGNORECASE))


def _ranked_object(items: Mapping[str, Any], rank: int, prompt: _Prompt, root: Mapping[str, Any]) -> Any:
    """One entry of a ranking with scores: the entry at `rank`, scores falling with the rank."""
    filled = _value(items, "", prompt, root)
    for key in filled:
        if re.search(r"score|relevan", key, re.IGNORECASE):
            filled[key] = max(10 - rank, 0)
        elif re.search(r"index|id|number|excerpt", key, re.IGNORECASE):
            number = prompt.ranked_numbers()[rank]
            filled[key] = str(number) if isinstance(filled[key], str) else number
    return filled


def _number(name: str, prompt: _Prompt) -> int:
    if prompt.numbered and not re.search(r"score|count", name, re.IGNORECASE):
        return prompt.ranked_numbers()[0]
    return 1


def _string(name: str, prompt: _Prompt) -> str:
    plain = re.sub(r"[^a-z]", "", name.lower())
    if plain in _LIBRARY:
        return prompt.library
    if plain in _TOPIC:
        return prompt.topic
    if prompt.ids and re.search(r"id$|choice|chosen|selected|library", plain):
        return prompt.ranked_ids()[0]
    return prompt.question
