"""Secrets: what stands in Secrets Manager, and what counts as none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
from dualtrack.runtime.secrets import NOT_SET, secret
from moto import mock_aws

from infra.stages import SECRET_NOT_SET

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        clear_caches()  # type: ignore[no-untyped-call]
        yield boto3.client("secretsmanager", "us-east-1")
        clear_caches()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("stored", "read"), [("sk-1", "sk-1"), (" sk-1\n", "sk-1"), (SECRET_NOT_SET, ""), ("none\n", "")]
)
def test_a_secret_is_its_text_or_empty_where_none_is_set(manager: Any, stored: str, read: str) -> None:
    manager.create_secret(Name="key", SecretString=stored)
    assert secret("key") == read


def test_one_that_is_not_named_is_not_asked_for() -> None:
    assert secret("") == ""


def test_one_that_does_not_exist_is_an_error(manager: Any) -> None:
    with pytest.raises(GetParameterError):
        secret("key")


def test_the_template_and_the_functions_use_one_word() -> None:
    assert NOT_SET == SECRET_NOT_SET
