"""The values that pass between the stages, all frozen, and the errors of the search.

SearchError
├── Context7Error          Context7 said no (or nothing): message for the model
│   ├── LibraryUnavailable   this library cannot be had; another candidate may
│   └── TryLater             202, 429, 5xx: the same request may work later
└── Degraded               an optional stage could not be carried out; the search goes on without it
"""

from __future__ import annotations

from dataclasses import dataclass


class SearchError(Exception):
    """Base of the search's own errors. The message is written for the model."""


class Context7Error(SearchError):
    """Context7 refused the request or cannot be reached."""


class LibraryUnavailable(Context7Error):
    """Context7 has nothing usable for this one library (202, 404, 422, empty)."""


class TryLater(Context7Error):
    """Overloaded or rate limited; ``seconds`` is Context7's ``Retry-After``, if it sent one."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class Degraded(SearchError):
    """An optional stage (understanding, choosing, embeddings, rerank) is left out. The message is a
    short reason for the log, free of user text.
    """


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: the original question, the product it is about, the topic within it."""

    question: str
    library: str
    topic: str


@dataclass(frozen=True, slots=True)
class Library:
    """One result of Context7's search. ``trust`` 0 to 10, ``benchmark`` 0 to 100."""

    id: str
    title: str
    description: str = ""
    state: str = "finalized"
    trust: float = 0.0
    benchmark: float = 0.0
    snippets: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """One section of documentation: heading, body in markdown, where it comes from."""

    title: str
    text: str
    url: str = ""

    @property
    def searchable(self) -> str:
        """Heading and body: what is indexed and embedded."""
        return f"{self.title}\n{self.text}"
