"""A TCP relay to the stack like a line that loses packets: slow, with stalls, its connections reset at drawn places."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Final

from tests.drivers.cuttable import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator

RESET_SHARE: Final = 0.35
"""How many directions of a connection end before they have passed all."""
FARTHEST: Final = 20_000
"""Bytes after which a direction ends at the latest, if it does; near places are as likely as far ones."""
PACKET: Final = 1_400
STALL_SHARE: Final = 0.08
STALL_SECONDS: Final = 0.3
BYTES_A_SECOND: Final = 400_000


class LossyLine(Relay):
    """Passes everything until ``begin``; what it then does to each connection is drawn from its seed.

    ``resets``: how many connections were reset.
    """

    def __init__(self, target: str, seed: str) -> None:
        self._seed = seed
        self._numbers = itertools.count()
        self._lossy = threading.Event()
        self.resets = 0
        super().__init__(target)

    def begin(self) -> None:
        """Lose packets from now on; connections from before end."""
        self._lossy.set()
        self.cut()
        self.mend()

    def end(self) -> None:
        """Pass everything on new connections."""
        self._lossy.clear()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        if not self._lossy.is_set():
            super()._pass(source, sink)
            return
        drawn = random.Random(f"{self._seed} {next(self._numbers)}")
        left = int(math.exp(drawn.uniform(0, math.log(FARTHEST)))) if drawn.random() < RESET_SHARE else 0
        with contextlib.suppress(OSError):
            while data := source.recv(drawn.randint(1, PACKET)):
                if 0 < left <= len(data):
                    sink.sendall(data[: left - 1])
                    self._reset(source, sink)
                    return
                left = max(left - len(data), 0)
                sink.sendall(data)
                stalls = drawn.random() < STALL_SHARE
                time.sleep(len(data) / BYTES_A_SECOND + (drawn.uniform(0, STALL_SECONDS) if stalls else 0))
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _reset(self, source: socket.socket, sink: socket.socket) -> None:
        """Let both be closed with a reset; what waits for either ends."""
        self.resets += 1
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RD)


@contextlib.contextmanager
def losing(target: str, seed: str) -> Iterator[LossyLine]:
    """A line to a URL while the block runs."""
    line = LossyLine(target, seed)
    try:
        yield line
    finally:
        line.close()
