"""Keys from the Parameter Store or Secrets Manager, and which values count as no key."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
from dualtrack.runtime import secrets
from dualtrack.runtime.secrets import MissingKey, needed, secret
from dualtrack.settings import NOT_SET
from moto import mock_aws

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "/dualtrack-prod/anthropic"


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        _forget()
        yield
        _forget()


def _forget() -> None:
    secrets._keys.cache_clear()
    clear_caches()  # type: ignore[no-untyped-call]


def put(value: str, name: str = NAME) -> None:
    boto3.client("ssm").put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)


STORED = [("sk-1", "sk-1"), (" sk-1\n", "sk-1"), (NOT_SET, ""), ("none\n", "")]


@pytest.mark.parametrize(("stored", "read"), STORED)
def test_a_key_is_its_text_or_empty_where_none_is_set(stored: str, read: str) -> None:
    put(stored)
    assert secret(NAME) == needed(NAME) == read


@pytest.mark.parametrize(("stored", "read"), STORED)
def test_a_name_without_a_slash_is_a_secret_of_secrets_manager(stored: str, read: str) -> None:
    boto3.client("secretsmanager").create_secret(Name="key", SecretString=stored)
    assert secret("key") == read


def test_a_key_without_a_name_is_not_requested() -> None:
    assert secret("") == ""


def test_a_missing_parameter_is_no_key() -> None:
    assert secret(NAME) == ""


def test_a_missing_required_key_is_named_with_the_command_that_stores_it() -> None:
    with pytest.raises(
        MissingKey, match=rf"parameter {NAME}\. Put it there: aws ssm put-parameter --name {NAME}"
    ):
        needed(NAME)


def test_a_secret_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(GetParameterError):
        secret("key")


def test_present_and_missing_keys_are_requested_once_in_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parameter Store allows 40 requests per second for a whole account."""
    asked: list[str] = []
    client = secrets._keys().client
    client.meta.events.register(
        "provide-client-params.ssm.GetParameter", lambda params, **_: asked.append(params["Name"])
    )
    put("sk-1")
    for name in (NAME, "/dualtrack-prod/voyage"):
        values = {secret(name) for _ in range(3)}
        assert len(values) == 1
    assert asked == [NAME, "/dualtrack-prod/voyage"]
    an_hour_ago = datetime.now() - timedelta(hours=1)  # noqa: DTZ005 - as Powertools keeps it
    for key in secrets._keys().store:
        monkeypatch.setitem(secrets._keys().store, key, secrets._keys().store[key]._replace(ttl=an_hour_ago))
    put("pa-1", "/dualtrack-prod/voyage")
    assert secret("/dualtrack-prod/voyage") == "pa-1"
