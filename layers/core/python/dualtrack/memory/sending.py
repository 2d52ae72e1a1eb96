"""How much of the running query a model call sent: decided before the call, stored with its turn, and unchanged in
later calls of the query (CONTRACT 6, "The window")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dualtrack.codec import stored

RefusedFile = tuple[str, int]
"""A file that the service has refused: its record's id, and its number among the record's images and PDFs, from 0."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class ResultCut:
    """How many characters of a result's text and how many of its files are sent, from the first on."""

    characters: int
    files: int = 0


@stored
@dataclass(frozen=True, slots=True)
class Cuts:
    """What is sent of the query and its results.

    ``results``: by call id; a result without a cut is sent up to the profile's limit, with as many files as a request
    allows. ``query``: characters, ``attachments``: files of the query; None is all of them. ``refused``:
    files that the service has named in a refusal; ``without_files``: it has refused the request, and some file may be
    why.
    """

    results: Mapping[str, ResultCut] = field(default_factory=lambda: MappingProxyType({}))
    query: int | None = None
    attachments: int | None = None
    without_thinking: bool = False
    without_files: bool = False
    refused: frozenset[RefusedFile] = frozenset()

    def with_results(self, results: Mapping[str, ResultCut]) -> Cuts:
        """The cuts with those of these results replaced."""
        return replace(self, results=MappingProxyType({**self.results, **results}))

    def goes_on_from(self, earlier: Cuts) -> bool:
        """Whether what was sent with the earlier cuts is sent alike with these."""
        is_same = replace(self, results=earlier.results) == earlier
        return is_same and earlier.results.items() <= self.results.items()


@stored
@dataclass(frozen=True, slots=True)
class Sending:
    """A call's cuts, our cautious estimate of its input, and the service's count (0: none), in tokens. ``asked``: the
    records on which its last message asks for notes (`dualtrack.memory.notes`)."""

    cuts: Cuts = field(default_factory=Cuts)
    estimated: int = 0
    reported: int = 0
    asked: tuple[str, ...] = ()
