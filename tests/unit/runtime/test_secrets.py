"""Keys: what stands in the Parameter Store or in Secrets Manager, and what counts as none."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
from dualtrack.runtime import secrets
from dualtrack.runtime.secrets import NOT_SET, MissingKey, needed, secret
from moto import mock_aws

from infra.stages import SECRET_NOT_SET

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


STORED = [("sk-1", "sk-1"), (" sk-1\n", "sk-1"), (SECRET_NOT_SET, ""), ("none\n", "")]


@pytest.mark.parametrize(("stored", "read"), STORED)
def test_a_key_is_its_text_or_empty_where_none_is_set(stored: str, read: str) -> None:
    put(stored)
    assert secret(NAME) == needed(NAME) == read


@pytest.mark.parametrize(("stored", "read"), STORED)
def test_a_name_without_a_slash_is_a_secret_of_secrets_manager(stored: str, read: str) -> None:
    boto3.client("secretsmanager").create_secret(Name="key", SecretString=stored)
    assert secret("key") == read


def test_one_that_is_not_named_is_not_asked_for() -> None:
    assert secret("") == ""


def test_a_parameter_that_is_not_there_is_no_key() -> None:
    assert secret(NAME) == ""


def test_one_that_is_needed_and_not_there_is_named_with_the_command_that_puts_it() -> None:
    with pytest.raises(
        MissingKey, match=rf"parameter {NAME}\. Put it there: aws ssm put-parameter --name {NAME}"
    ):
        needed(NAME)


def test_a_secret_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(GetParameterError):
        secret("key")


def test_what_is_there_and_what_is_not_is_asked_for_once_in_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parameter Store answers 40 requests a second to a whole account."""
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


def test_the_local_stack_and_the_functions_use_one_word() -> None:
    assert NOT_SET == SECRET_NOT_SET
