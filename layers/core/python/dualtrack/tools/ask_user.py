"""``ask_user``: a question to the user. A call pauses the chat until it is answered; no function runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import MaxLen, MinLen

from dualtrack import tool
from dualtrack.tool_values import Injected

if TYPE_CHECKING:
    from dualtrack.tool_values import ToolKind


class User(Injected):
    """Whom only the client reaches."""

    kind: ClassVar[ToolKind] = "question"


@tool(effect="reads")
def ask_user(
    question: Annotated[
        str, MinLen(1), MaxLen(2_000), "One question, in the user's language and understandable by itself."
    ],
    options: Annotated[
        list[Annotated[str, MinLen(1), MaxLen(200)]],
        MaxLen(10),
        "Short answers to choose from, if there are likely ones. The user may answer something else.",
    ] = [],  # noqa: B006 - never called
    *,
    user: User,
) -> str:
    """Asks the user one question, waits for the answer, and returns it in the user's words. Use it when you cannot go
    on well without something that only the user knows or decides: a missing detail, a choice between ways that lead to
    different results. Do not ask for what you can find with other tools, for approval of a tool call, or whether your
    answer is welcome. Ask all that you need in one turn.
    """
    raise AssertionError(f"{user} answers {question!r} with one of {options}, or otherwise")
