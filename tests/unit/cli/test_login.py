"""`dualtrack login` against a sign-in on the wire: a server that does what Cognito's endpoints do, PKCE included."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from dualtrack_stack.cli import kept_tokens, oauth
from dualtrack_stack.cli.client import CommandFailed, Unreachable
from dualtrack_stack.cli.oauth import Provider, Tokens
from dualtrack_stack.cli.signed_in_door import open_door
from dualtrack_stack.cli.target import Missing, TargetOptions, open_target
from dualtrack_stack.sign_in_ports import PORTS, address_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENT = "terminal-1"


def id_token(seconds: float) -> str:
    """Of ada, not signed: nothing here verifies it."""
    claims = json.dumps({"email": "ada@example.com", "exp": time.time() + seconds}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"


class SignIn(ThreadingHTTPServer):
    """A stage's page and its provider's endpoints. A code is good once, for its client, address and verifier."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Endpoints)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.config: Any = {"sign_in": {"domain": self.url, "terminal_client_id": CLIENT}}
        self.codes: dict[str, dict[str, str]] = {}
        self.refreshing = {"refresh-1"}
        self.leads_to = ""
        """Where a request is redirected in place of an answer."""
        self.lifetime = 3_600.0
        self.forms: list[dict[str, str]] = []


class Endpoints(BaseHTTPRequestHandler):
    server: SignIn  # pyrefly: ignore[bad-override-mutable-attribute]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if self.server.leads_to:
            self._say(302, {}, {"Location": self.server.leads_to})
        elif parts.path == "/config.json":
            self._say(200, self.server.config)
        elif parts.path == "/oauth2/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            known = asked["client_id"] == CLIENT and asked["redirect_uri"] in map(address_at, PORTS)
            if not known or asked["code_challenge_method"] != "S256":
                self._say(400, {"error": "invalid_request"})
                return
            code = f"code-{len(self.server.codes)}"
            self.server.codes[code] = asked
            answer = urlencode({"code": code, "state": asked["state"]})
            self._say(302, {}, {"Location": f"{asked['redirect_uri']}?{answer}"})
        else:
            self._say(404, {"error": {"code": "not_found", "message": "Nothing here."}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.server.forms.append(form)
        if self.server.leads_to:
            self._say(307, {}, {"Location": self.server.leads_to})
        elif self.path == "/oauth2/revoke":
            self.server.refreshing.discard(form["token"])
            self._say(200, {})
        elif form["client_id"] == CLIENT and self._is_good(form):
            token = id_token(self.server.lifetime)
            is_first = form["grant_type"] == "authorization_code"
            self._say(200, {"id_token": token, **({"refresh_token": "refresh-1"} if is_first else {})})
        else:
            self._say(400, {"error": "invalid_grant"})

    def _is_good(self, form: dict[str, str]) -> bool:
        if form["grant_type"] == "refresh_token":
            return form["refresh_token"] in self.server.refreshing
        asked = self.server.codes.pop(form["code"], None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return bool(asked) and (asked["code_challenge"], asked["redirect_uri"]) == (
            proof,
            form["redirect_uri"],
        )

    def _say(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Quiet."""


@pytest.fixture
def sign_in() -> Iterator[SignIn]:
    with SignIn() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def run(*words: str, browser: str = "", typed: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own; ``browser``: what opens addresses, as `webbrowser` takes it."""
    environment = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
    return subprocess.run(
        [sys.executable, "-m", "dualtrack_stack.cli.main", *words],
        env={**environment, "BROWSER": browser},
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def token_for(url: str, tmp_path: Path) -> str:
    with open_target(TargetOptions(url, None, None, tmp_path), lambda _: None) as stack:
        return stack.token


def browser_of(tmp_path: Path) -> str:
    """A program that follows redirects, as a browser does; it says what it came to."""
    program = tmp_path / "browser.py"
    program.write_text("import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=20).read()\n")
    return f"{sys.executable} {program} %s &"


def test_signing_in_is_used_renewed_and_ended(sign_in: SignIn, tmp_path: Path) -> None:
    ended = run("login", "--url", f"{sign_in.url}/", browser=browser_of(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "as ada@example.com" in ended.stdout
    (file,) = kept_tokens.folder().glob("*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sign_in.codes == {}, "the code was exchanged"
    first = token_for(sign_in.url, tmp_path)
    assert token_for(sign_in.url, tmp_path) == first
    assert len(sign_in.forms) == 1, "a token that holds is used as it is"

    kept_tokens.keep(
        sign_in.url, kept_tokens.Kept(Provider(sign_in.url, CLIENT), Tokens(id_token(30), "refresh-1"))
    )
    renewed = token_for(sign_in.url, tmp_path)
    assert sign_in.forms[-1]["grant_type"] == "refresh_token"
    found = kept_tokens.kept(sign_in.url)
    assert found is not None
    assert found.tokens == Tokens(renewed, "refresh-1")

    assert "Signed out" in run("logout", "--url", sign_in.url).stdout
    assert sign_in.refreshing == set(), "a copy of the file is worth nothing"
    assert kept_tokens.kept(sign_in.url) is None
    assert "Not signed in" in run("logout", "--url", sign_in.url).stdout


def test_a_sign_in_that_has_ended_says_what_to_do(sign_in: SignIn, tmp_path: Path) -> None:
    ended = kept_tokens.Kept(Provider(sign_in.url, CLIENT), Tokens(id_token(-5), "revoked"))
    kept_tokens.keep(sign_in.url, ended)
    with pytest.raises(Missing, match=f"dualtrack login --url {sign_in.url}"):
        token_for(sign_in.url, tmp_path)


def test_over_ssh_the_address_is_pasted(sign_in: SignIn) -> None:
    asked = oauth.attempt(oauth.provider_at(sign_in.url), address_at(PORTS[0]))
    led_to = httpx.get(asked.address).headers["Location"]
    assert asked.tokens(f" {led_to}\n").refresh_token == "refresh-1"
    with pytest.raises(CommandFailed, match="used up"):
        asked.tokens(led_to)
    ended = run("login", "--url", sign_in.url, "--paste", typed=f"{led_to}\n")
    assert ended.returncode == 4
    assert "does not answer this sign-in" in ended.stderr, "it answers another attempt"


@pytest.mark.parametrize(
    "path",
    [
        "/signed-in?code=stolen&state=guessed",
        "/signed-in?code=stolen",
        "/signed-in?code=stolen&state=&state=STATE",
        "/elsewhere?code=stolen&state=STATE",
        "/signed-in?state=STATE",
        "/signed-in?" + "&".join(f"x{number}=1" for number in range(100)) + "&code=1&state=STATE",
    ],
)
def test_what_else_knocks_changes_nothing(sign_in: SignIn, path: str) -> None:
    with open_door() as door:
        assert door is not None
        asked = oauth.attempt(Provider(sign_in.url, CLIENT), door.back)
        waiting = threading.Thread(target=door.wait, args=[asked.is_answered_by, 20])
        waiting.start()
        hostile = httpx.get(door.back.replace("/signed-in", path.replace("STATE", asked.state)))
        other_name = httpx.get(
            f"http://127.0.0.1:{door.server_port}/signed-in?code=stolen&state={asked.state}",
            headers={"Host": "evil.example"},
        )
        assert (hostile.status_code, other_name.status_code, door.answered) == (400, 400, "")
        answer = httpx.get(asked.address, follow_redirects=True)
        assert answer.status_code == 200
        waiting.join()
        assert asked.tokens(door.answered).id_token


def test_a_refusal_is_told(sign_in: SignIn) -> None:
    asked = oauth.attempt(Provider(sign_in.url, CLIENT), address_at(PORTS[0]))
    said = urlencode({"error": "access_denied", "error_description": "No\x1b[2J way", "state": asked.state})
    with pytest.raises(CommandFailed, match="No") as told:
        asked.tokens(f"{asked.back}?{said}")
    assert "\x1b" not in str(told.value)


def test_redirects_of_the_provider_are_not_followed(sign_in: SignIn) -> None:
    with SignIn() as thief:
        asked = oauth.attempt(Provider(sign_in.url, CLIENT), address_at(PORTS[0]))
        led_to = httpx.get(asked.address).headers["Location"]
        sign_in.leads_to = f"{thief.url}/oauth2/token"
        with pytest.raises(CommandFailed):
            asked.tokens(led_to)
        with pytest.raises(Missing):
            oauth.provider_at(sign_in.url)
        assert thief.forms == []


@pytest.mark.parametrize(
    "config",
    [
        [],
        {},
        {"sign_in": None},
        {"sign_in": {"domain": "https://a.example", "client_id": "of the page"}},
        {"sign_in": {"domain": "http://a.example", "terminal_client_id": CLIENT}},
        {"sign_in": {"domain": "file:///etc/passwd", "terminal_client_id": CLIENT}},
        {"sign_in": {"domain": "x" * 200_000, "terminal_client_id": CLIENT}},
    ],
)
def test_a_stage_that_names_no_safe_sign_in_is_refused(sign_in: SignIn, config: Any) -> None:
    sign_in.config = config
    with pytest.raises((Missing, Unreachable)):
        oauth.provider_at(sign_in.url)


def test_plain_http_is_for_this_machine_alone() -> None:
    with pytest.raises(Missing, match="https://"):
        oauth.provider_at("http://stage.example")


def test_a_taken_port_is_not_the_end() -> None:
    with open_door() as first, open_door() as second, open_door() as third, open_door() as fourth:
        doors = [door and door.server_port for door in (first, second, third, fourth)]
    assert doors == [*PORTS, None]


def test_two_stages_are_kept_apart(sign_in: SignIn) -> None:
    provider = Provider(sign_in.url, CLIENT)
    for url in ("https://a.example", "https://b.example"):
        kept_tokens.keep(url, kept_tokens.Kept(provider, Tokens(url, "r")))
    kept_tokens.forget("https://a.example")
    assert kept_tokens.kept("https://a.example") is None
    other = kept_tokens.kept("https://b.example")
    assert other is not None
    assert other.tokens.id_token == "https://b.example"
