"""``down`` finds and deletes a vector bucket with its indexes, on S3Mock; and the fake of the other tests agrees."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.losses import what_is_in
from dualtrack_stack.cli.aws.removal import remove
from dualtrack_stack.cli.aws.things import _FINDERS, Thing

from tests.servers.s3mock import has_s3mock, s3mock
from tests.servers.vector_buckets import vector_buckets

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "dualtrack-prod-data-coursevectors-0a1b2c3d"
TAGS = {"application": "dualtrack", "stage": "prod"}
INDEXES = ("courses-1", "courses-2", "courses-3")


@contextmanager
def on_s3mock() -> Iterator[str]:
    with s3mock("others") as client:
        client.create_vector_bucket(vectorBucketName=NAME, tags=TAGS)
        for index in INDEXES:
            client.create_index(
                vectorBucketName=NAME,
                indexName=index,
                dataType="float32",
                dimension=2,
                distanceMetric="cosine",
            )
        yield client.meta.endpoint_url


@contextmanager
def on_the_fake() -> Iterator[str]:
    with vector_buckets() as buckets:
        buckets.add("us-east-1", "others", {})
        buckets.add("us-east-1", NAME, TAGS, *INDEXES)
        yield buckets.url


@pytest.mark.parametrize(
    "engine",
    [
        on_the_fake,
        pytest.param(
            on_s3mock,
            marks=pytest.mark.skipif(
                not has_s3mock(), reason="S3Mock is not installed: .ci/install_s3mock.sh"
            ),
        ),
    ],
)
def test_a_vector_bucket_goes_with_its_indexes(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with engine() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", url)
        account = AwsAccount("us-east-1")
        ((arn, name, tags),) = _FINDERS["vector bucket"](account, "prod")
        assert (name, dict(tags)) == (NAME, TAGS)
        client = boto3.client("s3vectors", region_name="us-east-1")
        with pytest.raises(ClientError, match="still has indexes"):
            client.delete_vector_bucket(vectorBucketArn=arn)
        thing = Thing("vector bucket", arn, name)
        assert what_is_in(account, thing).startswith("indexes: ")
        remove(account, thing)
        assert not list(_FINDERS["vector bucket"](account, "prod"))
        remove(account, thing)
        assert [found["vectorBucketName"] for found in client.list_vector_buckets()["vectorBuckets"]] == [
            "others"
        ]


def test_a_region_without_vector_buckets_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))
    # refused at once; a name that nobody knows is waited for, and is the same error
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", "http://127.0.0.1:9")
    assert not list(_FINDERS["vector bucket"](AwsAccount("us-east-1"), "prod"))
