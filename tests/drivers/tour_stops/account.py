"""/v1/me, /v1/credits, /v1/connections, /v1/keys: a user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.drivers.tour import stop

if TYPE_CHECKING:
    from tests.drivers.tour import Visit

GITHUB = "/v1/connections/github"
KEYS = "POST /v1/keys"


@stop("DELETE /v1/me")
def the_user_is_erased(visit: Visit) -> None:
    visit.chat()
    assert visit.ask(status=202).json() == {"status": "erasing"}
    assert visit.owner.http.get("/v1/credits").status_code == 401


@stop("DELETE /v1/me/users/{name}")
def an_end_user_is_erased(visit: Visit) -> None:
    service = visit.key("chat", "read", acts_for="any")
    named = {"Authorization": f"Bearer {service}", "X-Dualtrack-User": "kim"}
    where = visit.owner.http.post("/v1/conversations", json={}, headers=named).headers["Location"]
    assert visit.owner.http.get(where, headers=named).status_code == 200
    visit.ask(name="kim", status=202)
    # the name can be used again when all is deleted
    after = visit.owner.http.get(where, headers=named)
    assert after.status_code in (403, 404), after.text


@stop("GET /v1/credits")
def the_balance(visit: Visit) -> None:
    used = visit.chat()["credits_used"]
    assert visit.ask().json()["daily"]["used"] == used == 5


@stop("GET /v1/credits/ledger", "cursor", "limit")
def the_ledger(visit: Visit) -> None:
    visit.chat()
    whole = visit.owner.get("/v1/credits/ledger")["entries"]
    first = visit.ask(query={"limit": 1}).json()
    second = visit.ask(query={"limit": 1, "cursor": first["cursor"]}).json()
    assert [*first["entries"], *second["entries"]] == whole[:2]


@stop("GET /v1/credits/spending", "days")
def the_spending(visit: Visit) -> None:
    visit.chat()
    (day,) = visit.ask(query={"days": 1}).json()["days"]
    assert (day["chats"], day["credits"]) == (1, 5)


@stop(f"PUT {GITHUB}", "token")
def github_is_connected(visit: Visit) -> None:
    visit.ask({"token": "github_pat_" + "a" * 40})
    assert visit.owner.get(GITHUB) == {"connected": True}


@stop(f"GET {GITHUB}")
def whether_github_is_connected(visit: Visit) -> None:
    assert visit.ask().json() == {"connected": False}


@stop(f"DELETE {GITHUB}")
def github_is_disconnected(visit: Visit) -> None:
    visit.owner.http.put(GITHUB, json={"token": "github_pat_" + "a" * 40})
    visit.ask(status=204)
    assert visit.owner.get(GITHUB) == {"connected": False}


def _works(visit: Visit, key: str, **headers: str) -> int:
    """The status of a chat's request by a key."""
    given = {"Authorization": f"Bearer {key}", **headers}
    return visit.owner.http.post("/v1/conversations", json={}, headers=given).status_code


@stop(KEYS, "name", "scopes", "profiles", "expires_in", "acts_for")
def a_key_is_made(visit: Visit) -> None:
    body = {"name": "server", "scopes": ["chat"], "profiles": ["small"], "expires_in": 60, "acts_for": "any"}
    made = visit.ask(body, status=201).json()
    assert {name: made[name] for name in ("name", "scopes", "profiles", "acts_for")} == {
        name: value for name, value in body.items() if name != "expires_in"
    }
    assert made["expires_at"]
    assert _works(visit, made["key"]) == 400, "it names no end user"
    assert _works(visit, made["key"], **{"X-Dualtrack-User": "kim"}) == 403, "of the agent assistant"


_CAPS = {"credits_day": 4, "credits_total": 100, "dollars_day": 1.5, "dollars_total": 2.5}
_CAP_FIELDS = ("caps", *(f"caps.{name}" for name in _CAPS))


@stop(KEYS, *_CAP_FIELDS)
def a_key_with_caps(visit: Visit) -> None:
    made = visit.ask({"name": "server", "scopes": ["chat"], "caps": _CAPS}, status=201).json()
    assert made["caps"] == _CAPS
    by_key = {"Authorization": f"Bearer {made['key']}"}
    refused = visit.owner.http.post("/v1/chats", json={"message": "Hello."}, headers=by_key)
    assert refused.json()["error"]["code"] == "key_cap_reached"


def _key(visit: Visit) -> dict[str, Any]:
    made = visit.owner.http.post("/v1/keys", json={"name": "server", "scopes": ["chat"]})
    return dict(made.json())


@stop("GET /v1/keys")
def the_keys(visit: Visit) -> None:
    made = _key(visit)
    (listed,) = visit.ask().json()["keys"]
    assert listed == {name: value for name, value in made.items() if name != "key"}


@stop("PATCH /v1/keys/{key_id}", "name", *_CAP_FIELDS)
def a_key_is_changed(visit: Visit) -> None:
    made = _key(visit)
    changed = visit.ask({"name": "report", "caps": _CAPS}, key_id=made["key_id"]).json()
    assert (changed["name"], changed["caps"]) == ("report", _CAPS)


@stop("POST /v1/keys/{key_id}/rotate", "overlap")
def a_key_gets_a_new_secret(visit: Visit) -> None:
    made = _key(visit)
    rotated = visit.ask({"overlap": 0}, key_id=made["key_id"]).json()
    assert (_works(visit, rotated["key"]), _works(visit, made["key"])) == (201, 401)


@stop("DELETE /v1/keys/{key_id}", "cancel")
def a_key_is_revoked_with_its_chats(visit: Visit) -> None:
    made = _key(visit)
    by_key = {"Authorization": f"Bearer {made['key']}"}
    visit.script.asks(("kit_hold", {"name": visit.script.marker}))
    asked = {"message": visit.script.question()}
    started = visit.owner.http.post("/v1/chats", json=asked, headers=by_key).json()
    assert visit.tools.gate(visit.script.marker).arrived.wait(60)
    visit.ask(query={"cancel": "true"}, key_id=made["key_id"], status=204)
    assert visit.finish(started["chat_id"])["status"] == "cancelled"
    assert _works(visit, made["key"]) == 401
