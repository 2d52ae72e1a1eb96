"""The sample documents server: Context7's v2 shape, strict on parameters, ordered by the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack_stack.local.sample_docs import catalogue
from dualtrack_stack.local.sample_docs.server import SEPARATOR, serve_sample_docs

if TYPE_CHECKING:
    from collections.abc import Iterator

X_ADS = "/sample/x-ads-api"


@pytest.fixture(scope="module")
def docs() -> Iterator[httpx.Client]:
    with serve_sample_docs() as url, httpx.Client(base_url=url) as client:
        yield client


def context(docs: httpx.Client, query: str, library: str = X_ADS, **more: str) -> httpx.Response:
    return docs.get("/api/v2/context", params={"libraryId": library, "query": query, **more})


def test_the_documents_are_enough_to_rank() -> None:
    sizes = {library.id: len(library.snippets) for library in catalogue.libraries()}
    assert sizes[X_ADS] >= 35
    assert sum(sizes.values()) >= 80
    oauth = [snippet for snippet in catalogue.libraries()[-1].snippets if "OAuth" in snippet.text]
    assert len(oauth) >= 14
    assert {language for snippet in oauth for language, _ in snippet.code} >= {"python", "javascript"}
    sources = [snippet.source for library in catalogue.libraries() for snippet in library.snippets]
    assert len(set(sources)) == len(sources)
    assert all(source.startswith("https://example.com/") for source in sources)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("Twitter ads", X_ADS),
        ("X Ads API", X_ADS),
        ("DynamoDB", "/sample/dynamodb-single-table"),
        ("dualtrack", "/dualtrack/dualtrack"),
        ("Lanternfish", "/sample/lanternfish"),
    ],
)
def test_search(docs: httpx.Client, name: str, first: str) -> None:
    answer = docs.get("/api/v2/libs/search", params={"libraryName": name, "query": "how"}).json()
    assert answer["results"][0]["id"] == first
    assert set(answer["results"][0]) == {
        *("id", "title", "description", "branch", "lastUpdateDate", "state", "totalTokens"),
        *("totalSnippets", "stars", "trustScore", "benchmarkScore", "versions"),
    }


def test_search_finds_nothing_for_an_unknown_name(docs: httpx.Client) -> None:
    answer = docs.get("/api/v2/libs/search", params={"libraryName": "quantum zebra", "query": "x"})
    assert (answer.status_code, answer.json()["results"]) == (200, [])


def test_the_query_decides_the_order(docs: httpx.Client) -> None:
    def titles(query: str) -> list[str]:
        answer = context(docs, query, type="json").json()
        return [snippet["codeTitle"] for snippet in answer["codeSnippets"]]

    assert titles("rate limits 429")[0] == "Rate limits"
    assert titles("OAuth request token step 1")[0] == "OAuth step 1: get a request token"
    assert titles("pagination cursor")[0] == "Pagination with cursors"


def test_json_and_text_have_the_same_snippets(docs: httpx.Client) -> None:
    query = "set up OAuth for Twitter ads"
    structured = context(docs, query, type="json").json()
    count = len(structured["codeSnippets"]) + len(structured["infoSnippets"])
    assert 10 <= count <= 20
    assert any(len(snippet["codeList"]) == 2 for snippet in structured["codeSnippets"])
    plain = context(docs, query)
    assert plain.headers["content-type"].startswith("text/plain")
    parts = plain.text.split(SEPARATOR)
    assert len(parts) == count
    assert all(part.startswith("### ") and "\n\nSource: https://example.com/" in part for part in parts)
    assert "```javascript\n" in plain.text


def test_a_version_must_exist(docs: httpx.Client) -> None:
    assert context(docs, "OAuth", f"{X_ADS}/v12").status_code == 200
    assert context(docs, "OAuth", f"{X_ADS}@v12").status_code == 200
    missing = context(docs, "OAuth", f"{X_ADS}/v1")
    assert (missing.status_code, missing.json()["error"]) == (404, "tag_not_found")


def test_a_moved_library_names_its_new_id_in_the_body(docs: httpx.Client) -> None:
    moved = context(docs, "OAuth", "/sample/twitter-ads-api")
    assert (moved.status_code, moved.json()["error"]) == (301, "library_redirected")
    assert moved.json()["redirectUrl"] == X_ADS
    assert "location" not in moved.headers


@pytest.mark.parametrize(
    ("path", "params", "status", "error"),
    [
        ("/api/v2/context", {"libraryId": "/no/such", "query": "x"}, 404, "library_not_found"),
        ("/api/v2/context", {"libraryId": "x-ads-api", "query": "x"}, 400, "invalid_library_id"),
        ("/api/v2/context", {"libraryId": "/a/b/c/d", "query": "x"}, 400, "invalid_library_id"),
        ("/api/v2/context", {"libraryId": X_ADS}, 400, "validation_error"),
        ("/api/v2/context", {"query": "x"}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": ""}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": "x" * 501}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": "x", "type": "xml"}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": "x", "fast": "1"}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": "x", "tokens": "50000"}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": "x", "topic": "y"}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": X_ADS, "query": ["x", "y"]}, 400, "validation_error"),
        ("/api/v2/context", {"libraryId": "/sample/unfinished", "query": "x"}, 202, "library_not_finalized"),
        ("/api/v2/libs/search", {"query": "x"}, 400, "validation_error"),
        ("/api/v2/libs/search", {"libraryName": "x" * 501, "query": "x"}, 400, "validation_error"),
        ("/api/v2/libs/search", {"libraryName": "x"}, 400, "validation_error"),
        ("/api/v1/search", {"query": "x"}, 404, "not_found"),
    ],
)
def test_errors(docs: httpx.Client, path: str, params: dict[str, Any], status: int, error: str) -> None:
    answer = docs.get(path, params=params)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["message"]


def test_anonymous_and_with_a_key(docs: httpx.Client) -> None:
    params = {"libraryId": X_ADS, "query": "OAuth"}
    good = docs.get("/api/v2/context", params=params, headers={"authorization": "Bearer ctx7sk-x"})
    assert good.status_code == 200
    bad = docs.get("/api/v2/context", params=params, headers={"authorization": "Token x"})
    assert (bad.status_code, bad.json()["error"]) == (401, "invalid_api_key")
    assert docs.post("/api/v2/context", params=params).status_code == 405
