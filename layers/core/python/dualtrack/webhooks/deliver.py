"""What was noted is told to webhooks, at least once, under the same id (CONTRACT 4).

a notice of the outbox ─► a delivery for each webhook that wants it     one transaction
a webhook with deliveries that are due ─► claim it ─► POST each, oldest first ─► record what came back ─► release it

Webhooks are told in parallel, those that answered fastest before, so that a slow receiver delays nobody else's. One
that does not answer is left alone for a while. A run that dies has told what it has recorded, perhaps
one more; its claims end by themselves.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.runtime.time_limit import time_for
from dualtrack.storage.dynamo import Lost
from dualtrack.webhooks.signing import signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.storage.webhooks import Delivery, Due, Webhook, WebhookStore
    from dualtrack.webhooks.post import Outcome, Poster
    from dualtrack.webhooks.signing import WebhookSecrets

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

WORKERS: Final = 24
ONE_WEBHOOK_SECONDS: Final = 20.0
"""How long a run serves a webhook in one go."""

QUIET_SECONDS: Final = 30
"""How long a webhook that has not answered is left alone, however much waits for it: so those that wait behind it in
the index are read."""

_TRIES: Final = 4

Disabled = Callable[[], None]
"""Called for each webhook that is disabled."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Of a run: the notices that were taken from the outbox, and how many deliveries arrived and did not."""

    notices: int = 0
    delivered: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Deliverer:
    """What a run needs. ``disabled`` is called for each webhook that is disabled; ``jitter``: from 0 to 1."""

    webhooks: WebhookStore
    secrets: WebhookSecrets
    poster: Poster
    agent: str
    disabled: Disabled = lambda: None
    jitter: Callable[[], float] = field(default=random.random)

    def run(self, seconds: float) -> Delivered:
        """Deliver what is due, until nothing is or the time is over. Idempotent. The errors of single webhooks are
        raised at the end."""
        has_time = time_for(seconds)
        total, troubles = Delivered(), list[Exception]()
        with ThreadPoolExecutor(WORKERS) as pool:
            while has_time():
                done = self._pass(pool, has_time, troubles)
                total = Delivered(
                    total.notices + done.notices,
                    total.delivered + done.delivered,
                    total.failed + done.failed,
                )
                if done == Delivered() or troubles:
                    break
        if troubles:
            raise ExceptionGroup("some webhooks could not be served", troubles)
        return total

    def _pass(
        self, pool: ThreadPoolExecutor, has_time: Callable[[], bool], troubles: list[Exception]
    ) -> Delivered:
        due = list(self.webhooks.due())
        notices = [one for one in due if one.is_notice]
        woken = _results(pool, self._spread, notices, troubles)
        hooks = {one.webhook_id: one for found in woken for one in found}
        listed = self.webhooks.named([one for one in due if not one.is_notice])
        hooks |= {one.webhook_id: one for one in listed}
        fastest_first = sorted(hooks.values(), key=lambda one: (one.failing_since > 0, one.milliseconds))
        served = _results(pool, partial(self._served, has_time), fastest_first, troubles)
        return Delivered(
            len(notices), sum(arrived for arrived, _ in served), sum(failed for _, failed in served)
        )

    def _spread(self, due: Due) -> Sequence[Webhook]:
        """Make a notice a delivery to each webhook that wants it; returns these."""
        for left in reversed(range(_TRIES)):
            notice = self.webhooks.notice(due)
            if notice is None:
                return ()
            hooks = [one for one in self.webhooks.of(due.owner) if one.wants(notice)]
            try:
                self.webhooks.spread(due.owner, notice, hooks)
            except Lost:
                if not left:
                    raise
            else:
                return hooks
        return ()

    def _served(self, has_time: Callable[[], bool], webhook: Webhook) -> tuple[int, int]:
        """Tell a webhook what is due; returns how many deliveries arrived and did not."""
        if not has_time() or (claimed := self.webhooks.claim(webhook)) is None:
            return 0, 0
        arrived, failed, is_silent = 0, 0, False
        after, has_turn = claimed, time_for(ONE_WEBHOOK_SECONDS)
        keys = [self.secrets.open(claimed.webhook_id, sealed) for sealed in claimed.secrets(self._now)]
        while has_time() and has_turn():
            due = self.webhooks.waiting(claimed, now=self._now)
            if not due:
                break
            delivery = self.webhooks.delivery(claimed, due[0][1])
            if delivery is None:
                self.webhooks.record(claimed, due[0], None)
                continue
            outcome = self._posted(claimed, delivery, keys)
            self.webhooks.record(claimed, due[0], self._recorded(delivery, outcome))
            after = told(after, outcome, self._now)
            arrived, failed = arrived + outcome.is_delivered, failed + (not outcome.is_delivered)
            is_silent = not outcome.status
            if is_silent or after.disabled_at:
                break
        self.webhooks.release(claimed, after, self._now + QUIET_SECONDS if is_silent else 0)
        if after.disabled_at and not claimed.disabled_at:
            self.disabled()
        return arrived, failed

    @property
    def _now(self) -> int:
        return int(self.webhooks.clock())

    def _posted(self, webhook: Webhook, delivery: Delivery, keys: Sequence[str]) -> Outcome:
        body = delivery.body.encode()
        headers = {"Content-Type": "application/json", "User-Agent": self.agent}
        return self.poster.post(
            webhook.url, body, {**headers, **signed(delivery.message_id, self._now, body, keys)}
        )

    def _recorded(self, delivery: Delivery, outcome: Outcome) -> Delivery:
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


def told(webhook: Webhook, outcome: Outcome, now: int) -> Webhook:
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
