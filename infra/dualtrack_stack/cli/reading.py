"""Lines that a person types at a terminal, with the line editor; questions, and decisions in between."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from dualtrack_stack.cli.command import Termination

if TYPE_CHECKING:
    from types import FrameType

    from prompt_toolkit import PromptSession


def read(prompt: PromptSession[str], before: str = "> ", default: str = "") -> str:
    """Read a line. Raises EOFError, KeyboardInterrupt, and `Termination` after the terminal is restored."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        if prompt.app.loop is None or not prompt.app.is_running:
            raise Termination
        prompt.app.loop.call_soon_threadsafe(lambda: prompt.app.exit(exception=Termination()))

    earlier = signal.signal(signal.SIGTERM, terminate)
    try:
        return prompt.prompt(before, default=default)
    finally:
        signal.signal(signal.SIGTERM, earlier)
