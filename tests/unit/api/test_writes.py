"""A stage that may be rolled back to release 1 refuses only what release 1 could not read."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.writes import writes_from

from tests.clients.api_client import Api, make_api
from tests.drivers.images import png

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES = {"media_type": "text/markdown", "data": base64.b64encode(b"The plan says 80.").decode()}
PICTURE = {"media_type": "image/png", "data": base64.b64encode(png()).decode()}


@pytest.fixture(scope="module")
def cautious() -> Iterator[Api]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUALTRACK_WRITES", "1")
        with make_api() as new_api:
            yield new_api


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            "/v1/chats",
            {"message": "Read it.", "attachments": [PICTURE, NOTES]},
            "Text files are not available",
        ),
        ("/v1/chats", {"message": "Hello", "profile": "courses"}, "The profile courses is not available"),
        ("/v1/conversations", {"profile": "graph"}, "The profile graph is not available"),
        ("/v1/conversations/cv_00000000000000000000000000/fork", {"before": "q1"}, "Forks are not available"),
    ],
)
def test_data_that_release_1_cannot_read_is_refused(
    cautious: Api, path: str, body: dict[str, Any], said: str
) -> None:
    answer = cautious.of_new_user().call("POST", path, body)
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_request")
    assert said in answer.json["error"]["message"]


def test_everything_else_is_accepted(cautious: Api) -> None:
    api = cautious.of_new_user()
    for body in (
        {"message": "Hello"},
        {"message": "Look.", "attachments": [PICTURE]},
        {"message": "Hello", "profile": "assistant"},
    ):
        assert api.call("POST", "/v1/chats", body).status == 202


@pytest.mark.parametrize("text", ["0", "3", "-1", "two"])
def test_an_unknown_release_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be from 1 to 2|invalid literal"):
        writes_from(text)
    assert (writes_from(""), writes_from("1"), writes_from("2")) == (2, 1, 2)
