"""Pages of a list and their cursors: a place in the list that a client hands back unread."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from dualtrack.errors import invalid_request


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a list, and where it goes on; an empty cursor means that it ends here."""

    items: tuple[dict[str, Any], ...]
    cursor: str = ""

    def body(self, name: str) -> dict[str, Any]:
        """``{name: [...], "cursor"?}``."""
        return {name: list(self.items)} | ({"cursor": self.cursor} if self.cursor else {})


def cursor_of(place: str) -> str:
    """The cursor that stands for a place."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def place_of(cursor: str) -> str:
    """The place behind a cursor; 400 for what is none. That it is one of this list the reader checks."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise foreign_cursor() from None


def foreign_cursor() -> Exception:
    """The refusal of a cursor that this list has not given."""
    return invalid_request("The cursor is not one of this list.")
