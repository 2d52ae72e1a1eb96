"""``dualtrack aws restore``: what brings an object back to a moment, and a bucket on the emulator."""

from __future__ import annotations

import itertools
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from click.testing import CliRunner
from dualtrack_stack.cli.aws.restore import Change, Version, change_to, changes, moment_of
from dualtrack_stack.cli.main import main
from dualtrack_stack.cli.target import Missing

from tests.servers.processes import free_port, running

if TYPE_CHECKING:
    from collections.abc import Iterator

T = datetime(2026, 11, 22, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def wrote(number: int, seconds: int, etag: str = "a", **more: Any) -> Version:
    """Version ``number``, so many seconds after T; a delete marker without ``etag``."""
    return Version("k", str(number), T + seconds * SECOND, etag, len(etag), **more)


LAST: dict[str, Any] = {"is_latest": True}


@pytest.mark.parametrize(
    ("versions", "kind", "id_"),
    [
        pytest.param([wrote(1, -9, **LAST)], "", "", id="unchanged"),
        pytest.param([wrote(1, 0, **LAST)], "", "", id="written in that second"),
        pytest.param([wrote(1, 1, **LAST)], "away", "1", id="came later"),
        pytest.param([wrote(1, -9), wrote(2, 5, "", **LAST)], "back", "1", id="deleted later"),
        pytest.param([wrote(1, -9), wrote(2, -5, "", **LAST)], "", "", id="deleted before"),
        pytest.param(
            [wrote(1, -9, "b"), wrote(2, 0), wrote(3, 0, "", **LAST)],
            "back",
            "2",
            id="deleted in that second",
        ),
        pytest.param(
            [wrote(1, -9), wrote(2, 5), wrote(3, 5, "", **LAST)],
            "back",
            "1",
            id="made and deleted in a second",
        ),
        pytest.param([wrote(1, -9), wrote(2, 5, "b", **LAST)], "back", "1", id="replaced later"),
        pytest.param(
            [wrote(1, -9), wrote(2, -5, "b"), wrote(3, 5, "", **LAST)], "back", "2", id="the latest then"
        ),
        pytest.param(
            [wrote(1, -9, "b"), wrote(2, 5, ""), wrote(3, 9, "b", **LAST)], "", "", id="brought back"
        ),
        pytest.param(
            [wrote(1, -9), wrote(2, -5, ""), wrote(3, 5, **LAST)], "away", "3", id="made again later"
        ),
        pytest.param(
            [wrote(1, -9), wrote(2, -5, ""), wrote(3, 5, ""), wrote(4, 6, "", **LAST)], "", "", id="gone"
        ),
        pytest.param([wrote(1, 2, "", **LAST)], "", "", id="a marker alone"),
    ],
)
def test_an_object_is_brought_to_the_moment(versions: list[Version], kind: str, id_: str) -> None:
    expected = next((Change(kind, version) for version in versions if version.id == id_), None)  # type: ignore
    for order in itertools.permutations(versions):
        assert change_to(order, T) == expected


@pytest.mark.parametrize("text", ["yesterday", "2026-11-22T10:00:00", "2026-11-22T10:00:01Z"])
def test_a_moment_is_a_past_time_with_its_zone(text: str) -> None:
    with pytest.raises(Missing, match="--at: "):
        moment_of(text, T)
    assert moment_of("2026-11-22T12:00:00+02:00", T) == T


# ── an account ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client, after a stage with a bucket was made."""
    port = free_port()
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "ERROR"}
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with running([sys.executable, "-m", "ministack"], settings):
        formation = boto3.client("cloudformation", region_name="us-east-1")
        formation.create_stack(StackName="dualtrack-prod-data", TemplateBody=_TEMPLATE)
        formation.get_waiter("stack_create_complete").wait(
            StackName="dualtrack-prod-data", WaiterConfig={"Delay": 1}
        )
        yield boto3.client("s3", region_name="us-east-1")


_TEMPLATE = """
Resources:
  Bodies: {Type: AWS::S3::Bucket, Properties: {BucketName: bodies}}
Outputs:
  BodiesBucket: {Value: {Ref: Bodies}}
"""


def objects(s3: Any) -> dict[str, str]:
    """The hash of each."""
    listed = s3.list_objects_v2(Bucket="bodies").get("Contents", [])
    return {entry["Key"]: entry["ETag"] for entry in listed}


def restore(at: datetime, *more: str) -> Any:
    return CliRunner().invoke(main, ["aws", "restore", "--stage", "prod", "--at", at.isoformat(), *more])


def test_a_bucket_is_brought_back_and_forth(s3: Any) -> None:
    """More objects than a page lists, deleted, replaced and added after the moment."""
    refused = restore(datetime.now(UTC), "--yes")
    assert (refused.exit_code, "keeps no versions" in refused.output) == (2, True)

    s3.put_bucket_versioning(Bucket="bodies", VersioningConfiguration={"Status": "Enabled"})
    for number in range(600):
        s3.put_object(Bucket="bodies", Key=f"users/ann/{number:03}", Body=b"%d" % number)
    then, moment = objects(s3), datetime.now(UTC)
    for number in range(0, 600, 2):
        s3.delete_object(Bucket="bodies", Key=f"users/ann/{number:03}")
    for number in range(1, 600, 100):
        s3.put_object(Bucket="bodies", Key=f"users/ann/{number:03}", Body=b"other")
    for number in range(600, 700):
        s3.put_object(Bucket="bodies", Key=f"users/ann/{number:03}", Body=b"later")
    later, second_moment = objects(s3), datetime.now(UTC)

    asked = restore(moment)
    assert (asked.exit_code, "pass --yes" in asked.output) == (2, True)
    assert "to bring back: 306; to take away, because they came later: 100" in asked.output
    assert objects(s3) == later, "nothing was changed"
    assert restore(moment, "--yes").exit_code == 0
    assert objects(s3) == then
    assert not list(changes(s3, "bodies", moment)), "the second time there is nothing to do"
    assert restore(second_moment, "--yes").exit_code == 0
    assert objects(s3) == later, "the way back"
