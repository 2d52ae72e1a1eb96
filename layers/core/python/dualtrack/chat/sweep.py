"""The sweep: starts or ends chats that are stuck (DESIGN 2.5). It walks the sparse index of open chats; of paused
ones it reads those whose pause must end.

no execution of its name       it was admitted but not started: start it
past its deadline              end the chat, then stop the execution
its execution has ended        end the chat (timeouts and crashes bypass every Catch)
its execution is running       leave it
its pause has ended            its open calls count as not decided, and it goes on

A chat must not delay the others, whatever it contains: each has a time limit, and later sweeps take a chat that one
could not end last. Each try is written down before it begins, so a chat that crashes the process is known too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.end_chat import CAP_REACHED, INCOMPLETE, TIMED_OUT, end_chat, failure_of
from dualtrack.chat.executions import start_execution, status_of, stop_execution
from dualtrack.chat.expire_pause import expire_pause
from dualtrack.errors import ApiError, Gone
from dualtrack.requests import ChatRef
from dualtrack.runtime.time_limit import within
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.chat.end_chat import OnEnd
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ChatStores

STARTING_SECONDS: Final = 20
"""The request that admitted a chat this young may still be about to start it."""

ONE_CHAT_SECONDS: Final = 15.0
"""Time limit of one chat in a sweep: ending one takes well below a second, with 300 results some seconds."""

_RESERVE_SECONDS: Final = 5.0
"""Part of a sweep's time that is reserved for its report."""


@dataclass(frozen=True, slots=True)
class Swept:
    """Numbers of chats of one sweep; ``started`` counts those as well that go on after a pause. Not ``complete`` if its
    time ran out before it had checked all."""

    seen: int = 0
    started: int = 0
    ended: int = 0
    complete: bool = True


def sweep(
    stores: ChatStores,
    executions: Executions,
    seconds: float,
    one_chat: float = ONE_CHAT_SECONDS,
    ended: OnEnd = lambda *_: None,
) -> Swept:
    """Check every open chat once, within ``seconds``. Idempotent.

    A chat that raises an error, or takes longer than ``one_chat`` seconds, does not delay the others: its error is
    raised at the end. The next sweep does what this one has no time for. ``ended`` is called for each chat that the
    sweep ends.
    """
    ends = time.monotonic() + seconds - _RESERVE_SECONDS
    outcomes: list[str] = []
    troubles: list[Exception] = []
    complete = True
    for check in _checks(stores, executions, ended):
        left = ends - time.monotonic()
        if left <= 0:
            complete = False
            break
        try:
            outcomes.append(within(min(left, one_chat), check, "sweep"))
        except Exception as error:  # noqa: BLE001 - raised below
            troubles.append(error)
    seen = [outcome for outcome in outcomes if outcome not in ("gone", "later")]
    if troubles:
        raise ExceptionGroup(f"{len(troubles)} of {len(troubles) + len(seen)} open chats", troubles)
    return Swept(len(seen), seen.count("started"), seen.count("ended"), complete)


def _checks(stores: ChatStores, executions: Executions, ended: OnEnd) -> Iterator[Callable[[], str]]:
    """Checks of each open chat, oldest first; those that earlier sweeps could not end come last."""
    later: list[Chat] = []
    for ref in stores.chats.open_chats():
        yield partial(_check_listed, stores, executions, ended, ref, later)
    for ref in stores.chats.overdue_pauses(stores.clock()):
        yield partial(_end_pause, stores, executions, ended, ref)
    for chat in sorted(later, key=lambda chat: chat.sweeps):
        yield partial(_check, stores, executions, ended, chat)


def _check_listed(
    stores: ChatStores, executions: Executions, ended: OnEnd, ref: ChatRef, later: list[Chat]
) -> str:
    chat = stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status not in ("running", "answered"):
        return "gone"
    if chat.sweeps:
        later.append(chat)
        return "later"
    return _check(stores, executions, ended, chat)


def _check(stores: ChatStores, executions: Executions, ended: OnEnd, chat: Chat) -> str:
    act = _needed(stores, executions, ended, chat)
    if act is None:
        return ""
    try:
        stores.chats.count_sweep(chat)
    except ConditionFailed:
        return "gone"
    return act()


def _needed(stores: ChatStores, executions: Executions, ended: OnEnd, chat: Chat) -> Callable[[], str] | None:
    """What has to be done with the chat, if anything."""
    now = stores.clock()
    if now >= chat.deadline:
        return partial(_end_overdue, stores, executions, ended, chat)
    status = status_of(executions, chat)
    if status == "RUNNING":
        return None
    if status is not None:
        return partial(_end_orphan, stores, ended, chat, status)
    if now < chat.deadline - chat.times.chat + STARTING_SECONDS:
        return None
    return partial(_start, executions, chat)


def _end_overdue(stores: ChatStores, executions: Executions, ended: OnEnd, chat: Chat) -> str:
    """End the chat, then stop its execution. In the other order `abort` would end the chat, and it only knows that
    the execution was stopped. The closed log fences off steps that still run.
    """
    end_chat(stores, _ref(chat), TIMED_OUT, ended)
    stop_execution(executions, chat.chat_id, chat.execution)
    return "ended"


def _end_pause(stores: ChatStores, executions: Executions, ended: OnEnd, ref: ChatRef) -> str:
    """A chat that cannot be read any more ends, and so does one that its key's cap leaves too little to go on."""
    chat = stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status != "paused":
        return "gone"
    try:
        return "started" if expire_pause(stores, executions, chat) else ""
    except Gone:
        end_chat(stores, _ref(chat), INCOMPLETE, ended)
    except ApiError:
        end_chat(stores, _ref(chat), CAP_REACHED, ended, chat.execution)
    return "ended"


def _end_orphan(stores: ChatStores, ended: OnEnd, chat: Chat, status: str) -> str:
    end_chat(stores, _ref(chat), failure_of({"Error": status}), ended, chat.execution)
    return "ended"


def _start(executions: Executions, chat: Chat) -> str:
    start_execution(executions, chat)
    return "started"


def _ref(chat: Chat) -> ChatRef:
    return ChatRef(chat.user, chat.chat_id, chat.conversation_id, chat.entry)
