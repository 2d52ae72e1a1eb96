"""Runs a program as a child of ``dualtrack_stack.local.child``: ``… dualtrack_stack.cli.aws.other_program PROGRAM
ARG…``."""

from __future__ import annotations

import signal
import subprocess
import sys

if __name__ == "__main__":
    # unwinds, so that the program ends too, and `dualtrack_stack.local.child` ends its children
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # its stdin only shows whether the parent is alive; it is not input for the program
    sys.exit(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL))
