"""Three writers of notes, summaries and digests: one that writes nothing, a perfect one, one that keeps no fact."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.offline_model.notes import asked_in
from dualtrack_stack.local.offline_model.script import ScriptedResponse
from dualtrack_stack.local.offline_model.transcript import texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack_stack.local.offline_model import wire

    Facts = Mapping[str, Sequence[str]]
    """The planted sentences by the id of their record."""

_OF_DIGEST: Final = re.compile(r"^(q\d+(?:-t\d+|-r)?)(?:-sum)?: ", re.MULTILINE)
_SO_FAR: Final = re.compile(r"^Digest so far \([^)]*\): (.*)$", re.MULTILINE)
_EMPTY: Final = "Several things were looked up and told, as was asked. " * 6
"""As long as a model's summary."""

_DIGEST: Final = 3_500


@dataclass(frozen=True, slots=True)
class Writer:
    """Whether it ``writes`` at all; if not, the product's extracts and its mechanical digest stand. ``keeps``: every
    fact, word for word, as many as a digest has room for; else no text has a fact, or a word of one."""

    writes: bool = True
    keeps: bool = False

    def notes(self, request: wire.Request, facts: Facts) -> str:
        """What stands behind an answer."""
        mark, wanted = asked_in(request)
        if not mark or not self.writes:
            return ""
        lines = (f"{record_id}: {self._kept(facts, record_id)} {_EMPTY}" for record_id in wanted)
        return "\n".join(("\n", mark, *lines))

    def answer(self, request: wire.Request, facts: Facts) -> ScriptedResponse:
        """The answer to a call for a summary or a digest."""
        if not self.writes:
            return ScriptedResponse(status=400, error_message="no summaries today")
        asked = "\n\n".join(texts(request.messages[-1].content))
        named = _OF_DIGEST.findall(asked)
        if not named:  # a call for one record
            own = (
                sentence for each in facts.values() for sentence in each if self.keeps and sentence in asked
            )
            return ScriptedResponse(text=f"{' '.join(own)} {_EMPTY}")
        so_far = _SO_FAR.search(asked)
        kept = ((record_id, self._kept(facts, record_id)) for record_id in dict.fromkeys(named))
        said = [f"{record_id}: {told}" for record_id, told in kept if told]
        text = " ".join([*([so_far[1]] if so_far else []), *said]) if said else _EMPTY
        return ScriptedResponse(text=text[-_DIGEST:])

    def _kept(self, facts: Facts, record_id: str) -> str:
        return " ".join(facts.get(record_id, ())) if self.keeps else ""


WRITERS: Final[Mapping[str, Writer]] = {
    "extract": Writer(writes=False),
    "perfect": Writer(keeps=True),
    "adversarial": Writer(),
}
