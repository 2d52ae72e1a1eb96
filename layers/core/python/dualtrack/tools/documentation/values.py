"""The values that pass between the stages, all frozen, and the errors of the search.

SearchError
└── Context7Error          Context7 refused or did not answer; the message is for the model
    ├── LibraryUnavailable   this library is not available; another candidate may be
    └── TryLater             202, 429, 5xx: the same request may work later
"""

from __future__ import annotations

from dataclasses import dataclass


class SearchError(Exception):
    """Base of the search's own errors. The message is written for the model."""


class Context7Error(SearchError):
    """Context7 refused the request or cannot be reached. ``look_at``: what the operator should check, for the log."""

    look_at: str = ""


class LibraryUnavailable(Context7Error):
    """Context7 has nothing usable for this library (202, 404, 422, empty)."""


class TryLater(Context7Error):
    """Overloaded or rate limited; ``seconds`` is Context7's ``Retry-After``, if it sent one."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class DocumentationRequest:
    """The original question, the product that it is about, and the topic within that."""

    question: str
    library: str
    topic: str


@dataclass(frozen=True, slots=True)
class LibraryMatch:
    """A result of Context7's search. ``trust`` is 0 to 10, ``benchmark`` 0 to 100."""

    id: str
    title: str
    description: str = ""
    state: str = "finalized"
    trust: float = 0.0
    benchmark: float = 0.0
    snippets: int = 0


@dataclass(frozen=True, slots=True)
class DocSection:
    """A section of documentation: heading, body in Markdown, address."""

    title: str
    text: str
    url: str = ""

    @property
    def searchable(self) -> str:
        """Heading and body, as they are indexed and embedded."""
        return f"{self.title}\n{self.text}"
