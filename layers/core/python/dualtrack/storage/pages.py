"""Pages of a list and their cursors: an opaque position in the list that a client sends back."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from dualtrack.errors import invalid_request

if TYPE_CHECKING:
    from dualtrack.answers import ListPage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list, and the cursor of the next part; an empty cursor means that this is the last."""

    items: tuple[T, ...]
    cursor: str = ""

    @property
    def rest(self) -> ListPage:
        """``{"cursor"?}``, for an answer with the items."""
        return {"cursor": self.cursor} if self.cursor else {}


def cursor_of(position: str) -> str:
    """The cursor for a position."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def position_of(cursor: str) -> str:
    """The position of a cursor; 400 if it is invalid. The reader checks that it belongs to this list."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise foreign_cursor() from None


def foreign_cursor() -> Exception:
    """The refusal of a cursor that does not belong to this list."""
    return invalid_request("The cursor does not belong to this list.")
