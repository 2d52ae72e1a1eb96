"""How much of the running query a model call sent: decided before the call, stored with its turn, and unchanged in
later calls of the query (CONTRACT 6, "The window")."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


Refused = tuple[str, int]
"""A file that the service has refused: its record's id, and its number among the record's images and PDFs, from 0."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How many characters of a result's text and how many of its files are sent, from the first on."""

    characters: int
    files: int = 0


@dataclass(frozen=True, slots=True)
class Cuts:
    """What is sent of the query and its results.

    ``results``: by call id; a result without a cut is sent up to the profile's limit, with as many files as a request
    allows. ``query``: characters, ``attachments``: files of the query; None is all of them. ``refused``:
    files that the service has named in a refusal; ``without_files``: it has refused the request, and some file may be
    why.
    """

    results: Mapping[str, Cut] = field(default_factory=lambda: MappingProxyType({}))
    query: int | None = None
    attachments: int | None = None
    without_thinking: bool = False
    without_files: bool = False
    refused: frozenset[Refused] = frozenset()

    def with_results(self, results: Mapping[str, Cut]) -> Cuts:
        """The cuts with those of these results replaced."""
        return replace(self, results=MappingProxyType({**self.results, **results}))


@dataclass(frozen=True, slots=True)
class Sending:
    """A call's cuts, our cautious estimate of its input, and the service's count (0: none), in tokens."""

    cuts: Cuts = field(default_factory=Cuts)
    estimated: int = 0
    reported: int = 0


def sending_json(sending: Sending) -> dict[str, Any]:
    """The form in which a turn's item stores it."""
    cuts = sending.cuts
    return {
        "results": {call_id: [cut.characters, cut.files] for call_id, cut in cuts.results.items()},
        "query": cuts.query,
        "attachments": cuts.attachments,
        "without_thinking": cuts.without_thinking,
        "without_files": cuts.without_files,
        "refused": [list(file) for file in sorted(cuts.refused)],
        "estimated": sending.estimated,
        "reported": sending.reported,
    }


def sending_of(data: Mapping[str, Any] | None) -> Sending:
    """The sending from a turn's item; turns of release 1 have none."""
    if data is None:
        return Sending()
    results = {call_id: Cut(*cut) for call_id, cut in data["results"].items()}
    cuts = Cuts(
        MappingProxyType(results),
        data["query"],
        data["attachments"],
        data["without_thinking"],
        data["without_files"],
        frozenset((record_id, number) for record_id, number in data.get("refused", ())),
    )
    return Sending(cuts, data["estimated"], data["reported"])
