"""Bad input, generated from the OpenAPI document and by hand: refused, never a 5xx, nothing stored.

The client checks every answer against the document (`tests.clients.api_client`).
"""

from __future__ import annotations

import copy
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.tools.mcp.catalogue import ServerTools, store_listing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.clients.api_client import BODIES, Api, items, make_api, objects
from tests.drivers.plugin_parts import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

NASTY_TEXT = ["\0", "a\0b", "\ud800", "\udfff\ud800", "x" * 1_000_001]
HUGE = [10**30, -(10**30), 1e308, -1, 0, 0.5, 5.0]
NASTY_IDS = [
    "%23", "a%23b", "CHAT%23ann%23x", "..", "../..", ".", "%2e%2e", "%2fx", "%00", "%0ax", "%ff", "%F0%9F%92%A1", "*", "{}",
    "null", "undefined", "0", "ch_", "cv_", "ch_" + "0" * 26, "cv_" + "0" * 26, "ch_" + "z" * 26, "CH_" + "0" * 26,
    "ch_" + "0" * 25 + "%0a", "q1", "ch_" + "0" * 5_000, "$ne", "'%20OR%20''='", "%3Cscript%3E", "ch_٠" * 3,
]  # fmt: skip


SERVED = [(route.method.upper(), route.path, route.body) for route in ROUTES if route.serve]
"""Method, path and body model of every operation that `api` serves."""

WITH_BODY = [(method, path, kind) for method, path, kind in SERVED if kind]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with make_api() as new_api:
        world = new_api.world
        world.stores.ledger.grant("ann", "g1", 10_000, "for chats of every test", world.clock())
        yield new_api.of("ann", "admin")


@pytest.fixture(scope="module")
def existing(api: Api) -> dict[str, str]:
    """Ids that exist, for the paths; the chat waits for a decision."""
    return made_ids(api)


@pytest.fixture(scope="module")
def at_risk(api: Api) -> dict[str, str]:
    """Ids of resources that random requests may delete."""
    return made_ids(api)


def made_ids(api: Api) -> dict[str, str]:
    chat = api.ask()
    store_listing(api.world.stores.cache, "docs", ServerTools(()), api.world.clock())
    service = api.make_key("read", acts_for="any")
    api.by_key(service["key"], "customer-1").get("/v1/conversations")
    return {
        "chat_id": api.pause()["chat_id"],
        "conversation_id": chat["conversation_id"],
        "record_id": "q1",
        "place": "1",
        "tool": "write_note",
        "user_id": api.of_new_user().user,
        "name": "customer-1",
        "key_id": service["key_id"],
        **{name: value for part in parts("api_requests") for name, value in part.made(api).items()},
        "corpus": "courses",
        "server": "docs",
        "job_id": api.call("POST", "/v1/admin/corpora/courses/jobs", {"reset": True}).json["job_id"],
        "document_id": "0" * 32,
    }


def stored(api: Api) -> Any:
    """Everything in the tables and the bucket, except the request counters."""
    tables = {
        table: [item for item in items(api.world, table) if not item["sk"]["S"].startswith("RATE#")]
        for table in ("history", "chats", "credits", "cache")
    }
    return tables, objects(api.world)


def called(api: Api, method: str, target: str, *arguments: Any, **more: Any) -> Any:
    """Send a request one second after the previous one, so that the user is never rate limited."""
    api.world.clock.now += 1
    return api.call(method, target, *arguments, **more)


