"""A chat's execution: its name is the chat's id, its input is a `ChatRef` for the steps of the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualtrack.requests import ChatRef
    from dualtrack.runtime.executions import Executions


def start_execution(executions: Executions, ref: ChatRef) -> None:
    """Start the chat's execution; does nothing if it exists."""
    execution_input = {
        "user": ref.user,
        "chat_id": ref.chat_id,
        "conversation_id": ref.conversation_id,
        "turn": 0,
    }
    executions.start(ref.chat_id, execution_input)


def stop_execution(executions: Executions, chat_id: str) -> None:
    """Stop it if it is running."""
    executions.stop(chat_id, "The chat has ended.")


def owner_of(executions: Executions, chat_id: str) -> str:
    """The chat's user, from the input of its execution; empty if Step Functions no longer has it."""
    execution_input = executions.input_of(chat_id)
    return str(execution_input["user"]) if execution_input else ""
