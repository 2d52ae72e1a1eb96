"""Who may call, from where, and how often; plans, grants, connections (CONTRACT 3, 4, 8)."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import click
import pytest
from dualtrack.api.identity import groups_of
from dualtrack.api.openapi import openapi_document
from dualtrack.api.rate_limit import REQUESTS_PER_WINDOW
from dualtrack.api.request_log import user_hash
from dualtrack.api.table import ROUTES
from dualtrack.api.users import UserPool
from dualtrack.frozen import freeze
from dualtrack.tools.mcp.accepted import as_accepted
from dualtrack.tools.mcp.catalogue import store_listing
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.specs import ListedTool, specs_of
from dualtrack_stack.cli.tool_commands import tool_lines

from tests.clients.api_client import BODIES, ORIGIN, OTHER_ORIGIN, Api, items
from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from dualtrack.api.route import Route

TOKEN = "github_pat_" + "a" * 40


# ── identity ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"sub": "ann"},
        {"sub": "ann", "token_use": "access"},
        {"token_use": "id"},
        {"sub": "", "token_use": "id"},
    ],
)
def test_only_an_id_token_identifies_the_caller(api: Api, claims: dict[str, Any]) -> None:
    """The gateway accepts some other tokens; the function does not."""
    event = api.event("GET", "/v1/credits")
    event["requestContext"]["authorizer"] = {"claims": claims}
    answer = api.module.handler(event, api.context)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (401, "unauthorized")
    event["requestContext"]["authorizer"] = None
    assert api.module.handler(event, api.context)["statusCode"] == 401


ADMINS = [
    "admin",
    "admin,staff",
    "staff,admin",
    "staff, admin",
    "[admin]",
    "[staff admin]",
    ["admin"],
    ["staff", "admin"],
]
OTHERS = [
    None,
    "",
    "[]",
    [],
    "administrators",
    "not-admin",
    "admin2,staff",
    "[staff admins]",
    "ADMIN",
    ["administrators"],
]


@pytest.mark.parametrize("groups", ADMINS)
def test_an_administrator_is_known_in_every_shape_of_the_claim(api: Api, groups: object) -> None:
    assert api.of(api.user, groups).call("GET", f"/v1/admin/users/{api.user}/credits").status == 200


@pytest.mark.parametrize(
    ("claim", "listed", "expected"),
    [
        # the gateway's form of a list, and the list
        ("admin", [], {"admin"}),
        ("admin", ["staff"], {"admin"}),
        ("a,b", ["a", "b"], {"a", "b"}),
        ("[a b]", ["a", "b"], {"a", "b"}),
        ("[a]", ["a"], {"a"}),
        # names that look like lists
        ("x,admin", ["x,admin"], {"x,admin"}),
        ("[admin]", ["[admin]"], {"[admin]"}),
        ("[x,admin]", ["x,admin"], {"x,admin"}),
        ("[x,admin]", ["[x,admin]"], {"[x,admin]"}),
        # ambiguous, or the list is that of another token
        ("x,admin", [], set()),
        ("[admin]", [], set()),
        ("[x admin]", [], set()),
        ("a,b", ["admin"], set()),
        ("a,b", ["a,b", "admin"], set()),
        ("", ["admin"], set()),
        (None, ["admin"], set()),
        (["x,admin"], ["admin"], {"x,admin"}),
        (["admin"], [], {"admin"}),
    ],
)
def test_groups_are_those_of_the_token(claim: object, listed: list[str], expected: set[str]) -> None:
    assert groups_of(claim, listed) == expected


def test_administrators_alone_see_which_tools_cannot_be_offered(api: Api) -> None:
    union = ListedTool("odd", "", freeze({"type": "string"}), hints={"readOnlyHint": True})
    content = specs_of(McpServer("docs", "http://docs/"), [union])
    store_listing(api.world.stores.cache, "docs", content, time.time())
    listed = api.of(api.user, "admin").get("/v1/tools")
    (entry,) = listed["left_out"]
    reason = "input_schema.type: Input should be 'object'"
    assert entry == {"server": "docs", "name": "odd", "reason": reason}
    assert f'"left_out": {json.dumps([entry])}' in (ROOT / "docs" / "api.md").read_text()
    assert "left_out" not in api.get("/v1/tools")
    assert list(tool_lines(listed))[-1] == f"  docs: odd: {reason}"


def test_administrators_alone_see_and_accept_what_a_server_has_changed(api: Api) -> None:
    cache, server = api.world.stores.cache, McpServer("docs", "http://docs/")

    def listed(description: str) -> None:
        find = ListedTool("find", description, freeze({"type": "object"}), hints={"readOnlyHint": True})
        content = as_accepted(cache, "docs", specs_of(server, [find]))
        store_listing(cache, "docs", content, time.time())

    listed("Finds a page.")
    admin = api.of(api.user, "admin")
    assert admin.get("/v1/tools")["changed"] == []
    listed("Finds any page.")
    tools = admin.get("/v1/tools")
    (entry,) = tools["changed"]
    documented = " ".join((ROOT / "docs" / "api.md").read_text().split())
    assert f'"changed": {json.dumps([entry])}' in documented
    assert "changed" not in api.get("/v1/tools")
    where, body = "/v1/admin/tools/docs/accept", {"marks": [entry["mark"]]}
    assert api.call("POST", where, body).code == "forbidden"
    assert admin.call("POST", where, {"marks": ["0" * 16]}).json == {"changed": [entry]}
    for _ in range(2):
        assert admin.call("POST", where, body).json == {"changed": []}
    assert admin.get("/v1/tools")["changed"] == []
    assert admin.call("POST", "/v1/admin/tools/nothing/accept", body).code == "not_found"
    assert [click.unstyle(line) for line in tool_lines(tools)][-2:] == [
        "new or changed: dualtrack tools accept docs",
        "  docs_find: Finds any page.",
    ]


def test_two_tokens_in_one_request_are_refused(api: Api) -> None:
    """The gateway verifies only one of them; the other could be forged."""
    event = api.event("GET", "/v1/credits")
    own = event["multiValueHeaders"]["Authorization"]
    for headers in ({"Authorization": own * 2}, {"Authorization": own, "authorization": own}, {}):
        event["multiValueHeaders"] = headers
        assert api.module.handler(event, api.context)["statusCode"] == 401


@pytest.mark.parametrize(
    "written", ["{}", " {}", "Basic {}", "Bearer", "Bearer ", "bearer{}", "Token {}", ""]
)
def test_a_token_without_its_scheme_is_refused_although_the_gateway_has_verified_it(
    api: Api, written: str
) -> None:
    token = api.event("GET", "/v1/credits")["multiValueHeaders"]["Authorization"][0].split(" ")[1]
    answer = api.call("GET", "/v1/credits", headers={"Authorization": written.format(token)})
    assert (answer.status, answer.code) == (401, "unauthorized")
    for scheme in ("Bearer", "bearer"):
        assert api.call("GET", "/v1/credits", headers={"Authorization": f"{scheme} {token}"}).status == 200


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "..", "e30.e30.", "e30.W10.", "e30.bnVsbA.", "e30.é.", "e30.////."]
)
def test_an_unreadable_token_grants_no_administrator_rights(api: Api, token: str) -> None:
    caller = api.of(api.user, "x,admin")
    answer = caller.call(
        "GET", "/v1/admin/users/somebody/credits", headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status == 403


@pytest.mark.parametrize("groups", OTHERS)
@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.access == "admin"],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_only_administrators_may_administer_even_for_themselves(
    api: Api, groups: object, route: Route
) -> None:
    ids = {
        "user_id": api.user,
        "corpus": "courses",
        "server": "docs",
        "job_id": f"jb_{'0' * 26}",
        "document_id": "0" * 32,
    }
    caller, target = api.of(api.user, groups), route.path.format(**ids)
    for body in (BODIES[route.body], {"wrong": 1}) if route.body else (None,):
        answer = caller.call(route.method.upper(), target, body)
        assert (answer.status, answer.code) == (403, "forbidden")
    assert api.get("/v1/credits")["plan"] == "free"


# ── plans and grants ──────────────────────────────────────────────────────────────────────────────


def test_a_plan_applies_at_once_less_what_was_used_today(api: Api) -> None:
    admin = api.of("user-root", "admin")
    api.ask()
    changed = admin.call("PUT", f"/v1/admin/users/{api.user}/plan", {"plan": "pro"}).json
    assert changed == api.get("/v1/credits")
    assert (changed["plan"], changed["available"], changed["daily"]["limit"]) == ("pro", 145, 150)
    assert (changed["monthly"]["limit"], changed["monthly"]["used"]) == (3000, 5)
    back = admin.call("PUT", f"/v1/admin/users/{api.user}/plan", {"plan": "free"}).json
    assert (back["available"], back["monthly"]) == (45, None)


def test_a_grant_is_made_once_per_id(api: Api) -> None:
    admin = api.of("user-root", "admin")
    where = f"/v1/admin/users/{api.user}/grants"
    grant = {"credits": 500, "reason": "pack", "grant_id": "payment#1/ä💡"}
    first = admin.call("POST", where, grant)
    assert (first.status, first.json["pack"], first.json["available"]) == (200, {"remaining": 500}, 550)
    again = admin.call("POST", where, {**grant, "credits": 1000, "reason": "again"})
    assert (again.status, again.json) == (200, first.json)
    other = admin.call("POST", where, {**grant, "grant_id": "payment#2"})
    assert other.json["pack"] == {"remaining": 1000}
    entries = api.get("/v1/credits/ledger")["entries"]
    assert [(entry["kind"], entry["amount"], entry["available_after"]) for entry in entries] == [
        ("grant", 500, 1050),
        ("grant", 500, 550),
    ]


def test_the_ledger_is_paged_newest_first_and_adds_up(api: Api) -> None:
    for _ in range(4):
        api.ask()
    whole = api.get("/v1/credits/ledger?limit=100")["entries"]
    assert [entry["kind"] for entry in whole] == ["settle", "hold"] * 4
    paged: list[Any] = []
    target = "/v1/credits/ledger?limit=3"
    while target:
        body = api.get(target)
        paged += body["entries"]
        target = f"/v1/credits/ledger?limit=3&cursor={body['cursor']}" if "cursor" in body else ""
    assert paged == whole
    assert whole[0]["available_after"] == api.get("/v1/credits")["available"] == 30


def test_an_operator_sees_what_was_spent_by_day(api: Api) -> None:
    admin, where = api.of("user-root", "admin"), f"/v1/admin/users/{api.user}/spending"
    nothing = {"user_id": api.user, "complete": True, "days": [], "keys": [], "profiles": []}
    assert admin.get(where) == nothing
    chats = [api.ask() for _ in range(2)]
    receipts = [api.get(f"/v1/chats/{chat['chat_id']}/receipt") for chat in chats]
    turns = [line["dollars"] for receipt in receipts for line in receipt["lines"] if line["kind"] == "model"]
    spending = admin.get(where)
    (day,) = spending["days"]
    assert (spending["complete"], day["chats"], day["credits"]) == (True, 2, 10)
    assert day["dollars"] == pytest.approx(sum(turns))
    assert day["dollars"] > 0
    assert (spending["keys"], spending["profiles"]) == ([], [{"profile": "assistant", "days": [day]}])
    assert admin.get(f"{where}?days=1") == spending


@pytest.mark.parametrize("days", ["0", "93", "-1", "1.5", "x", "1000", "%D9%A3", "1e1"])
def test_an_invalid_number_of_days_is_refused(api: Api, days: str) -> None:
    answer = api.of("user-root", "admin").call("GET", f"/v1/admin/users/{api.user}/spending?days={days}")
    assert (answer.status, answer.code) == (400, "invalid_request")


NOBODY = [
    "0b5c4f6e-1111-2222-3333-444455556666",
    "somebody",
    "x" * 129,
    "a%23b",
    "user%23ann",
    "%22",
    "x%22%20or%20sub%20%5E=%20%22",
    "%D9%A3",
]


@pytest.mark.parametrize("user", NOBODY)
def test_an_unknown_user_id_is_not_found(api: Api, user: str) -> None:
    """A typo in a payment is reported at once."""
    admin, before = api.of("user-root", "admin"), items(api.world, "credits")
    grant = {"credits": 500, "reason": "pack", "grant_id": "payment"}
    assert admin.call("PUT", f"/v1/admin/users/{user}/plan", {"plan": "pro"}).status == 404
    assert admin.call("POST", f"/v1/admin/users/{user}/grants", grant).status == 404
    assert admin.call("GET", f"/v1/admin/users/{user}/credits").status == 404
    assert admin.call("GET", f"/v1/admin/users/{user}/spending").status == 404
    assert items(api.world, "credits") == before


def test_a_users_name_is_not_their_id(api: Api) -> None:
    admin, pool = api.of("user-root", "admin"), api.module.settings.user_pool_id
    listed = api.module.cognito.list_users(UserPoolId=pool, Filter=f'sub = "{api.user}"')["Users"]
    assert admin.call("GET", f"/v1/admin/users/{listed[0]['Username']}/credits").status == 404


def test_users_cannot_be_looked_up_while_the_pool_is_unavailable(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = UserPool(api.module.cognito, "us-east-1_nopool")
    monkeypatch.setattr(api.module, "user_pool", elsewhere)
    answer = api.of("user-root", "admin").call("GET", f"/v1/admin/users/{api.user}/credits")
    assert (answer.status, answer.code) == (503, "unavailable")


# ── the log ───────────────────────────────────────────────────────────────────────────────────────


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    fields = ("route", "status", "user_hash", "correlation_id")
    lines = [vars(record) for record in caplog.records if record.message == "Request"]
    assert all(isinstance(line["milliseconds"], int) and line["milliseconds"] >= 0 for line in lines)
    return [{name: line[name] for name in fields if name in line} for line in lines]


def test_each_request_leaves_a_line_with_its_declared_route(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    chat_id = api.call("POST", "/v1/chats", {"message": "Hello."}).json["chat_id"]
    api.call("GET", f"/v1/chats/{chat_id}")
    api.call("GET", "/v1/admin/users/somebody/credits")
    api.call("GET", "/v1/nothing")
    known = {"user_hash": user_hash(api.user)}
    assert lines_of(caplog) == [
        {"route": "POST /v1/chats", "status": 202, "correlation_id": chat_id, **known},
        {"route": "GET /v1/chats/{chat_id}", "status": 200, "correlation_id": chat_id, **known},
        {"route": "GET /v1/admin/users/{user_id}/credits", "status": 403, **known},
        {"route": "none", "status": 404, **known},
    ]
    assert api.user not in "".join(
        repr(vars(record)) for record in caplog.records if record.message == "Request"
    )


def test_a_request_that_breaks_leaves_a_line_too(
    api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(api.module, "stores", None)
    assert api.call("GET", "/v1/credits").status == 500
    assert [(line["route"], line["status"]) for line in lines_of(caplog)] == [("GET /v1/credits", 500)]


# ── GitHub ────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_is_made_and_removed_and_its_token_is_never_shown(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "/v1/connections/github"
    assert api.get(where) == {"connected": False}
    connected = api.call("PUT", where, {"token": TOKEN})
    assert (connected.status, connected.json) == (200, {"connected": True})
    assert api.get(where) == {"connected": True}
    assert api.of("user-somebody").get(where) == {"connected": False}
    stored = items(api.world, "cache")
    assert TOKEN not in repr(stored)
    assert TOKEN not in "".join(capsys.readouterr())
    assert api.module.connections.token(api.user) == TOKEN
    for _ in range(2):
        assert api.call("DELETE", where).status == 204
    assert api.get(where) == {"connected": False}


@pytest.mark.parametrize(
    "token", ["", "x", "ghp_", "ghp_ab\ncd", TOKEN + "\r\nX: y", "ghp_" + "a" * 1000, None, 5, ["ghp_a"]]
)
def test_an_invalid_github_token_is_refused_without_echoing_it(api: Api, token: object) -> None:
    answer = api.call("PUT", "/v1/connections/github", {"token": token})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert "X: y" not in answer.text
    assert "aaaa" not in answer.text


# ── the bucket ────────────────────────────────────────────────────────────────────────────────────


def test_a_burst_of_a_hundred_requests_is_served_then_refused_with_retry_after(api: Api) -> None:
    api.world.clock.now -= api.world.clock.now % 60  # the start of a window
    for _ in range(120):
        assert api.call("GET", "/v1/connections/github").status == 200
    _use_up(api)
    answer = api.call("GET", "/v1/credits")
    assert (answer.status, answer.code) == (429, "rate_limited")
    wait = int(answer.headers["Retry-After"])
    assert 1 <= wait <= 60
    documented = openapi_document(ROUTES)["paths"]["/v1/chats/{chat_id}/events"]["get"]["responses"]["429"]
    assert set(documented["headers"]) == {"Retry-After"}
    refused = api.call("POST", "/v1/chats", {"message": "Hi."}, {"Idempotency-Key": "k"})
    assert refused.status == 429
    assert api.of("user-somebody-else").call("GET", "/v1/credits").status == 200
    assert api.call("GET", "/health").status == 200
    api.world.clock.now += wait
    assert api.call("GET", "/v1/credits").status == 200
    assert api.get("/v1/conversations") == {"conversations": []}, "a refused request has no effect"


def _use_up(api: Api) -> None:
    """Count the rest of the window's requests as sent."""
    window = int(api.world.clock.now) // 60 * 60
    api.world.stores.chats.client.update_item(
        TableName="chats",
        Key={"pk": {"S": f"USER#{api.user}"}, "sk": {"S": f"RATE#{window}"}},
        UpdateExpression="SET requests = :all",
        ExpressionAttributeValues={":all": {"N": str(REQUESTS_PER_WINDOW)}},
    )


