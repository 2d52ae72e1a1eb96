"""A browser with a reader of the page, on the deployed stack that all tests share (`tests.stack_fixtures`): a pytest
plugin too."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.clients.answer_sheet import Sheet
    from tests.clients.page_reader import Reader
    from tests.clients.stack_client import Root


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file's tests; each test has its own browser profile.

    It does not outlive the file: Playwright keeps an event loop running in this thread while it lives,
    and tests of other files start loops of their own.
    """
    from tests.clients.browser import chromium

    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, root: Root) -> Iterator[Callable[..., Reader]]:
    """Opens the page as a new user, by Playwright's context options; fails on console errors."""
    from tests.clients.page_reader import Reader

    readers: list[Reader] = []

    def open_page(url: str = "", **options: object) -> Reader:
        # the headless shell lets no page write to the clipboard by itself, as the browser does
        usual = {"viewport": {"width": 1280, "height": 800}, "permissions": ["clipboard-write"]}
        context = browser.new_context(**{**usual, **options})  # type: ignore[arg-type]
        name = f"reader-{uuid.uuid4().hex[:12]}"
        reader = Reader(context.new_page(), name, url or root.stack.url)
        readers.append(reader)
        return reader

    yield open_page
    for reader in readers:
        reader.leave()
        assert reader.errors == []


@pytest.fixture
def reader(visit: Callable[..., Reader]) -> Reader:
    """A user who has signed in."""
    signed_in = visit()
    signed_in.sign_in()
    return signed_in


@pytest.fixture
def open_sheet(browser: Browser, root: Root) -> Iterator[Callable[..., Sheet]]:
    """A sheet by Playwright's context options; fails on console errors."""
    from tests.clients.answer_sheet import Sheet

    sheets: list[Sheet] = []

    def new_sheet(**options: object) -> Sheet:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})  # type: ignore[arg-type]
        sheets.append(Sheet(context.new_page(), root.stack.url))
        return sheets[-1]

    yield new_sheet
    for sheet in sheets:
        sheet.page.context.close()
        assert sheet.errors == []


@pytest.fixture(scope="module")
def _sheet(browser: Browser, root: Root) -> Iterator[Sheet]:
    from tests.clients.answer_sheet import Sheet

    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield Sheet(context.new_page(), root.stack.url)
    context.close()


@pytest.fixture
def sheet(_sheet: Sheet) -> Iterator[Sheet]:
    """One for a file's tests, emptied: opening the page takes longer than what is drawn. What a test has it load, the
    next ones find loaded."""
    _sheet.empty()
    yield _sheet
    assert _sheet.errors == []
