"""Chats on the deployed stack while the model's service is busy: half of them meet 429 with ``retry-after``, half 529.

Each has one round of tools.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat
from dualtrack.clock import epoch_of

from tests.clients.stack_client import chats_of, wait_for
from tests.drivers.invariants import ENDED, account_faults, chat_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.storage.chats import Chat
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.stack_client import Root

RETRY_AFTER: Final = 2
"""Seconds that the service asks for with 429."""

PATIENCE: Final = 300.0
"""Seconds until every chat must have ended; far more than a working stack needs."""


@dataclass(frozen=True, slots=True)
class BusyRun:
    """What happened. ``calls``: of the model by turns, answered or refused; ``paid_seconds``: of the functions, as the
    executions' histories have them; ``seconds``: the longest from question to end.
    """

    chats: int
    ended: Counter[str]
    charged: int
    calls: int
    waits: int
    states: int
    paid_seconds: float
    seconds: float
    wrong: tuple[str, ...]


@contextmanager
def busy(model: OfflineModel) -> Iterator[None]:
    """The refusals, for the chats of every crowd."""
    trouble: dict[str, Any] = {"always": True, "kind": "turn"}
    model.script.add(
        {**trouble, "match": "busy-even", "status": 429, "retry_after": RETRY_AFTER},
        {**trouble, "match": "busy-odd", "status": 529},
    )
    yield
    model.script.clear()


@dataclass(frozen=True, slots=True)
class Crowd:
    """Chats of one user."""

    root: Root
    user: str
    name: str

    def ask(self, chats: int, arriving: float) -> None:
        """Start this many chats, spread evenly over the seconds."""
        began = time.monotonic()
        for number in range(chats):
            time.sleep(max(0.0, began + arriving * number / chats - time.monotonic()))
            half = "odd" if number % 2 else "even"
            asked = NewChat(self.user, f"{self.name} busy-{half}: kit_echo text=hello")
            start_chat(self.root.stores(), self.root.executions(), asked, None)

    def wait(self) -> None:
        """Until every chat has ended."""
        stores = self.root.stores()
        wait_for(lambda: all(chat.status in ENDED for chat in chats_of(stores, self.user)), PATIENCE)

    def calls(self, model: OfflineModel) -> int:
        """Turns that the model was asked for so far."""
        bodies = [request.body for request in model.requests if request.path == "/v1/messages"]
        turns = [json.dumps(body["messages"]) for body in bodies if body.get("stream")]
        return sum(f"{self.name} busy-" in turn for turn in turns)

    def counted(self, model: OfflineModel) -> BusyRun:
        """What happened to them."""
        stores = self.root.stores()
        chats = chats_of(stores, self.user)
        histories = [self.root.history(chat.chat_id) for chat in chats]
        wrong = [fault for chat in chats for fault in chat_faults(stores, chat)]
        return BusyRun(
            chats=len(chats),
            ended=Counter(chat.status for chat in chats),
            charged=sum(chat.credits_used for chat in chats),
            calls=self.calls(model),
            waits=sum(_kinds(history)["WaitStateEntered"] for history in histories),
            states=sum(_states(history) for history in histories),
            paid_seconds=sum(_paid_seconds(history) for history in histories),
            seconds=max(_seconds(chat) for chat in chats),
            wrong=(*wrong, *account_faults(stores, self.user, chats)),
        )


def crowd(root: Root) -> Crowd:
    """A new user with enough credits."""
    name = f"crowd-{uuid.uuid4().hex[:12]}"
    user = root.stack.token(name).user_id
    root.grant(user)
    return Crowd(root, user, name)


def _kinds(history: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(str(event["type"]) for event in history)


def _states(history: Sequence[dict[str, Any]]) -> int:
    """Every state that was entered; retries do not count. The emulator does not list those inside the Map: add one for
    its one call.
    """
    kinds = _kinds(history)
    return (
        sum(times for kind, times in kinds.items() if kind.endswith("StateEntered"))
        + kinds["MapStateEntered"]
    )


def _paid_seconds(history: Sequence[dict[str, Any]]) -> float:
    """Summed over the attempts of tasks, from start to end. One runs at a time."""
    paid, since = 0.0, 0.0
    for event in history:
        at = event["timestamp"].timestamp()
        if event["type"] == "TaskScheduled":
            since = at
        elif event["type"] in ("TaskSucceeded", "TaskFailed"):
            paid += at - since
    return paid


def _seconds(chat: Chat) -> float:
    return epoch_of(chat.ended_at) - epoch_of(chat.created_at)
