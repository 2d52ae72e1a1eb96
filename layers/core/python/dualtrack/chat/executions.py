"""A chat's executions, by number (`Chat.execution`): their input is a `ChatRef` for the steps of the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.ids import execution_name

if TYPE_CHECKING:
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat


def start_execution(executions: Executions, chat: Chat) -> None:
    """Start the chat's current execution; does nothing if it exists. Its input has the time of a model call too, from
    which the state machine has the time of the step that makes it."""
    execution_input = {
        "user": chat.user,
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "turn": chat.entry,
        "call_seconds": chat.call_seconds,
    }
    executions.start(execution_name(chat.chat_id, chat.execution), execution_input)


def stop_execution(executions: Executions, chat_id: str, number: int) -> None:
    """Stop an execution of the chat if it is running."""
    executions.stop(execution_name(chat_id, number), "The chat has ended.")


def status_of(executions: Executions, chat: Chat) -> str | None:
    """The status of the chat's execution (`Executions.status`)."""
    return executions.status(execution_name(chat.chat_id, chat.execution))


def owner_of(executions: Executions, chat_id: str) -> str:
    """The chat's user, from the input of its first execution; empty if Step Functions no longer has it."""
    execution_input = executions.input_of(execution_name(chat_id))
    return str(execution_input["user"]) if execution_input else ""
