"""How much one user may hold open at a time: leases are taken, released or expire, never more than the limit."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from dualtrack.errors import ApiError
from dualtrack.storage.leases import STREAMS, WAITS, Lease, LeaseLimit, Leases, with_lease
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TABLE = "cache"
NOW = 1_795_000_000
TWO = LeaseLimit("TWO", "things", limit=2, seconds=60)


def lease(name: str, bound: LeaseLimit = TWO) -> Lease:
    return Lease("ann", bound, name)


# ── the decision ──────────────────────────────────────────────────────────────────────────────────


def test_a_lease_is_granted_up_to_the_limit() -> None:
    first = with_lease({}, lease("a"), NOW)
    both = with_lease(first, lease("b"), NOW + 1)
    assert both == {"a": NOW + 60, "b": NOW + 61}
    with pytest.raises(ApiError) as refused:
        with_lease(both, lease("c"), NOW + 58)
    assert (refused.value.code, refused.value.extra) == ("rate_limited", {"retry_after": 2})
    assert with_lease(both, lease("c"), NOW + 60) == {"b": NOW + 61, "c": NOW + 120}


def test_a_write_repeated_after_a_lost_response_takes_one_lease() -> None:
    both = with_lease(with_lease({}, lease("a"), NOW), lease("b"), NOW)
    assert with_lease(both, lease("b"), NOW) == both


@given(
    st.dictionaries(st.text("abc", min_size=1), st.integers(NOW - 100, NOW + 100), max_size=8),
    st.integers(NOW - 100, NOW + 100),
)
def test_the_limit_is_kept_whatever_is_stored(held: dict[str, int], now: int) -> None:
    current = {key: ends for key, ends in held.items() if ends > now}
    if len(current) < TWO.limit:
        assert with_lease(held, lease("new"), now) == {**current, "new": now + TWO.seconds}
        return
    with pytest.raises(ApiError) as refused:
        with_lease(held, lease("new"), now)
    assert 1 <= int(str(refused.value.extra["retry_after"])) <= 10


def test_the_limits_are_the_contracts() -> None:
    assert (STREAMS.limit, WAITS.limit) == (5, 3)


# ── the store ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def client() -> Iterator[Any]:
    """The cache table, in this process."""
    with aws_in_process():
        new_client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(new_client, TABLE)
        yield new_client


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def leases(client: Any, clock: FakeClock) -> Leases:
    return Leases(client, TABLE, clock)


def refusal(take: Callable[[], object]) -> str:
    with pytest.raises(ApiError) as refused:
        take()
    return refused.value.code


def items(client: Any) -> list[Any]:
    return list(client.scan(TableName=TABLE)["Items"])


def test_a_released_lease_can_be_taken_again(leases: Leases) -> None:
    first, _ = leases.take("ann", TWO), leases.take("ann", TWO)
    assert refusal(lambda: leases.take("ann", TWO)) == "rate_limited"
    leases.free(first)
    leases.take("ann", TWO)
    assert refusal(lambda: leases.take("ann", TWO)) == "rate_limited"


def test_each_user_and_each_kind_has_leases_of_its_own(leases: Leases) -> None:
    other = LeaseLimit("OTHER", "others", limit=1, seconds=60)
    for user in ("ann", "bob"):
        assert {leases.take(user, TWO).user for _ in range(2)} == {user}
        assert leases.take(user, other).bound == other


def test_a_lease_that_is_never_released_expires(leases: Leases, clock: FakeClock, client: Any) -> None:
    for _ in range(2):
        leases.take("ann", TWO)
    clock.sleep(TWO.seconds - 2)
    assert refusal(lambda: leases.take("ann", TWO)) == "rate_limited"
    clock.sleep(2)
    leases.take("ann", TWO)
    (item,) = items(client)
    assert len(item["leases"]["M"]) == 1, "expired leases are not kept"
    assert int(item["ttl"]["N"]) == int(clock()) + TWO.seconds, "DynamoDB deletes the rest"


OPEN = LeaseLimit("OPEN", "open things", limit=3, seconds=60, is_stream=True)


@pytest.mark.parametrize("most", [1, 7, 50])
def test_all_users_together_have_at_most_the_stages_streams_open(
    client: Any, clock: FakeClock, most: int
) -> None:
    leases = Leases(client, TABLE, clock, most)
    taken = []
    for number in range(3 * most):
        with contextlib.suppress(ApiError):
            taken.append(leases.take(f"user-{number}", OPEN))
    assert most * 0.6 <= len(taken) <= most, "two of the stage's items are looked at"
    assert refusal(lambda: [leases.take(f"later-{n}", OPEN) for n in range(most + 1)]) == "rate_limited"
    for lease in taken:
        leases.free(lease)
    clock.sleep(OPEN.seconds + 1)
    for _ in range(OPEN.limit):
        with contextlib.suppress(ApiError):
            leases.free(leases.take("ann", OPEN))
    held = [item["leases"]["M"] for item in items(client) if item["pk"]["S"].startswith("LEASE#stage ")]
    assert max(map(len, held)) <= 20
    other = LeaseLimit("OTHER", "no streams", limit=1, seconds=60)
    assert leases.take("bob", other).of_stage is None


def test_who_the_stage_refuses_holds_no_lease_of_their_own(client: Any, clock: FakeClock) -> None:
    leases = Leases(client, TABLE, clock, 1)
    first = leases.take("ann", OPEN)
    for _ in range(OPEN.limit + 1):
        assert refusal(lambda: leases.take("bob", OPEN)) == "rate_limited"
    leases.free(first)
    assert leases.take("bob", OPEN).of_stage, "the stage's and the user's own are free again"


def test_releasing_twice_or_late_does_not_affect_others(leases: Leases, clock: FakeClock) -> None:
    late = leases.take("ann", TWO)
    clock.sleep(TWO.seconds + 1)
    for _ in range(2):
        leases.take("ann", TWO)
    leases.free(late)
    leases.free(late)
    assert refusal(lambda: leases.take("ann", TWO)) == "rate_limited"
    leases.free(Lease("nobody", TWO, "none"))


class Overtaken:
    """A client that lets others act just before each of its first writes."""

    def __init__(self, client: Any, *others: Callable[[], object]) -> None:
        self.client = client
        self.others = list(others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def update_item(self, **request: Any) -> Any:
        """Let the next of the others act, then write."""
        if self.others:
            self.others.pop(0)()
        return self.client.update_item(**request)


@pytest.mark.parametrize("held", [0, 1])
def test_of_two_racing_for_the_last_lease_only_one_gets_it(leases: Leases, client: Any, held: int) -> None:
    """The rival acts between the read and the write, in every possible way."""
    bound = LeaseLimit("RACE", "things", limit=held + 1, seconds=60)
    for _ in range(held):
        leases.take("ann", bound)
    rivals: list[Lease] = []
    pauses: list[Callable[[], object]] = [lambda: None] * held
    raced: Any = Overtaken(client, *pauses, lambda: rivals.append(leases.take("ann", bound)))
    assert refusal(lambda: Leases(raced, TABLE, leases.clock).take("ann", bound)) == "rate_limited"
    assert len(rivals) == 1
    (item,) = items(client)
    assert len(item["leases"]["M"]) == bound.limit


def test_after_losing_too_many_races_it_is_refused(leases: Leases, client: Any) -> None:
    wide = LeaseLimit("WIDE", "things", limit=1_000, seconds=60)
    crowd: Any = Overtaken(client, *[lambda: leases.take("ann", wide)] * 100)
    assert refusal(lambda: Leases(crowd, TABLE, leases.clock).take("ann", wide)) == "rate_limited"
    assert crowd.others, "it gave up"


class Broken:
    """A client whose writes fail."""

    def __init__(self, client: Any, error: Exception) -> None:
        self.client = client
        self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def update_item(self, **_: Any) -> Any:
        """Raises."""
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "UpdateItem"),
        EndpointConnectionError(endpoint_url="https://dynamodb"),
    ],
)
def test_without_the_table_no_lease_is_granted_and_nothing_else_fails(
    leases: Leases, client: Any, error: Exception
) -> None:
    failing: Any = Broken(client, error)
    broken = Leases(failing, TABLE, leases.clock)
    assert refusal(lambda: broken.take("ann", TWO)) == "unavailable"
    broken.free(leases.take("ann", TWO))
