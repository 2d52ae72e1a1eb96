"""The methods of the gateway: which function each one calls, who may call it, and how it is throttled. Plain values:
nothing here loads the CDK.

API Gateway counts a method that has a limit of its own apart: the stage's limit (``/*/*``) does not hold for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.api.route import EVENTS_PATH, KEY_PATH
from dualtrack.api.streamed import api_at, streamed_apis
from dualtrack.api.table import ROUTES

if TYPE_CHECKING:
    from dualtrack_stack.stages import StageSettings

    Guard = Literal["open", "token", "key"]
    """``open``: nobody is asked who they are; ``token``: the gateway asks the user pool; ``key``: the gateway asks
    nobody, and the function checks the API key, for a plug-in's own API also a token."""

HEALTH: Final = "/health"
PROXY: Final = "/{proxy+}"
OPEN_RATE: Final = 10
OPEN_BURST: Final = 20
"""Limit of an open route for all callers together, requests a second: more than probes need, and too few to use up the
gateway's limit for users. A stage with a lower limit has that.
"""
KEY_RATE_SHARE: Final = 2
KEY_BURST_SHARE: Final = 12
"""A method for API keys has one part in so many of the stage's limits. The gateway counts it apart, so junk there takes
no request from tokens; and all bursts of these methods together are no more than the stage's own, so neither can junk
take the functions' concurrency (tests/infra/test_key_door.py).
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """Requests a second for all callers together; a burst of 0 lets nothing through."""

    rate: float
    burst: int


@dataclass(frozen=True, slots=True)
class GatewayMethod:
    """A method of a resource. ``function``: empty for what the gateway answers itself."""

    path: str
    method: str
    function: str
    guard: Guard

    @property
    def is_limited_apart(self) -> bool:
        """Whether it has a limit of its own."""
        return self.guard != "token"

    def limit(self, stage: StageSettings) -> Limit:
        """Its own, or the stage's, which it then shares."""
        if self.guard == "open":
            return Limit(min(OPEN_RATE, stage.request_rate), min(OPEN_BURST, stage.request_burst))
        if self.guard == "key":
            # a small stage's methods let at least one through, and a closed one's none
            burst = max(stage.request_burst // KEY_BURST_SHARE, min(stage.request_burst, 1))
            return Limit(stage.request_rate / KEY_RATE_SHARE, burst)
        return Limit(stage.request_rate, stage.request_burst)


def key_methods() -> list[tuple[str, str]]:
    """Path and method of what the gateway lets anyone call with a key, or what looks like one: named one by one,
    because the limits of a method do not apply to ``ANY``. On ``/key`` and ``/key/v1`` themselves there is nothing.
    An API of a plug-in's own takes tokens as well; its function checks both."""
    own = {EVENTS_PATH, *_on_the_way(EVENTS_PATH)}
    found = {
        (route.path if route.path in own else f"/v1{PROXY}", route.method.upper())
        for route in ROUTES
        if route.scopes
    }
    of_keys = [(KEY_PATH + path, method) for path, method in sorted(found)]
    of_apis = {(api.path + PROXY, route.method) for api in streamed_apis() for route in api.routes}
    return [*of_keys, *sorted(of_apis)]


def _on_the_way(path: str) -> list[str]:
    """``/v1``, ``/v1/chats``, … above a path of its own: such a resource shadows the proxy, so it needs the method
    itself."""
    parts = path.strip("/").split("/")[:-1]
    return ["/" + "/".join(parts[: end + 1]) for end in range(len(parts))]


METHODS: Final = (
    *(
        GatewayMethod(route.path, "GET", "" if route.path == HEALTH else "api", "open")
        for route in ROUTES
        if route.access == "open"
    ),
    GatewayMethod(PROXY, "ANY", "api", "token"),
    *(GatewayMethod(path, "ANY", "api", "token") for path in _on_the_way(EVENTS_PATH)),
    GatewayMethod(EVENTS_PATH, "GET", "stream", "token"),
    *(
        GatewayMethod(
            path,
            method,
            "stream" if path == KEY_PATH + EVENTS_PATH or api_at(path) else "api",
            "key",
        )
        for path, method in key_methods()
    ),
)


def method_of(path: str, method: str) -> GatewayMethod | None:
    """The one that takes a request to this path, itself a template: its own resource, else the longest proxy above.
    None: the gateway answers 404."""
    at = {one.path for one in METHODS}
    proxies = [path[:place] + PROXY for place, character in enumerate(path) if character == "/"]
    resource = next((one for one in (path, *reversed(proxies)) if one in at), "")
    return next((one for one in METHODS if one.path == resource and one.method in (method, "ANY")), None)
