"""Whole chats within a process, for tests of tools and agents: docs/testing.md. In no Lambda layer."""

from __future__ import annotations

from dualtrack_stack.local.testing.local_chat import Answer, Call, LocalChat, OpenCall, Pause, local_chat
from dualtrack_stack.local.testing.script import ScriptError, calls, fails

__all__ = ["Answer", "Call", "LocalChat", "OpenCall", "Pause", "ScriptError", "calls", "fails", "local_chat"]
