"""Attacks on API keys (docs/keys.md): against the API's own function, on stores in memory and a clock that is a value.

Each attack is played a number of times and raises `AssertionError` at the first one that does not hold. Whoever attacks
has what an attacker may have: ids from receipts, keys of their own, any bytes, many requests at once.
"""

from __future__ import annotations

import contextlib
import random
import string
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.api.key_format import new_key, new_key_id, parse_key
from dualtrack.api.keys import revoke_key
from dualtrack.api.table import ROUTES
from dualtrack.credits.audit import audit
from dualtrack.credits.keys import CAPS, KeyUse
from dualtrack.errors import ApiError
from dualtrack.plugin import plugins
from dualtrack.storage.keys import KEY_REQUESTS

from tests.clients.api_client import BODIES, items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.clients.api_client import Answer, Api

    Play = Callable[[Api, int], int]

IDS: Final = {
    "user_id": "u",
    "corpus": "courses",
    "server": "docs",
    "job_id": f"jb_{'0' * 26}",
    "document_id": "0" * 32,
    "chat_id": f"ch_{'0' * 26}",
    "conversation_id": f"cv_{'0' * 26}",
    "record_id": "q1",
    "place": "1",
    "key_id": f"key_{'0' * 16}",
    "name": "ann",
    "tool": "write_note",
    **{name: form.example for plugin in plugins() for name, form in plugin.ids.items()},
}
"""Parameters of paths, well-formed, of what does not exist."""

HOSTILE_NAMES: Final = (
    "",
    " ",
    ".",
    "..",
    "a/b",
    "../../v1/me",
    "a\\b",
    "%2e%2e",
    "a%2Fb",
    "a%252Fb",
    "%",
    "%zz",
    "%ff",
    "x" * 257,
    "x" * 1_000_000,
    "%00",
    "a%0Ab",
    "ann%E2%80%8B",  # zero width
    "%E2%80%AEnna",  # right to left
    "Jürgen",  # a header is ASCII
    "cc%81" * 300,
)
"""Names of end users that are none."""

WRONG_CAPS: Final = (
    "-1",
    "-0.01",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "1e40",
    '"1"',
    "true",
    "[1]",
    "{}",
)
"""Numbers in JSON that are no caps."""


@dataclass(frozen=True, slots=True)
class Attack:
    """What is tried, how often in the long form, and what holds. ``play``: tries it as often as it is told, and returns
    the number of tries."""

    what: str
    times: int
    held: str
    play: Play


ATTACKS: Final[list[Attack]] = []


def attack(what: str, times: int, held: str) -> Callable[[Play], Play]:
    """Declare an attack."""

    def declared(play: Play) -> Play:
        ATTACKS.append(Attack(what, times, held, play))
        return play

    return declared


