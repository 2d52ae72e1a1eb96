"""API keys in the settings: made and copied once, used, changed, rotated, revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from tests.clients.browser import axe_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator

    from tests.clients.page_reader import Reader

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def keys_of(reader: Reader) -> Locator:
    """The settings' part with the keys."""
    reader.page.get_by_role("button", name="Settings").click()
    section = reader.page.locator(".api-keys")
    section.get_by_text("Make a key").wait_for()
    return section


def make(section: Locator, name: str, **caps: str) -> str:
    """Make a key; its text as it is shown once."""
    section.get_by_text("Make a key").click()
    section.get_by_label("Name", exact=True).fill(name)
    for label, value in caps.items():
        section.get_by_label(label.replace("_", " ")).fill(value)
    section.get_by_role("button", name="Make the key").click()
    return section.get_by_label("Copy it now").input_value()


def answered(reader: Reader, key: str) -> httpx.Response:
    """What the API says to a request with the key, through the page's own address."""
    address = reader.url.rstrip("/") + "/v1/credits"
    return httpx.get(address, headers={"Authorization": f"Bearer {key}"}, trust_env=False)


def test_a_key_is_made_used_changed_rotated_and_revoked(reader: Reader) -> None:
    section = keys_of(reader)
    key = make(section, "Nightly report", Credits_a_day="25")
    assert key.startswith("dt_")
    assert answered(reader, key).status_code in (200, 403)
    assert "Credits a day: 0 of 25" in section.locator(".boxed-list").inner_text()

    section.get_by_role("button", name="Change Nightly report").click()
    section.locator(".boxed-list").get_by_label("Credits a day").fill("30")
    section.get_by_role("button", name="Save").click()
    section.get_by_text("Credits a day: 0 of 30").wait_for()
    assert section.get_by_label("Copy it now").count() == 0, "it is shown once"

    section.get_by_role("button", name="Rotate Nightly report").click()
    section.get_by_role("button", name="Rotate", exact=True).click()
    rotated = section.get_by_label("Copy it now").input_value()
    assert rotated != key
    assert {answered(reader, old).status_code for old in (key, rotated)} <= {200, 403}

    section.get_by_role("button", name="Revoke Nightly report").click()
    section.get_by_role("button", name="Revoke", exact=True).click()
    section.locator(".boxed-list").wait_for(state="detached")
    assert [answered(reader, old).status_code for old in (key, rotated)] == [401, 401]


def test_a_refused_key_says_why_and_keeps_what_was_entered(reader: Reader) -> None:
    section = keys_of(reader)
    section.get_by_text("Make a key").click()
    section.get_by_label("Name", exact=True).fill("Nothing")
    section.get_by_label("start chats").uncheck()
    section.get_by_role("button", name="Make the key").click()
    section.get_by_role("alert").filter(has_text="scopes").wait_for()
    assert section.get_by_label("Name", exact=True).input_value() == "Nothing"


def test_keys_fit_a_phone_and_have_no_findings(visit: Callable[..., Reader]) -> None:
    reader = visit(**PHONE)
    reader.sign_in()
    reader.page.get_by_role("button", name="Conversations", exact=True).click()
    section = keys_of(reader)
    make(section, "N" * 60, Dollars_in_total="0.5")
    width = reader.page.locator("#dialog-body").evaluate("body => [body.scrollWidth, body.clientWidth]")
    assert width[0] == width[1]
    reader.page.evaluate(axe_source())
    found = reader.page.evaluate("async () => (await axe.run('#dialog')).violations.map(one => one.id)")
    assert found == []
