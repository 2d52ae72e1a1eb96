"""Time from the model's first token to the browser's first text, on the local stack.

``uv run --group test python -m bench.page_first_text [ROUNDS]``. The model and the browser are on this machine,
so one clock serves both. Needs Chromium (``bash .ci/install_chromium.sh``).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.stack import LocalStack

from tests.clients.browser import chromium
from tests.clients.page_reader import Reader
from tests.clients.stack_client import PATIENCE, Root

if TYPE_CHECKING:
    from dualtrack_stack.local.offline_model.server import OfflineModel
    from playwright.sync_api import Browser

TEXT = "word " * 60
THINKING = (1.0, 4.0)
"""Seconds before the model's first token: readers poll less often after a pause."""

WATCH = """() => {
    window.firstText = null;
    const look = () => {
        const answers = document.querySelectorAll("li.exchange:last-child .answer");
        if (!window.firstText && answers.length && answers[0].textContent.includes("word")) window.firstText = Date.now() / 1000;
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def measure(browser: Browser, root: Root, model: OfflineModel, thinking: float, rounds: int) -> list[float]:
    """Seconds, one figure a round; each round is a new conversation."""
    delays = []
    reader = Reader(browser.new_page(), f"bench-{uuid.uuid4().hex[:8]}", root.stack.url)
    reader.sign_in()
    root.grant(root.stack.token(reader.name).user_id)
    for _ in range(rounds):
        reader.page.get_by_role("button", name="New conversation").click()
        reader.sees("What would you like to know?")
        reader.page.evaluate(WATCH)
        model.script.clear()
        model.script.add({"match": "turn", "text": TEXT, "delay_first": thinking, "delay_chunk": 0.02})
        before = len(model.requests)
        reader.send("Say something.")
        _await_request(model, before)
        first_token = time.time() + thinking + 0.02
        reader.page.wait_for_function("() => window.firstText")
        delays.append(float(reader.page.evaluate("window.firstText")) - first_token)
        reader.exchange("done")
    return delays


def _await_request(model: OfflineModel, before: int) -> None:
    """Wait until the model is called; fails for a chat that was refused (no credits, a limit)."""
    deadline = time.monotonic() + PATIENCE
    while len(model.requests) == before:
        if time.monotonic() > deadline:
            raise RuntimeError("the model was not asked: was the chat refused?")
        time.sleep(0.001)


def main() -> None:
    """Print the median and the extremes."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with (
        serve_offline_model() as model,
        tempfile.TemporaryDirectory() as state_dir,
        LocalStack(state_dir, environment={"ANTHROPIC_BASE_URL": model.url}) as stack,
        chromium() as browser,
    ):
        root = Root(stack, Path(state_dir))
        measure(browser, root, model, THINKING[0], 1)  # the functions' cold starts
        for thinking in THINKING:
            delays = sorted(measure(browser, root, model, thinking, rounds))
            low, middle, high = (
                round(1000 * delay) for delay in (delays[0], statistics.median(delays), delays[-1])
            )
            print(f"first token after {thinking:g} s: first text {middle} ms later ({low} to {high})")


if __name__ == "__main__":
    main()