@contextlib.contextmanager
def counted(api: Api) -> Iterator[Counter[str]]:
    """The requests that the function makes of the tables within the block, by operation."""
    calls: Counter[str] = Counter()
    events = api.dynamodb.meta.events

    def count(model: Any, **_: Any) -> None:
        calls[model.name] += 1

    events.register("before-call.dynamodb", count, unique_id="counted")
    try:
        yield calls
    finally:
        events.unregister("before-call.dynamodb", unique_id="counted")


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each returns, or the `ApiError` that it raises."""

    def outcome(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ApiError as refusal:
            return refusal

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(outcome, calls))


def new_minute(api: Api) -> None:
    """Begin a minute in which nobody has asked yet."""
    api.world.clock.now = api.world.clock.now // 60 * 60 + 120


def _refused(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.code) == (status, code), answer


def _unauthorized_without_a_request(api: Api, text: str) -> None:
    with counted(api) as calls:
        _refused(api.by_key(text).call("GET", "/v1/tools"), 401, "unauthorized")
    assert calls == {}


# ── guessing ──────────────────────────────────────────────────────────────────────────────────────


@attack("a key with one wrong character, at each place", 570, "401, without a request of a table")
def _mistyped(api: Api, times: int) -> int:
    key, drawn = api.make_key("read")["key"], random.Random(1)
    for number in range(times):
        place = number % len(key)
        other = drawn.choice([sign for sign in string.ascii_letters + string.digits if sign != key[place]])
        _unauthorized_without_a_request(api, key[:place] + other + key[place + 1 :])
    return times


@attack("junk of 1 to 100,000 characters behind `dt_`", 200, "401, without a request of a table")
def _junk(api: Api, times: int) -> int:
    drawn = random.Random(2)
    for _ in range(times):
        length = int(10 ** drawn.uniform(0, 5))
        _unauthorized_without_a_request(api, "dt_" + "".join(drawn.choices(string.printable[:94], k=length)))
    return times


@attack(
    "a guessed secret, with its checksum, for an id that exists or not",
    1_000,
    "401; no minute of the key or of its owner is used up",
)
def _guessed(api: Api, times: int) -> int:
    made = api.make_key("read")
    api.by_key(made["key"]).get("/v1/credits")

    def counters() -> list[Any]:
        own = (made["key_id"], api.user)
        return [item.get("requests") for item in items(api.world, "chats") if item["pk"]["S"].endswith(own)]

    before = counters()
    for number in range(times):
        guess = new_key(made["key_id"] if number % 2 else new_key_id())
        _refused(api.by_key(guess).call("GET", "/v1/tools"), 401, "unauthorized")
    assert counters() == before
    return times


@attack(
    "a key that was revoked, has expired this second, or was rotated away",
    150,
    "401 with the very next request",
)
def _over(api: Api, times: int) -> int:
    for number in range(times):
        if not number % 15:
            new_minute(api)
            api = api.of_new_user()
        made = api.make_key("read", expires_in=100)
        by_key, where = api.by_key(made["key"]), f"/v1/keys/{made['key_id']}"
        by_key.get("/v1/credits")
        match number % 3:
            case 0:
                api.world.clock.now += 100
            case 1:
                assert api.call("POST", f"{where}/rotate", {"overlap": 0}).status == 200
            case _:
                assert api.call("DELETE", where).status == 204
        _refused(by_key.call("GET", "/v1/credits"), 401, "unauthorized")
    return times


@attack(
    "more requests in a minute than a key has",
    700,
    f"429 from the {KEY_REQUESTS + 1}st on; its owner goes on",
)
def _flood(api: Api, times: int) -> int:
    new_minute(api)
    by_key = api.by_key(api.make_key("read")["key"])
    statuses = [by_key.call("GET", "/v1/tools").status for _ in range(times)]
    assert statuses == [200] * min(times, KEY_REQUESTS) + [429] * max(0, times - KEY_REQUESTS)
    api.get("/v1/credits")
    return times


# ── reaching for more ─────────────────────────────────────────────────────────────────────────────


@attack("each route with a key that lacks its scope, or that no key may have", 1, "403 that names the scope")
def _scopes(api: Api, times: int) -> int:
    scopes, tried = ("chat", "read", "decide", "hooks", "erase"), 0
    keys = {scope: api.by_key(api.make_key(scope)["key"]) for scope in scopes}
    for route in [route for route in ROUTES if route.access != "open" and route.serve] * times:
        target, body = route.path.format(**IDS), BODIES[route.body] if route.body else None
        for scope in set(scopes) - set(route.scopes):
            answer = keys[scope].call(route.method.upper(), target, body)
            _refused(answer, 403, "forbidden")
            assert answer.json["error"].get("scope") == (route.scopes[-1] if route.scopes else None)
            tried += 1
    return tried


@attack(
    "chats of other end users, of a namesake under another owner, of another key without `read`: read, "
    "cancelled, continued, forked, renamed",
    20,
    "404; 403 where it is the same user's",
)
def _others(api: Api, times: int) -> int:
    other, tried = api.of_new_user(), 0
    made = [one.make_key("chat", "read", "erase", acts_for="any", caps={})["key"] for one in (api, other)]
    own = [api.by_key(api.make_key("chat")["key"]) for _ in range(2)]
    for number in range(times):
        new_minute(api)
        api.world.stores.ledger.grant(api.user, f"g{number}", 100, "test", api.world.clock())
        cases = (
            (api.by_key(made[0], f"ann-{number}"), api.by_key(made[0], "bob"), 404),
            (api.by_key(made[0], f"ann-{number}"), other.by_key(made[1], f"ann-{number}"), 404),
            (own[0], own[1], 403),
        )
        for victim, attacker, status in cases:
            chat = victim.start("A secret.")
            where, conversation = chat["url"], f"/v1/conversations/{chat['conversation_id']}"
            asked = {"message": "What was said?", "conversation_id": chat["conversation_id"]}
            for method, target, body in (
                ("GET", where, None),
                ("GET", f"{where}/receipt", None),
                ("DELETE", where, None),
                ("POST", "/v1/chats", asked),
                ("POST", f"{conversation}/fork", {"before": "q1"}),
                ("PATCH", conversation, {"title": "Mine"}),
            ):
                assert attacker.call(method, target, body).status == status, (method, target)
                tried += 1
            victim.call("DELETE", where)
    return tried


@attack(
    "two Authorization headers, two names, a name with a token or another key, a key where tokens are verified, a "
    "token where keys are",
    50,
    "401, or 400 for a name",
)
def _mixed(api: Api, times: int) -> int:
    new_minute(api)
    plain, service = api.make_key("chat")["key"], api.make_key("chat", acts_for="any")["key"]
    token = api.event("GET", "/v1/tools")["multiValueHeaders"]["Authorization"][0]
    by = f"Bearer {plain}"
    cases: list[tuple[Api, dict[str, list[str]], int]] = [
        (api.by_key(plain), {"Authorization": [by, token]}, 401),
        (api.by_key(plain), {"Authorization": [token]}, 401),
        (api.by_key(plain), {"Authorization": [by, by]}, 401),
        (api.by_key(plain), {"Authorization": [f"Basic {plain}"]}, 401),
        (api.by_key(plain), {"x-dualtrack-user": ["ann"]}, 400),
        (api, {"X-DUALTRACK-USER": ["ann"]}, 400),
        (api.by_key(service, "ann"), {"x-dualtrack-user": ["bob"]}, 400),
        (api.by_key(service), {}, 400),
    ]
    for _ in range(times):
        for caller, headers, status in cases:
            event = caller.event("GET", "/v1/tools")
            event["multiValueHeaders"] |= headers
            assert api.module.handler(event, api.context)["statusCode"] == status, headers
    return times * len(cases)


@attack("names of end users: empty, dots, paths, invisible, 1 MB, not UTF-8", 10, "400")
def _names(api: Api, times: int) -> int:
    key = api.make_key("chat", acts_for="any")["key"]
    for name in HOSTILE_NAMES * times:
        _refused(api.by_key(key, name).call("GET", "/v1/tools"), 400, "invalid_request")
    return times * len(HOSTILE_NAMES)


@attack(
    "names that look alike: Latin and Cyrillic, and accents in one character and in two",
    10,
    "two users where the letters differ, one where they are the same",
)
def _alike(api: Api, times: int) -> int:
    new_minute(api)
    key = api.make_key("chat", "read", acts_for="any")["key"]
    for number in range(times):
        seen: dict[str, str] = {}
        for name in ("Ren%C3%A9", "Rene%CC%81", "R%D0%B5n%C3%A9"):
            by_key = api.by_key(key, f"{name}{number}")
            made = by_key.call("POST", "/v1/conversations", {"title": name}).json["conversation_id"]
            listed = [one["conversation_id"] for one in by_key.get("/v1/conversations")["conversations"]]
            assert set(listed) & set(seen) == ({*seen} if name == "Rene%CC%81" else set())
            seen[made] = name
    return 3 * times


# ── spending ──────────────────────────────────────────────────────────────────────────────────────


@attack(
    "caps that are negative, NaN, infinite, text, too large or part of a credit", 10, "400; no cap changes"
)
def _caps(api: Api, times: int) -> int:
    new_minute(api)
    made = api.make_key("chat", caps={"credits_day": 7})
    where, tried = f"/v1/keys/{made['key_id']}", 0
    for number in [*WRONG_CAPS, "1.5"] * times:
        for cap in CAPS if number != "1.5" else ("credits_day", "credits_total"):
            answer = api.call("PATCH", where, raw=f'{{"caps": {{"{cap}": {number}}}}}')
            _refused(answer, 400, "invalid_request")
            tried += 1
        new_minute(api)
    assert api.get("/v1/keys")["keys"][0]["caps"] == {"credits_day": 7}
    return tried


def _start(api: Api, key_id: str, number: int) -> Callable[[], Any]:
    return lambda: api.world.start("Hello.", f"s_{number}", payer=api.user, key_id=key_id)


def _admitted(outcomes: Sequence[Any]) -> int:
    assert {one.code for one in outcomes if isinstance(one, ApiError)} <= {"key_cap_reached"}
    return sum(not isinstance(one, ApiError) for one in outcomes)


def _consistent(api: Api) -> None:
    ledger = api.world.stores.ledger
    assert audit(ledger.load(api.user), ledger.movements(api.user)) == ()


@attack("fifty chats at once at a cap for three", 10, "three are admitted; 402 for the others")
def _crowd(api: Api, times: int) -> int:
    probe = api.make_key("chat")["key_id"]
    _start(api, probe, 0)()
    held = api.get("/v1/keys")["keys"][0]["held"]["dollars_day"]
    for number in range(times):
        owner = api.of_new_user()
        owner.world.stores.ledger.grant(owner.user, "g", 1_000, "test", owner.world.clock())
        caps = {"dollars_day": 3.5 * held} if number % 2 else {"credits_total": 15}
        key_id = owner.make_key("chat", caps=caps)["key_id"]
        assert _admitted(at_once([_start(owner, key_id, place) for place in range(50)])) == 3
        _consistent(owner)
    return 50 * times


@attack(
    "twenty chats and ten changes of the cap between 5 and 15 at once",
    10,
    "never more than three held, and what is on record adds up",
)
def _moving_cap(api: Api, times: int) -> int:
    for _ in range(times):
        owner = api.of_new_user()
        ledger = owner.world.stores.ledger
        key_id = owner.make_key("chat", caps={"credits_total": 15})["key_id"]
        change, now = partial(ledger.change_caps, owner.user, key_id), owner.world.clock()
        changes = [partial(change, {"credits_total": value}, now) for value in (5, 15) * 5]
        outcomes = at_once([*changes, *[_start(owner, key_id, number) for number in range(20)]])
        assert 1 <= _admitted(outcomes[10:]) <= 3
        _consistent(owner)
    return 30 * times


@attack(
    "revoking four times at once while ten chats start",
    10,
    "one line says revoked, and no chat starts afterwards",
)
def _revoked(api: Api, times: int) -> int:
    for _ in range(times):
        owner = api.of_new_user()
        stores, executions = owner.module.stores, owner.module.executions
        key_id = owner.make_key("chat", caps={"credits_total": 15})["key_id"]
        deletion = partial(revoke_key, stores, executions, owner.user, key_id, cancels=False)
        at_once([*[deletion] * 4, *[_start(owner, key_id, number) for number in range(10)]])
        (late,) = at_once([_start(owner, key_id, 11)])
        assert isinstance(late, ApiError)
        assert late.status == 401
        lines = stores.ledger.movements(owner.user)
        assert [line.reason for line in lines if line.kind == "caps"] == ["credits_total 15", "revoked"]
        _consistent(owner)
    return 15 * times


@attack(
    "a key of an administrator, one of a service for a hundred names, and 20 keys of one user, each beyond its cap",
    1,
    "402 with the cap; nothing is without it",
)
def _bypass(api: Api, times: int) -> int:
    admin = replace(api.of_new_user(), groups="admin")
    caps = {"credits_day": 5}
    tried = 0
    for _ in range(times):
        key = admin.make_key("chat", "admin:grant", caps=caps)["key"]
        admin.by_key(key).start()
        _refused(admin.by_key(key).call("POST", "/v1/chats", {"message": "More."}), 402, "key_cap_reached")
        tried += 2
    service = api.make_key("chat", acts_for="any", caps=caps)["key"]
    statuses = Counter(
        api.by_key(service, f"name {number}").call("POST", "/v1/chats", {"message": "Hello."}).status
        for number in range(100 * times)
    )
    assert statuses == {202: 1, 402: 100 * times - 1}
    many = api.of_new_user()
    keys = [many.make_key("chat", caps={"credits_total": 0})["key"] for _ in range(20)]
    for key in keys:
        _refused(many.by_key(key).call("POST", "/v1/chats", {"message": "Hello."}), 402, "key_cap_reached")
    assert many.world.stores.ledger.load(many.user).keys[_id(keys[0])].used == KeyUse().used
    return tried + 100 * times + 20


def _id(key: str) -> str:
    presented = parse_key(key)
    assert presented is not None
    return presented.key_id
