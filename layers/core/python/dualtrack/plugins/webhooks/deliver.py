"""What was noted is told to webhooks, at least once, under the same id (CONTRACT 4).

the notices of an owner ─► a delivery for each webhook that wants it     a transaction for some thirty notices
a webhook with deliveries that are due ─► claim it ─► POST some, oldest first ─► record what came back ─► release it

A slow receiver delays nobody else's: a webhook that fails, or took over a second for its last answer, is served apart
from the others, by workers of its own; the others get a bounded go each, the first webhook of every owner before the
second of any. A run that dies has told what it has recorded, perhaps a few more; its claims end by themselves.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.notices import Notice
from dualtrack.plugins.webhooks.signing import signed
from dualtrack.plugins.webhooks.values import SLOW_MS
from dualtrack.runtime.time_limit import time_for
from dualtrack.storage.dynamo import until_kept

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.plugins.webhooks.post import Poster, PostOutcome
    from dualtrack.plugins.webhooks.signing import WebhookSecrets
    from dualtrack.plugins.webhooks.store import WebhookStore
    from dualtrack.plugins.webhooks.values import Delivery, Due, Webhook

T = TypeVar("T")
R = TypeVar("R")

WAITS: Final = (10, 60, 5 * 60, 30 * 60, 2 * 3600, 8 * 3600)
"""Seconds until the next try; the last for all further ones."""

FAILING_SECONDS: Final = 3 * 86_400
"""A webhook that has taken nothing for so long is disabled."""

GIVEN_UP_SECONDS: Final = 4 * 86_400
"""A delivery is given up: later than its webhook is disabled, if that takes nothing else."""

GONE: Final = "It answered 410 Gone."
NOTHING_TAKEN: Final = "No delivery has arrived for three days."

WORKERS: Final = (16, 32)
"""Webhooks that are served at once: those that answer, and slow ones."""

AT_ONCE: Final = 20
"""Deliveries of a webhook in one go, of which the first is made alone, and the rest `CONNECTIONS` at a time."""

CONNECTIONS: Final = 4

GO_SECONDS: Final = 5.0
"""How long a go may begin deliveries."""

QUIET_SECONDS: Final = 30
"""How long a webhook that has not answered is left alone, however much waits for it."""

OnDisabled = Callable[[], None]
"""Called for each webhook that is disabled."""

CopyNotices = Callable[[Sequence[Notice]], Collection[str]]
"""Copies notices elsewhere; returns the ids of those that failed."""


@dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """Of a run: the notices that were taken from the outbox, and how many deliveries arrived and did not."""

    notices: int = 0
    delivered: int = 0
    failed: int = 0

    def __add__(self, other: DeliveryCounts) -> DeliveryCounts:
        """Both together."""
        return DeliveryCounts(
            self.notices + other.notices, self.delivered + other.delivered, self.failed + other.failed
        )


@dataclass(frozen=True, slots=True)
class Deliverer:
    """What a run needs. ``disabled`` is called for each webhook that is disabled; ``copied`` for the notices of an
    owner, again for those that failed; ``jitter``: from 0 to 1."""

    webhooks: WebhookStore
    secrets: WebhookSecrets
    poster: Poster
    agent: str
    disabled: OnDisabled = lambda: None
    copied: CopyNotices = lambda _: ()
    jitter: Callable[[], float] = field(default=random.random)

    def run(self, seconds: float) -> DeliveryCounts:
        """Deliver what is due, until nothing is or the time is over. Idempotent. The errors of single webhooks are
        raised at the end."""
        has_time, troubles = time_for(seconds), list[Exception]()
        with ThreadPoolExecutor(len(WORKERS)) as lanes:
            done = _results(lanes, partial(self._lane, has_time, troubles), (False, True), troubles)
        if troubles:
            raise ExceptionGroup("some webhooks could not be served", troubles)
        return sum(done, DeliveryCounts())

    def _lane(self, has_time: Callable[[], bool], troubles: list[Exception], slow: bool) -> DeliveryCounts:
        """Serve the slow webhooks, or the others, which come with the notices."""
        total = DeliveryCounts()
        with ThreadPoolExecutor(WORKERS[slow]) as pool:
            while has_time():
                done = self._pass(pool, has_time, troubles, slow=slow)
                total += done
                if done == DeliveryCounts() or troubles:
                    break
        return total

    def _pass(
        self,
        pool: ThreadPoolExecutor,
        has_time: Callable[[], bool],
        troubles: list[Exception],
        *,
        slow: bool,
    ) -> DeliveryCounts:
        due = list(self.webhooks.due(slow=slow))
        owners: dict[str, list[Due]] = {}
        for one in due:
            if one.is_notice:
                owners.setdefault(one.owner, []).append(one)
        woken = _results(pool, self._spread, list(owners.values()), troubles)
        listed = self.webhooks.named([one for one in due if not one.is_notice])
        hooks = {one.webhook_id: one for found in woken for one in found if not one.is_slow}
        hooks |= {one.webhook_id: one for one in listed}
        served = _results(pool, partial(self._served, has_time), in_turn(hooks.values()), troubles)
        return sum(served, DeliveryCounts(sum(map(len, owners.values()))))

    def _spread(self, dues: Sequence[Due]) -> Sequence[Webhook]:
        """Make an owner's notices deliveries to the webhooks that want them; returns the owner's webhooks."""
        owner = dues[0].owner

        def spread() -> Sequence[Webhook]:
            notices, hooks = self.webhooks.notices(dues), self.webhooks.of(owner)
            self.webhooks.spread(owner, notices, hooks, self.copied(notices))
            return hooks

        return until_kept(spread, "The webhooks changed too often.")

    def _served(self, has_time: Callable[[], bool], webhook: Webhook) -> DeliveryCounts:
        """Tell a webhook some of what is due."""
        if not has_time() or (claimed := self.webhooks.claim(webhook)) is None:
            return DeliveryCounts()
        due = self.webhooks.waiting(claimed, AT_ONCE, now=self._now)
        outcomes = self._go(claimed, due, has_time) if due else []
        after = reduce(lambda before, outcome: told(before, outcome, self._now), outcomes, claimed)
        is_silent = any(not outcome.status for outcome in outcomes)
        self.webhooks.release(claimed, after, self._now + QUIET_SECONDS if is_silent else 0)
        if after.disabled_at and not claimed.disabled_at:
            self.disabled()
        arrived = sum(outcome.is_delivered for outcome in outcomes)
        return DeliveryCounts(0, arrived, len(outcomes) - arrived)

    def _go(
        self, webhook: Webhook, due: Sequence[tuple[int, str]], has_time: Callable[[], bool]
    ) -> list[PostOutcome]:
        """Post these in order, until one is not answered, the webhook wants no more or turns out to be slow."""
        waiting = self.webhooks.at(webhook, [position for _, position in due])
        keys = [self.secrets.open(webhook.webhook_id, sealed) for sealed in webhook.secrets(self._now)]
        has_turn, over = time_for(GO_SECONDS), Event()

        def post(one: tuple[int, str]) -> list[PostOutcome]:
            if over.is_set() or not has_time() or not has_turn():
                return []
            delivery = waiting.get(one[1])
            if delivery is None:
                self.webhooks.record(webhook, one, None)
                return []
            outcome = self._posted(webhook, delivery, keys)
            self.webhooks.record(webhook, one, self._recorded(delivery, outcome))
            turned_slow = outcome.milliseconds > SLOW_MS and not webhook.is_slow
            if not outcome.status or outcome.is_gone or turned_slow:
                over.set()
            return [outcome]

        outcomes = post(due[0])
        if due[1:] and not over.is_set():
            with ThreadPoolExecutor(CONNECTIONS) as pool:
                outcomes += [outcome for made in pool.map(post, due[1:]) for outcome in made]
        return outcomes

    @property
    def _now(self) -> int:
        return int(self.webhooks.clock())

    def _posted(self, webhook: Webhook, delivery: Delivery, keys: Sequence[str]) -> PostOutcome:
        body = delivery.body.encode()
        headers = {"Content-Type": "application/json", "User-Agent": self.agent}
        return self.poster.post(
            webhook.url, body, {**headers, **signed(delivery.message_id, self._now, body, keys)}
        )

    def _recorded(self, delivery: Delivery, outcome: PostOutcome) -> Delivery:
        now = self._now
        after = replace(
            delivery,
            attempts=delivery.attempts + 1,
            tried_at=now,
            answer=outcome.status,
            error=outcome.error,
            milliseconds=outcome.milliseconds,
            next_at=0,
        )
        if outcome.is_delivered:
            return replace(after, status="delivered")
        if now - delivery.at // 1000 >= GIVEN_UP_SECONDS:
            return replace(after, status="failed")
        wait = WAITS[min(delivery.attempts, len(WAITS) - 1)]
        return replace(after, next_at=now + int(wait * (1 + self.jitter() / 10)))


def told(webhook: Webhook, outcome: PostOutcome, now: int) -> Webhook:
    """The webhook after an attempt: enabled by one that arrives, disabled by 410 and by three days without one."""
    after = replace(webhook, milliseconds=outcome.milliseconds)
    if outcome.is_delivered:
        return replace(after, failing_since=0, disabled_at=0, disabled_because="")
    after = replace(after, failing_since=webhook.failing_since or now)
    if webhook.disabled_at:
        return after
    if outcome.is_gone:
        return replace(after, disabled_at=now, disabled_because=GONE)
    if now - after.failing_since >= FAILING_SECONDS:
        return replace(after, disabled_at=now, disabled_because=NOTHING_TAKEN)
    return after


def in_turn(webhooks: Iterable[Webhook]) -> list[Webhook]:
    """The first of every owner before the second of any; among these, the fastest first."""
    counted = Counter[str]()
    places = []
    for webhook in sorted(webhooks, key=lambda one: one.milliseconds):
        places.append((counted[webhook.owner], webhook.milliseconds, webhook))
        counted[webhook.owner] += 1
    return [webhook for *_, webhook in sorted(places, key=lambda place: place[:2])]


def _results(
    pool: ThreadPoolExecutor, work: Callable[[T], R], items: Sequence[T], troubles: list[Exception]
) -> list[R]:
    """What the work returns for each item; errors are added to ``troubles``, and delay no other item."""
    found = []
    for future in [pool.submit(work, item) for item in items]:
        try:
            found.append(future.result())
        except Exception as error:  # noqa: BLE001 - raised by the run
            troubles.append(error)
    return found
