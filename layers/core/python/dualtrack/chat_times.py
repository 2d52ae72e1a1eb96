"""How long the parts of a chat may take: one table, from what its model calls may write (CONTRACT 7). Pure.

    call        what the tokens of one call need at 40 a second, from 2 to 14 minutes; pinned with the chat
    function    the longest call and 20 s: `turn` serves every profile, and Lambda ends everything after 15 minutes
    state       call + 30 s, from the input of the execution
    last call   call + 120 s before the deadline: the call, its record, its track
    chat        11 minutes + last call: its lease, its deadline, the sweep
    hold        chat + 10 minutes (`dualtrack.credits.account`)
    answer      the longest call and 30 s: how long the stream of an answer follows a chat
    lease       answer + 20 s; the function of that stream has 5 s more, the gateway as much

    tokens of a call   call   state   last call   chat
      up to 4,800      120     150         240     900
           10,000      250     280         370   1,030
      from 33,600      840     870         960   1,620

A call that takes as long as it may is cut where it is, as one that `max_tokens` cuts. So it is neither lost nor made
again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

TOKENS_A_SECOND: Final = 40
"""What the slowest model in use writes."""

LEAST_CALL_SECONDS: Final = 120
MOST_CALL_SECONDS: Final = 14 * 60

INVOCATION_SECONDS: Final = 15 * 60
"""Lambda's own limit: no step that has begun writes later than this."""

_BEGINS_SECONDS: Final = 11 * 60
"""How long a chat may go on before its next call is the last one."""

_BEHIND_CALL_SECONDS: Final = 120
_STATE_SECONDS: Final = 30
_FUNCTION_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class ChatTimes:
    """The seconds of a chat's parts, from those of one ``call``."""

    call: int = LEAST_CALL_SECONDS

    @property
    def state(self) -> int:
        """Of the state that makes the call; ``chat.asl.json`` adds the same to the call of its input."""
        return self.call + _STATE_SECONDS

    @property
    def last_call(self) -> int:
        """Before the deadline: a call that begins in this time is the last one."""
        return self.call + _BEHIND_CALL_SECONDS

    @property
    def chat(self) -> int:
        """Of the chat, and anew after each pause."""
        return _BEGINS_SECONDS + self.last_call

    @property
    def longer(self) -> int:
        """How much longer it may take than most chats."""
        return self.chat - CHAT_SECONDS


def call_seconds(tokens: int) -> int:
    """How long a call may take that may write so many tokens, thinking included."""
    return min(max(seconds_needed(tokens), LEAST_CALL_SECONDS), MOST_CALL_SECONDS)


def seconds_needed(tokens: int) -> int:
    """How long so many tokens take, without limits."""
    return math.ceil(tokens / TOKENS_A_SECOND)


CHAT_SECONDS: Final = _BEGINS_SECONDS + LEAST_CALL_SECONDS + _BEHIND_CALL_SECONDS
"""How long most chats may take: those whose calls write no more than two minutes."""

LONGEST: Final = ChatTimes(MOST_CALL_SECONDS)

TURN_SECONDS: Final = MOST_CALL_SECONDS + _FUNCTION_SECONDS
"""Of the function that makes the calls of every profile."""

ANSWER_SECONDS: Final = MOST_CALL_SECONDS + 30
"""How long the stream of an answer follows a chat: its longest call, and what comes before its first byte."""

ANSWER_LEASE_SECONDS: Final = ANSWER_SECONDS + 20
ANSWER_FUNCTION_SECONDS: Final = ANSWER_LEASE_SECONDS + 5
"""Of the function and of the gateway, which ends every response after 15 minutes (API Gateway Developer Guide,
"Response transfer mode")."""
