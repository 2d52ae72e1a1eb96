"""A call of the API by key beside one by token: ``uv run --group test python -m bench.key_calls``.

Requests of the tables by operation, and the function's CPU without that of the tables' engine: the least of some
rounds. Then the CPU of reading and hashing a key, and of verifying an RS256 token, which the gateway does for ``/v1``,
and `stream` itself. ``--token-only``: what also runs in a checkout from before there were keys.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.clients.api_client import Api, make_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

ROUNDS, CALLS = 12, 40
TARGET = "/v1/credits"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--token-only", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    lines = ["| call of `GET /v1/credits` | requests of the tables | CPU, ms |", "|---|---|---:|"]
    with Path(os.devnull).open("w") as nothing, make_api() as api:
        callers = {"by token": api.of_new_user()}
        if not options.token_only:
            key = api.make_key("read")["key"]
            service = api.make_key("read", acts_for="any")["key"]
            callers |= {"by key": api.by_key(key), "by a service's key": api.by_key(service, "ann")}
        least = dict.fromkeys(callers, float("inf"))
        for _ in range(ROUNDS):
            for name, caller in callers.items():
                caller.world.clock.now += 60
                with redirect_stdout(nothing):
                    least[name] = min(least[name], _cpu(caller))
        for name, caller in callers.items():
            lines.append(f"| {name} | {_requests(caller)} | {least[name]:.2f} |")
    print("\n".join(lines))
    if not options.token_only:
        print(f"\nA key is read and hashed in {_of_key():.1f} µs, a token verified in {_of_token():.0f} µs.")


class _Requests:
    """Counts a caller's requests of the tables, and the CPU between a request and its answer, which is the engine's."""

    def __init__(self, caller: Api) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds = self._begun = 0.0
        self._events = caller.world.stores.chats.client.meta.events

    def _before(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1
        self._begun = time.process_time()

    def _after(self, **_: Any) -> None:
        self.seconds += time.process_time() - self._begun

    def __enter__(self) -> Self:
        self._events.register("before-call.dynamodb", self._before, unique_id="before")
        self._events.register("after-call.dynamodb", self._after, unique_id="after")
        return self

    def __exit__(self, *_: object) -> None:
        self._events.unregister("before-call.dynamodb", unique_id="before")
        self._events.unregister("after-call.dynamodb", unique_id="after")


def _cpu(caller: Api) -> float:
    """Milliseconds of a call. The first one begins the minute."""
    caller.call("GET", TARGET)
    event = caller.event("GET", TARGET)
    begun = time.process_time()
    with _Requests(caller) as requests:
        for _ in range(CALLS):
            caller.module.handler(event, caller.context)
    return 1_000 * (time.process_time() - begun - requests.seconds) / CALLS


def _requests(caller: Api) -> str:
    caller.call("GET", TARGET)
    with _Requests(caller) as requests:
        caller.call("GET", TARGET)
    return ", ".join(f"{count} {name}" for name, count in sorted(requests.calls.items()))


def _of_key() -> float:
    from dualtrack.api.key_format import new_key, new_key_id, parse_key

    key = new_key(new_key_id())
    return _least(lambda: parse_key(key))


def _of_token() -> float:
    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    claims = {"sub": "ann", "token_use": "id", "iss": "i", "aud": "a", "exp": int(time.time()) + 3_600}
    token, public = jwt.encode(claims, secret, algorithm="RS256"), secret.public_key()
    return _least(lambda: jwt.decode(token, public, ["RS256"], audience="a", issuer="i"))


def _least(call: Callable[[], object]) -> float:
    """Microseconds of CPU."""
    least = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(1_000):
            call()
        least = min(least, time.process_time() - begun)
    return least * 1_000


if __name__ == "__main__":
    main()
