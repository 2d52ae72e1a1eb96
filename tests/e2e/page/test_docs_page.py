"""The page that draws the OpenAPI document: /docs of the local stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.event_data import EVENTS

from tests.clients.browser import axe_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.page_reader import Reader

PHONE = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}


def _opened(visit: Callable[..., Reader], **options: Any) -> Reader:
    reader = visit(**options)
    reader.page.goto(f"{reader.url}/docs")
    reader.page.get_by_role("heading", name="The API", exact=True).wait_for()
    return reader


def test_every_route_event_and_type_is_drawn_and_every_link_works(
    visit: Callable[..., Reader],
) -> None:
    page = _opened(visit).page
    document = openapi_document(ROUTES)
    assert page.locator(".docs-part .docs-method").count() == len(ROUTES)
    assert page.locator("[id^=type-]").count() == len(document["components"]["schemas"])
    assert set(page.locator("#type-Event td:first-child").all_inner_texts()) == set(EVENTS)
    dead = page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map((link) => link.hash.slice(1))"
        ".filter((id) => !document.getElementById(id))"
    )
    assert dead == []
    page.locator("nav").get_by_role("link", name="Follow a chat's events").click()
    page.locator("#get_v1_chats_chat_id_events summary").first.click()
    assert "event: turn" in page.locator("#get_v1_chats_chat_id_events pre").first.inner_text()


def test_it_is_linked_from_the_page(visit: Callable[..., Reader]) -> None:
    reader = visit()
    reader.sign_in()
    reader.page.locator(".side-foot").get_by_role("link", name="API").click()
    reader.page.get_by_role("heading", name="The API", exact=True).wait_for()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["wide", "phone"])
def test_it_fits_and_axe_finds_nothing(visit: Callable[..., Reader], options: dict[str, Any]) -> None:
    axe = axe_source()
    page = _opened(visit, bypass_csp=True, **options).page
    page.locator("details").evaluate_all("(all) => all.forEach((element) => (element.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".docs-table").evaluate_all(
        "(all) => all.every((element) => element.scrollWidth <= element.clientWidth)"
    )
    page.evaluate(axe)
    report = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [violation["id"] for violation in report["violations"]] == []
