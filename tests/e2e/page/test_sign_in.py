"""Sign-in by Cognito's hosted page: authorization code with PKCE, against a fake of its endpoints."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Route

    from tests.clients.page_reader import Reader
    from tests.clients.stack_client import Root

STALE = "e30.eyJlbWFpbCI6ImFkYUBleGFtcGxlLmNvbSJ9.c2ln"
"""An ID token of ada@example.com that no API accepts."""


class HostedPage:
    """Cognito's endpoints under the page's own origin, which its policy lets it call."""

    def __init__(self, reader: Reader, token: str, state: str = "") -> None:
        self.asked: dict[str, str] = {}
        self.exchanges: list[dict[str, str]] = []
        self._reader, self._token, self._state = reader, token, state
        base = f"{reader.url}/cognito"
        config = {"api": "", "sign_in": {"kind": "cognito", "domain": base, "client_id": "client-1"}}
        reader.page.route("**/config.json", lambda route: route.fulfill(json=config))
        reader.page.route("**/cognito/oauth2/authorize?*", self._authorize)
        reader.page.route("**/cognito/oauth2/token", self._exchange)

    def _authorize(self, route: Route) -> None:
        self.asked = _fields(urlsplit(route.request.url).query)
        answer = urlencode({"code": "the-code", "state": self._state or self.asked["state"]})
        route.fulfill(status=302, headers={"Location": f"{self.asked['redirect_uri']}?{answer}"})

    def _exchange(self, route: Route) -> None:
        fields = _fields(route.request.post_data or "")
        self.exchanges.append(fields)
        first = fields["grant_type"] == "authorization_code"
        tokens = {"id_token": STALE, "refresh_token": "again"} if first else {"id_token": self._token}
        route.fulfill(content_type="application/json", body=json.dumps(tokens))


def _fields(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}


def test_the_code_is_exchanged_with_its_verifier_and_an_expired_token_renewed(
    visit: Callable[..., Reader], root: Root
) -> None:
    reader = visit()
    hosted = HostedPage(reader, root.stack.token(reader.name).token)
    reader.page.goto(reader.url)
    assert not reader.page.get_by_label("Name").is_visible(), "only the local stack asks for a name"
    reader.page.get_by_role("button", name="Sign in").click()
    reader.credits_shown("50")
    reader.sees("ada@example.com")
    asked, (first, renewal) = hosted.asked, hosted.exchanges[:2]
    assert (asked["response_type"], asked["client_id"]) == ("code", "client-1")
    assert (first["code"], first["redirect_uri"]) == ("the-code", asked["redirect_uri"])
    digest = hashlib.sha256(first["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
    assert renewal == {"grant_type": "refresh_token", "refresh_token": "again", "client_id": "client-1"}
    assert len(hosted.exchanges) == 2, "one renewal for all requests with the expired token"
    assert "code=" not in reader.page.url


def test_an_answer_to_another_sign_in_is_refused(visit: Callable[..., Reader], root: Root) -> None:
    reader = visit()
    hosted = HostedPage(reader, root.stack.token(reader.name).token, state="forged")
    reader.page.goto(reader.url)
    reader.page.get_by_role("button", name="Sign in").click()
    reader.page.get_by_role("alert").get_by_text("Please sign in again.").wait_for()
    assert hosted.exchanges == []


@pytest.mark.parametrize("typed_before", [True, False])
def test_the_stacks_default_name_does_not_mix_with_typed_text(
    visit: Callable[..., Reader], typed_before: bool
) -> None:
    """Whether it arrives after the text, or in a field that has the focus already."""
    reader = visit()
    held: list[Route] = []
    with reader.page.expect_request("**/dev/status"):
        reader.page.route("**/dev/status", lambda route: held.append(route))  # noqa: PLW0108 - it marks its handlers
        reader.page.goto(reader.url)
    name = reader.page.get_by_label("Name")
    name.focus()
    if typed_before:
        reader.page.keyboard.insert_text(reader.name)
    with reader.page.expect_response("**/dev/status") as answered:
        held[0].fulfill(json={"user": "somebody"})
    answered.value.finished()
    reader.page.evaluate("() => new Promise((done) => setTimeout(done))")  # callbacks of the answer have run
    if not typed_before:
        assert name.input_value() == "somebody"
        reader.page.keyboard.insert_text(reader.name)
    assert name.input_value() == reader.name
