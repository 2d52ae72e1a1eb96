"""The page that draws the OpenAPI document: /docs of the local stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.event_data import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.page_reader import Reader


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
