"""Runs a module as a child that never outlives its parent: ``python -m dualtrack_stack.local.child MODULE ARG…``."""

from __future__ import annotations

import os
import runpy
import sys

from dualtrack_stack.local import lifeline


def main() -> None:
    """Lead a process group, watch the parent, become the module."""
    if os.getpid() != os.getpgrp():
        os.setpgrp()
    lifeline.attach()
    module, sys.argv = sys.argv[1], sys.argv[1:]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        lifeline.end_group()


if __name__ == "__main__":
    main()