def wrong_values(schema: dict[str, Any], *, is_required: bool) -> Iterator[Any]:
    """Invalid values of a field, by its schema; no text may contain NUL or lone surrogates."""
    kinds = {option.get("type") for option in schema.get("anyOf", [schema])}
    plain = next((option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"), schema)
    others: dict[str, list[Any]] = {
        "string": ["text"], "integer": [7, 10**30, 0.5], "boolean": [True], "array": [["x"]], "object": [{"x": 1}],
    }  # fmt: skip
    for kind, examples in others.items():
        if kind not in kinds and not (kind == "object" and "$ref" in str(schema)):
            yield from examples
    if is_required:
        yield None
    if "string" in kinds:
        yield from NASTY_TEXT
        yield from [""] * bool(plain.get("minLength"))
        yield from ["x" * (plain["maxLength"] + 1)] if "maxLength" in plain else []
        yield from ["neither"] if "enum" in plain else []
    if "integer" in kinds:
        yield from [plain["minimum"] - 1] if "minimum" in plain else []
        yield from [plain["maximum"] + 1] if "maximum" in plain else []
        yield from ["5", 5.5]
        yield from [-0.0] if plain.get("minimum") else []  # the integer 0
    if "array" in kinds:
        yield [{}] * (plain["maxItems"] + 1)
        yield from [[None], ["x"], [[]], [{}]]


def wrong_bodies(kind: type) -> Iterator[Any]:
    """Bodies with one error each."""
    schema = openapi_document(ROUTES)["components"]["schemas"][kind.__name__]
    good = BODIES[kind]
    yield from (
        [],
        "text",
        5,
        True,
        [good],
        {**good, "unknown": 1},
        {**good, "x" * 100_000: 1},
        {**good, "💡\0": 1},
    )
    for field, described in schema["properties"].items():
        is_required = field in schema.get("required", [])
        if is_required:
            yield {key: value for key, value in good.items() if key != field}
        for value in wrong_values(described, is_required=is_required):
            yield {**good, field: value}


@pytest.mark.parametrize(("method", "path", "kind"), WITH_BODY)
def test_every_field_wrong_in_every_way_is_a_400_and_stores_nothing(
    api: Api, existing: dict[str, str], method: str, path: str, kind: type
) -> None:
    before = stored(api)
    for body in wrong_bodies(kind):
        answer = called(api, method, path.format(**existing), body)
        assert (answer.status, answer.code) == (400, "invalid_request"), (str(body)[:200], answer)
        assert len(answer.text) < 2_000, "a refusal does not echo the input"
    assert stored(api) == before


@pytest.mark.parametrize(("method", "path", "kind"), WITH_BODY)
def test_the_valid_bodies_behind_the_invalid_ones_are_accepted(
    api: Api, existing: dict[str, str], method: str, path: str, kind: type
) -> None:
    """Otherwise the refusals above would prove nothing. The models accept all that the document allows."""
    assert called(api, method, path.format(**existing), copy.deepcopy(BODIES[kind])).status in (200, 201, 202)


MALFORMED: list[str | bytes] = [
    "{", "}", "{'message': 'x'}", '{"message": "x"', '{"message": x}', '{"message": NaN}', '{"message": Infinity}',
    '{"message": "x",}', '{"message": "\n"}', "message=x", "<message>x</message>", "﻿{}x", "\0", "\ud800",
    '{"message": "a", "message": "b"}', '{"message": 1' + "0" * 5_000 + "}", '{"message": 1e999}', "[" * 100_000,
    '{"message":' * 5_000, '{"message":' * 500 + "1" + "}" * 500, b"\xff\xfe\xff", b"\x80", b"\0\0\0\0", b"\xed\xa0\x80",
    "{}", "null", "[]", '"x"', "0", "true", "", " ", "{}{}", "{} //",
]  # fmt: skip


@pytest.mark.parametrize("body", MALFORMED, ids=[str(number) for number in range(len(MALFORMED))])
def test_a_body_that_is_no_json_object_is_a_400_with_and_without_a_key(api: Api, body: str | bytes) -> None:
    before = stored(api)
    for headers in (
        {},
        {"Idempotency-Key": "k"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "multipart/form-data"},
    ):
        answer = called(api, "POST", "/v1/chats", raw=body, headers=headers)
        assert (answer.status, answer.code) == (400, "invalid_request")
    assert stored(api) == before


@pytest.mark.parametrize(
    ("method", "path", "kind"), [operation for operation in SERVED if "{" in operation[1]]
)
def test_an_unknown_id_is_a_404(
    api: Api, existing: dict[str, str], method: str, path: str, kind: type | None
) -> None:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    before = stored(api)
    for wrong, nasty in itertools.product(names, NASTY_IDS):
        if wrong in ("user_id", "tool") or (wrong == "record_id" and nasty == "q1"):
            continue  # any text may be a user's id, and whatever is not allowed stays so
        answer = called(
            api, method, path.format(**{**existing, wrong: nasty}), BODIES[kind] if kind else None
        )
        refused = {(404, "not_found")} | ({(400, "invalid_request")} if wrong == "name" else set())
        assert (answer.status, answer.code) in refused, nasty
    assert stored(api) == before


@pytest.mark.parametrize("nasty", NASTY_IDS)
def test_any_user_id_is_answered(api: Api, nasty: str) -> None:
    answer = called(api, "GET", f"/v1/admin/users/{nasty}/credits")
    assert answer.status in (200, 404)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "TRACE", "NONE"])
