"""A chat's execution: its name is the chat's id, its input what the steps of the workflow are asked to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualtrack.requests import ChatRef
    from dualtrack.runtime.executions import Executions


def start_execution(executions: Executions, ref: ChatRef) -> None:
    """Start the chat's execution; one that exists is as good as started."""
    given = {"user": ref.user, "chat_id": ref.chat_id, "conversation_id": ref.conversation_id, "turn": 0}
    executions.start(ref.chat_id, given)


def stop_execution(executions: Executions, chat_id: str) -> None:
    """Stop it if it runs."""
    executions.stop(chat_id, "The chat has ended.")


def owner_of(executions: Executions, chat_id: str) -> str:
    """The user whose chat it is, by its execution's input; empty where that is not kept (any more)."""
    given = executions.given(chat_id)
    return str(given["user"]) if given else ""
