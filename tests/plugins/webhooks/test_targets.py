"""No way inside: each target of addresses.md, and what happens to it (CONTRACT 4)."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.errors import ApiError
from dualtrack.plugins.webhooks.post import Poster, PostOutcome
from dualtrack.plugins.webhooks.targets import address_of, check_url, is_public, parse_target

from tests.servers.webhook_receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Sequence

ADDRESSES: Final = Path(__file__).with_name("addresses.md")
_ROW: Final = re.compile(r"^\| `(.+?)` \| (?:`(.+?)`)? ?\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TABLE: Final = [
    (url, tuple(names.split(", ")) if names else (), happens)
    for url, names, _, happens in _ROW.findall(ADDRESSES.read_text(encoding="utf-8"))
]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where something has connected to; every connection fails, and no name is resolved outside the test."""
    made: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], *_: Any) -> socket.socket:
        made.append(address)
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("a name was resolved again"))
    return made


class Names:
    """A resolver whose name leads to this machine from the second time on."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses, self.asked = addresses, 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.addresses if self.asked == 1 else ["127.0.0.1"]


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 60
    assert len({url for url, _, _ in TABLE}) >= 60


@pytest.mark.parametrize(("url", "addresses", "happens"), TABLE)
def test_what_happens_to_a_target(
    url: str, addresses: tuple[str, ...], happens: str, connected: list[tuple[str, int]]
) -> None:
    names = Names(addresses)
    if happens.startswith("400: "):
        with pytest.raises(ApiError) as refused:
            check_url(url, loopback=False)
        assert f"400: {str(refused.value).removeprefix('url: ').removesuffix('.')}" == happens
        # it would not be told either, if it had been stored
        assert Poster(names=names).post(url, b"{}", {}).error.startswith("not allowed")
        assert (names.asked, connected) == (0, [])
        return
    check_url(url, loopback=False)
    outcome = Poster(names=names).post(url, b"{}", {})
    assert names.asked == 1
    if happens.startswith("not sent: "):
        assert outcome.error == f"not allowed: {happens.removeprefix('not sent: ')}"
        assert connected == []
    else:
        assert f"sent to {connected[0][0]}" == happens
        assert [address for address, _ in connected] == [addresses[0]]


@pytest.mark.parametrize(
    "public", ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:82b::200e"]
)
def test_public_addresses_are_allowed(public: str) -> None:
    address = address_of(public)
    assert address is not None
    assert is_public(address)
    host = f"[{public}]" if ":" in public else public
    assert parse_target(f"https://{host}:8443/hook?a=b", loopback=False).host == public


def test_a_name_and_its_path_are_kept() -> None:
    target = parse_target("https://Hooks.Example.com/a/b?c=d%20e", loopback=False)
    assert (target.host, target.port, target.path) == ("hooks.example.com", 443, "/a/b?c=d%20e")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "https://localhost:1/", "http://[::1]:8000/x"])
def test_this_machine_needs_the_setting(url: str) -> None:
    assert parse_target(url, loopback=True).is_loopback
    with pytest.raises(ApiError):
        check_url(url, loopback=False)


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "https://169.254.169.254/", "http://example.com/"])
def test_the_setting_allows_nothing_else(url: str) -> None:
    with pytest.raises(ApiError):
        check_url(url, loopback=True)


def test_with_the_setting_localhost_must_lead_here(connected: list[tuple[str, int]]) -> None:
    poster = Poster(loopback=True, names=lambda *_: ["10.0.0.1"])
    assert poster.post("http://localhost:80/", b"", {}).error.startswith("not allowed")
    assert connected == []


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as good, receiving() as proxy:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        outcome = Poster(loopback=True).post(f"{good.url}/ok", b"{}", {})
        assert (outcome.status, len(good.received), proxy.received) == (200, 1, [])


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/ok", PostOutcome(200)),
        ("/500", PostOutcome(500)),
        ("/redirect", PostOutcome(307, "a redirect, which is not followed")),
        ("/big", PostOutcome(200)),
        ("/close", PostOutcome(0, "the connection failed, or broke off")),
        ("/mute", PostOutcome(0, "no answer within 0.5 s")),
        ("/drip", PostOutcome(0, "no answer within 0.5 s")),
    ],
)
def test_what_receivers_do(path: str, outcome: PostOutcome) -> None:
    seconds = 0.5 if "within" in outcome.error else 30
    with receiving() as receiver:
        answered = Poster(loopback=True, seconds=seconds).post(
            f"{receiver.url}{path}", b"{}", {"webhook-id": "1"}
        )
        assert (answered.status, answered.error) == (outcome.status, outcome.error)
        assert [one.path for one in receiver.received] == [path]
