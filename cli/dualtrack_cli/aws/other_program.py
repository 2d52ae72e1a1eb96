"""Runs a program as a child of ``infra.local.child``: ``… dualtrack_cli.aws.other_program PROGRAM ARG…``."""

from __future__ import annotations

import signal
import subprocess
import sys

if __name__ == "__main__":
    # unwinds, so that the program ends too and `infra.local.child` what it has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # what is read from stdin there is whether the parent lives, and no input for the program
    sys.exit(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL))  # noqa: S603
