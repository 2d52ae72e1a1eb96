"""The words that stored values and the API's answers share, each from a closed set."""

from __future__ import annotations

from typing import Literal

Role = Literal["user", "assistant"]
"""A record's author."""

RecordType = Literal["message", "tool_call", "summary", "digest"]

Shortened = Literal["note", "extract", "summary"]
Form = Literal["whole", "note", "extract", "summary"]

Track = Literal["full", "summarised"]

ChatStatus = Literal["running", "paused", "answered", "done", "failed", "cancelled"]
"""Moves only running ⇄ paused, running → answered → done, and running | paused → failed | cancelled (DESIGN 2.5)."""

Stop = Literal[
    "complete",
    "max_turns",
    "insufficient_credits",
    "max_tokens",
    "context_window",
    "timeout",
    "max_cost",
    "refusal",
    "invalid_output",
    "other",
    "cancelled",
]
"""Why an answer ended; `other`: for a reason that is not known here."""

BusyReason = Literal["overloaded", "rate_limited", "unavailable"]
"""Why the model's service takes no call."""

Policy = Literal["dual_track", "window", "tool_rounds"]
"""How an agent's past queries are sent (`dualtrack.profiles.History`)."""

Scope = Literal["chat", "read", "decide", "hooks", "knowledge", "erase", "admin:read", "admin:grant"]
"""What an API key may do; the last two are for keys of administrators."""

PlanName = Literal["free", "pro"]

CapName = Literal["credits_total", "dollars_total", "credits_day", "dollars_day"]
"""Of an API key."""

MovementKind = Literal["hold", "settle", "release", "expire", "grant", "plan", "caps", "cost"]
"""Of a change of a user's credits. `caps`: an API key was made, its caps were changed, or it was revoked; `cost`: what
a chat by a key has cost since it was answered."""

CallKind = Literal["approval", "client_tool", "question"]
"""What a tool call waits for: somebody's leave to run, the client's result, the user's answer."""

DecisionOutcome = Literal["approved", "edited", "answered", "declined", "expired"]
"""What became of such a call; `edited`: approved with another input; `answered`: its result or answer came."""

DecidedBy = Literal["user", "owner", "key", "expired"]
"""Who decided: the chat's user, the owner of the key that the user has, a key, or the end of the pause."""

Effect = Literal["reads", "changes", "destroys"]
"""What a tool does to the world, from the least on."""

CallStatus = Literal["begun", "done", "failed", "declined", "unknown"]
"""Of a tool call; `unknown`: it had begun, and its chat was stopped or its process ended before it had a result."""

ApprovalRule = Literal["never", "always", "writes"]
"""Which calls need approval; `writes`: those of tools that change or destroy something."""

JobStatus = Literal["queued", "running", "done", "failed"]
"""Of a job that changes a corpus."""

FileState = Literal["waiting", "read", "refused"]
"""Of a file of such a job."""

Outcome = Literal["added", "replaced", "skipped"]
"""What an accepted file has changed."""