def test_a_method_that_is_not_served_is_a_404(api: Api, existing: dict[str, str], method: str) -> None:
    served = {(method, path) for method, path, _ in SERVED}
    for path in {path for _, path, _ in SERVED}:
        if (method, path) not in served:
            assert called(api, method, path.format(**existing)).status == 404


@pytest.mark.parametrize("header", ["", " ", "k" * 256, "\ud800", "é" * 256, "k\0" * 200])
def test_an_invalid_key_is_a_400(api: Api, header: str) -> None:
    answer = called(api, "POST", "/v1/chats", {"message": "x"}, {"Idempotency-Key": header})
    assert answer.status in ({202} if header == " " else {400})


@pytest.mark.parametrize("key", ["é", "💡", "\0", "#", "x" * 255])
def test_any_text_may_be_a_key(api: Api, key: str) -> None:
    first = called(api, "POST", "/v1/chats", {"message": "x"}, {"Idempotency-Key": key})
    again = called(api, "POST", "/v1/chats", {"message": "x"}, {"Idempotency-Key": key})
    assert (first.status, again.json["chat_id"]) == (202, first.json["chat_id"])


FIELDS = st.sampled_from(sorted({field for good in BODIES.values() for field in good} | {"conversation_id"}))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([*NASTY_TEXT[:4], *HUGE]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | FIELDS, inner, max_size=4)
    ),
    max_leaves=8,
)
OPERATIONS = st.sampled_from(SERVED)


@given(
    OPERATIONS,
    st.dictionaries(FIELDS, JSON, max_size=5) | JSON,
    st.text(max_size=30),
    st.sampled_from(NASTY_IDS),
)
@settings(
    max_examples=150, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_no_input_causes_a_5xx(
    api: Api,
    at_risk: dict[str, str],
    operation: tuple[str, str, type | None],
    body: Any,
    text: str,
    nasty: str,
) -> None:
    method, path, _ = operation
    api.world.clock.now += 60  # a new rate limit window
    target = path.format(**at_risk) if len(text) % 2 else path.format(**dict.fromkeys(at_risk, nasty))
    # an erased user is refused from then on
    caller = api.of_new_user() if path == "/v1/me" else api
    event = caller.event(method, target, json.dumps(body))
    event["queryStringParameters"] = dict.fromkeys(["cursor", "limit", "track", "wait"], text)
    event["headers"]["Idempotency-Key"] = text
    event["queryStringParameters"]["wait"] = "0" if text.strip().isdecimal() else text  # ``wait`` would block
    answer = api.module.handler(event, api.context)
    assert answer["statusCode"] < 500, answer
    json.dumps(answer, ensure_ascii=False).encode()
