"""Conversations by clients of OpenAI's API: ``talks.py FOLDER``, in the environment of the folder's lock, without the
project. The packages are imported once: that takes longer than most conversations.

A line of standard input is one conversation, ``{"client", "story"}`` (tests/plugins/openai/clients.py); its line of
standard output what its user saw, ``{"told"}``, or a traceback, ``{"failed"}``. SIGTERM ends it, and it says where it
stood.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import sys
import traceback


def main() -> None:
    faulthandler.register(signal.SIGTERM, chain=True)
    sys.path.insert(0, sys.argv[1])
    clients = importlib.import_module("talk").CLIENTS
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # clients print hints
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                answer = {"told": clients[asked["client"]](asked["story"])}
            except Exception:  # noqa: BLE001 - any is the conversation's
                answer = {"failed": traceback.format_exc()}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
