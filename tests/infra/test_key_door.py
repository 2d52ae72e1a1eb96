"""The way in of API keys: CloudFront's function by running its code, and limits that junk cannot take from users."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from dualtrack.api.streamed import streamed_apis
from dualtrack_stack.gateway import key_methods
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.page import KEYS_TO_THEIR_DOOR

from tests.drivers.synthesised import synthesised
from tests.drivers.templates import Stage

KEY = "dt_" + "a" * 54
LAMBDA_CONCURRENCY = 1_000
"""Of an account (AWS Lambda Developer Guide, "Understanding Lambda function scaling")."""


def led(uri: str, **headers: str) -> str:
    """Where CloudFront's function leads a request, by its own code. Header names are in lower case there."""
    request = {"uri": uri, "headers": {name: {"value": value} for name, value in headers.items()}}
    program = f"{KEYS_TO_THEIR_DOOR.read_text()}\nconsole.log(JSON.stringify(handler({json.dumps({'request': request})})))"
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=30, check=True)
    after: dict[str, Any] = json.loads(done.stdout)
    assert after["headers"] == request["headers"]
    return str(after["uri"])


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_a_key_is_led_to_its_door(scheme: str) -> None:
    assert led("/v1/chats", authorization=f"{scheme} {KEY}") == "/key/v1/chats"


@pytest.mark.parametrize(
    ("uri", "sent"),
    [
        ("/v1/chats", {}),
        ("/v1/chats", {"authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln"}),
        ("/v1/chats", {"authorization": f"Basic {KEY}"}),
        ("/v1/chats", {"authorization": KEY}),
        ("/v1/chats", {"authorization": f"Bearer x {KEY}"}),
        ("/key/v1/chats", {"authorization": f"Bearer {KEY}"}),
        ("/health", {"authorization": f"Bearer {KEY}"}),
        ("/v10/chats", {"authorization": f"Bearer {KEY}"}),
    ],
)
def test_everything_else_goes_where_it_is_sent(uri: str, sent: dict[str, str]) -> None:
    assert led(uri, **sent) == uri


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_junk_takes_neither_requests_nor_concurrency_from_users(name: str) -> None:
    """Each method of keys has a limit of its own. A burst on all of them at once, each request in an execution
    environment of its own, leaves half of an account's concurrency, and is no more than what users may send."""
    stage = STAGES[name]
    limits = limits_of(stage.name)
    assert set(limits) == set(key_methods())
    bursts = sum(burst for _, burst in limits.values())
    assert bursts <= stage.request_burst
    assert bursts <= LAMBDA_CONCURRENCY / 2
    assert all(0 < rate <= stage.request_rate / 2 for rate, _ in limits.values())


def limits_of(name: str) -> dict[tuple[str, str], tuple[float, int]]:
    added = ("key/", *(f"{api.path.lstrip('/')}/" for api in streamed_apis()))
    (deployed,) = Stage(name, synthesised(name)).resources("Chat", "AWS::ApiGateway::Stage").values()
    return {
        ("/" + setting["ResourcePath"].replace("~1", "/").lstrip("/"), setting["HttpMethod"]): (
            setting["ThrottlingRateLimit"],
            setting["ThrottlingBurstLimit"],
        )
        for setting in deployed["MethodSettings"]
        if setting["ResourcePath"].replace("~1", "/").lstrip("/").startswith(added)
    }
