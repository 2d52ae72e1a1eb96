"""``dualtrack aws restore``: a stage's objects as they were at a moment, from the versions that S3 keeps
(docs/aws/runbooks.md). Nothing is lost by it: what it changes becomes an earlier version itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from dualtrack_stack.cli.aws.account import AwsAccount, plainly
from dualtrack_stack.cli.aws.facts import prefix
from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.aws.questions import Person
from dualtrack_stack.cli.command import exit_codes
from dualtrack_stack.cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUCKET: Final = "BodiesBucket"
"""The output of the data stack with the bucket's name."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an object; without ``etag`` a delete marker. ``at``: when it was written, to the second."""

    key: str
    id: str
    at: datetime
    etag: str = ""
    size: int = 0
    is_latest: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """``back``: this version becomes the latest one. ``away``: the object did not exist then."""

    kind: Literal["back", "away"]
    version: Version


def change_to(versions: Sequence[Version], moment: datetime) -> Change | None:
    """What brings one object, of which these are all versions, back to a moment; None if it is as it was."""
    now = next(version for version in versions if version.is_latest)
    past = [version for version in versions if version.at <= moment]
    # of a version and a marker of the same second the version counts: an object too many does no harm
    then = max(past, key=lambda version: (version.at, bool(version.etag), version.is_latest), default=None)
    if then is None or not then.etag:
        return Change("away", now) if now.etag else None
    return None if (now.etag, now.size) == (then.etag, then.size) else Change("back", then)


# ── the account ───────────────────────────────────────────────────────────────────────────────────


def changes(client: Any, bucket: str, moment: datetime) -> Iterator[Change]:
    """All changes, in the order of the keys."""
    for _, versions in groupby(_versions(client, bucket), attrgetter("key")):
        if change := change_to(tuple(versions), moment):
            yield change


def _versions(client: Any, bucket: str) -> Iterator[Version]:
    """All versions of an object one after another."""
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        found = [_version(listed) for kind in ("Versions", "DeleteMarkers") for listed in page.get(kind, ())]
        yield from sorted(found, key=attrgetter("key"))


def _version(listed: Any) -> Version:
    return Version(
        listed["Key"],
        listed["VersionId"],
        listed["LastModified"],
        listed.get("ETag", ""),
        listed.get("Size", 0),
        listed["IsLatest"],
    )


def apply(client: Any, bucket: str, change: Change) -> None:
    """Make one change."""
    key = change.version.key
    if change.kind == "away":
        client.delete_object(Bucket=bucket, Key=key)
    else:
        source = {"Bucket": bucket, "Key": key, "VersionId": change.version.id}
        client.copy_object(Bucket=bucket, Key=key, CopySource=source)


def bucket_of(account: AwsAccount, stage: str) -> str:
    """The stage's bucket. Raises `Missing` if it has no versions."""
    data = account.stack(f"{prefix(stage)}-data")
    if data is None:
        raise Missing(f"There is no stack {prefix(stage)}-data in this account and region.")
    bucket = data.outputs[BUCKET]
    with plainly():
        status = account.client("s3").get_bucket_versioning(Bucket=bucket).get("Status")
    if status != "Enabled":
        raise Missing(f"{bucket} keeps no versions: what was deleted is gone (keep_data of the stage).")
    return bucket


def run_restore(account: AwsAccount, stage: str, moment: datetime, person: Person) -> None:
    """Count, ask, change. A second run finds only what is still different."""
    bucket, client = bucket_of(account, stage), account.client("s3")
    with plainly():
        count = Counter(change.kind for change in changes(client, bucket, moment))
    click.echo(f"{bucket} in {account.region} as of {moment.isoformat()}:")
    click.echo(f"  to bring back: {count['back']}; to take away, because they came later: {count['away']}")
    if not count:
        return
    if not person.agrees("Change them?", default=person.yes):
        raise Missing("Nothing was changed.")
    with plainly():
        for change in changes(client, bucket, moment):
            apply(client, bucket, change)
    click.echo("Done.")


def moment_of(text: str, now: datetime) -> datetime:
    """``2026-11-22T10:00:00Z``. Raises `Missing` for anything else, and for a moment to come."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Missing(f"--at: {text} is no time like 2026-11-22T10:00:00Z.") from None
    if moment.tzinfo is None:
        raise Missing(f"--at: {text} does not say its time zone: 2026-11-22T10:00:00Z.")
    if moment > now:
        raise Missing(f"--at: {text} is to come.")
    return moment.astimezone(UTC)


@click.command()
@stage_option
@region_option
@click.option("--at", "at", required=True, metavar="TIME", help="The moment, 2026-11-22T10:00:00Z.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore(stage: str, region: str | None, at: str, *, yes: bool) -> None:
    """Bring a stage's objects back to a moment of the last 35 days; its tables are brought back by the runbook
    (docs/aws/runbooks.md). Objects that came later are taken away, and can be brought back in the same way.
    """
    with exit_codes():
        moment = moment_of(at, datetime.now(UTC))
        run_restore(AwsAccount(region), stage, moment, Person(yes=yes))
