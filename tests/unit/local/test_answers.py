"""Whether a server answers, asked by the stack's start."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local import stack
from dualtrack_stack.local.processes import ChildDied
from dualtrack_stack.local.stack import HOST, answers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A port that takes connections, whoever answers them."""
    with socket.create_server((HOST, 0)) as server:
        yield server


def test_a_slow_server_is_asked_once(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "_ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(stack, "_LOOK_SECONDS", 0.01)
    looks, enough = [0], threading.Event()

    def look() -> None:
        looks[0] += 1
        if looks[0] == 5:
            enough.set()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            enough.wait()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    server = threading.Thread(target=serve)
    server.start()
    port = listener.getsockname()[1]
    assert answers(port, "/", look)
    server.join()
    assert looks[0] >= 5
    listener.settimeout(0)
    with pytest.raises(BlockingIOError):  # nobody else has asked
        listener.accept()


def test_who_waits_is_told_of_a_dead_child(listener: socket.socket) -> None:
    def look() -> None:
        raise ChildDied("front ended with code 1")

    with pytest.raises(ChildDied):
        answers(listener.getsockname()[1], "/", look)


def test_without_a_look_an_attempt_ends(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "_ANSWER_SECONDS", 0.01)
    assert not answers(listener.getsockname()[1], "/")
