"""Three writers of summaries and digests: the product's own extracts, a perfect one, and one that keeps no fact."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.offline_model.script import ScriptedResponse
from dualtrack_stack.local.offline_model.transcript import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack_stack.local.offline_model import wire

    Facts = Mapping[str, Sequence[str]]
    """The planted sentences by the id of their record."""

_FORM: Final = re.compile(r"^\[(\S+) ID\]", re.MULTILINE)
_LISTED: Final = re.compile(r"^(q\d+[\w-]*):", re.MULTILINE)
_OF_DIGEST: Final = re.compile(r"^(q\d+(?:-t\d+|-r)?)(?:-sum)?: ", re.MULTILINE)
_SO_FAR: Final = re.compile(r"^Digest so far \([^)]*\): (.*)$", re.MULTILINE)
_EMPTY: Final = "Several things were looked up and told, as was asked. " * 6
"""As long as a model's summary."""

_DIGEST: Final = 3_500


def extract(request: wire.Request, facts: Facts) -> ScriptedResponse:
    """No model writes: the product's extracts and its mechanical digest stand."""
    return ScriptedResponse(status=400, error_message="no summaries today")


def perfect(request: wire.Request, facts: Facts) -> ScriptedResponse:
    """Every summary has the facts of its record, word for word, and the digest as many as it has room for."""
    return _written(request, lambda record_id: " ".join(facts.get(record_id, ())), facts)


def adversarial(request: wire.Request, facts: Facts) -> ScriptedResponse:
    """No summary and no digest has a fact, or a word of one."""
    return _written(request, lambda _: "", {})


WRITERS: Final[Mapping[str, Callable[[wire.Request, Facts], ScriptedResponse]]] = {
    "extract": extract,
    "perfect": perfect,
    "adversarial": adversarial,
}


def _written(request: wire.Request, kept: Callable[[str], str], facts: Facts) -> ScriptedResponse:
    asked = "\n\n".join(texts(request.messages[-1].content))
    form = _FORM.search(asked)
    if form:
        ids = _LISTED.findall(asked.partition("Records:")[2])
        parts = (f"[{form[1]} {record_id}] {kept(record_id)} {_EMPTY}" for record_id in ids)
        return ScriptedResponse(text="\n".join(parts))
    named = _OF_DIGEST.findall(asked)
    if not named:  # a call for one record
        told = " ".join(sentence for own in facts.values() for sentence in own if sentence in asked)
        return ScriptedResponse(text=f"{told} {_EMPTY}")
    so_far = _SO_FAR.search(asked)
    said = [f"{record_id}: {told}" for record_id in dict.fromkeys(named) if (told := kept(record_id))]
    text = " ".join([*([so_far[1]] if so_far else []), *said]) if said else _EMPTY
    return ScriptedResponse(text=text[-_DIGEST:])