# ── pages of other origins ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("origin", [ORIGIN, OTHER_ORIGIN])
@pytest.mark.parametrize(
    ("method", "target", "status"),
    [("GET", "/v1/credits", 200), ("GET", "/v1/chats/none", 404), ("GET", "/v1/none", 404), ("POST", "/v1/chats", 400),
     ("PUT", "/v1/chats", 404), ("DELETE", "/v1/connections/github", 204), ("GET", "/v1/admin/users/x/credits", 403)],
)  # fmt: skip
def test_a_page_of_a_configured_origin_reads_every_answer(
    api: Api, origin: str, method: str, target: str, status: int
) -> None:
    answer = api.call(method, target, headers={"Origin": origin})
    assert answer.status == status
    assert answer.headers["Access-Control-Allow-Origin"] == origin
    assert {"Location", "Retry-After"} <= set(answer.headers["Access-Control-Expose-Headers"].split(","))


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{ORIGIN}.evil.example", ORIGIN.upper()])
def test_a_page_of_another_origin_reads_nothing(api: Api, origin: str) -> None:
    answer = api.call("GET", "/v1/credits", headers={"Origin": origin})
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_preflight_is_answered_for_every_route(api: Api) -> None:
    for path, operations in openapi_document(ROUTES)["paths"].items():
        answer = api.call("OPTIONS", path.replace("{", "").replace("}", ""), headers={"Origin": OTHER_ORIGIN})
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == OTHER_ORIGIN
        allowed = answer.headers["Access-Control-Allow-Methods"].split(",")
        assert {method.upper() for method in operations} <= set(allowed)
        requested = {"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"}
        assert requested <= set(answer.headers["Access-Control-Allow-Headers"].split(","))


# ── internal errors ───────────────────────────────────────────────────────────────────────────────


def test_an_internal_error_does_not_reveal_its_cause(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret cause")

    monkeypatch.setattr("dualtrack.api.request.count_request", broken)
    answer = api.call("GET", "/v1/credits", headers={"Origin": ORIGIN})
    assert (answer.status, answer.code) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_answers_may_not_be_cached(api: Api) -> None:
    assert api.call("GET", "/v1/credits").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("address", "api"),
    [
        ("https://chat.example.org/openapi.json", "https://chat.example.org/"),
        (
            "https://a1.execute-api.eu-central-1.amazonaws.com/live/openapi.json",
            "https://a1.execute-api.eu-central-1.amazonaws.com/live/",
        ),
    ],
)
def test_the_document_names_its_server_at_every_address(address: str, api: str) -> None:
    """OpenAPI 3.1, "Server Object": a relative address is resolved against the document's own."""
    (server,) = openapi_document(ROUTES)["servers"]
    assert urljoin(address, server["url"]) == api
