"""``dualtrack aws up`` marks the stage's keys, so that ``down`` knows them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.doctor import Doctor
from dualtrack_stack.cli.aws.facts import KEYS
from dualtrack_stack.cli.aws.questions import Person, Steps
from dualtrack_stack.cli.aws.things import things_of
from dualtrack_stack.cli.aws.up import Up, Wishes, read_stage
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.project import read
from dualtrack_stack.project.model import OwnFunction, Project

from tests.drivers.documents import ROOT
from tests.drivers.own_projects import stages_with
from tests.servers.processes import free_port, running
from tests.servers.vector_buckets import vector_buckets

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsAccount]:
    """An empty one."""
    port = free_port()
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "ERROR"}
    with running([sys.executable, "-m", "ministack"], settings), vector_buckets() as vectors:
        for key in KEYS.values():
            monkeypatch.delenv(key.name, raising=False)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", vectors.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield AwsAccount("us-east-1")


def marked(account: AwsAccount) -> dict[str, bool]:
    """Name of the parameter → whether `down` takes it for the stage's."""
    return {thing.name: thing.is_tagged for thing in things_of(account, "staging")}


def up(account: AwsAccount, **settings: str) -> None:
    Up(Wishes("staging"), account, Person(yes=True), Steps(8), settings=settings)._keys()


def test_up_marks_what_it_stores_and_what_was_stored_by_hand(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an earlier `up` was killed between storing and marking."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-0123456789abcdefghij")
    for name in ("voyage", "otlp", "of-mine"):
        account.put_key("staging", name, "by hand")
    assert not any(marked(account).values())
    for _ in range(2):
        up(account)
        assert marked(account) == {
            "/dualtrack-staging/anthropic": True,
            "/dualtrack-staging/of-mine": False,
            "/dualtrack-staging/otlp": True,
            "/dualtrack-staging/voyage": True,
        }
    assert account.key("staging", "voyage") == "by hand"


def test_secrets_of_the_projects_tools_are_keys_too(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One is stored from the environment, one by hand, and of the third it is said how."""
    project = Project(ROOT, stages=stages_with(OwnFunction(secrets=("STRIPE_KEY", "BY_HAND", "ABSENT"))))
    monkeypatch.setattr(read, "read_project", lambda *_: project)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-0123456789abcdefghij")
    monkeypatch.setenv("STRIPE_KEY", "sk_live_0123456789")
    account.put_key("staging", "tools/BY_HAND", "by hand")
    up(account)
    assert marked(account) == {
        "/dualtrack-staging/anthropic": True,
        "/dualtrack-staging/tools/BY_HAND": True,
        "/dualtrack-staging/tools/STRIPE_KEY": True,
    }
    assert account.key("staging", "tools/STRIPE_KEY") == "sk_live_0123456789"
    said = capsys.readouterr().out
    assert "The tools' secret ABSENT is missing: set ABSENT and run `up` again, or" in said
    assert (
        "put-parameter --region us-east-1 --name /dualtrack-staging/tools/ABSENT --type SecureString" in said
    )
    assert "sk_live" not in said


def test_the_key_that_the_provider_needs_is_asked_for(account: AwsAccount) -> None:
    with pytest.raises(Missing, match="ANTHROPIC_API_KEY"):
        up(account)
    assert not marked(account)


def test_a_provider_without_a_key_is_asked_for_none(
    account: AwsAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And only a call can tell whether the account has the model."""
    monkeypatch.setenv("DUALTRACK_PROVIDER", "bedrock")
    up(account, DUALTRACK_PROVIDER="bedrock")
    assert not marked(account)
    assert "Bedrock uses the functions' roles: no key needed." in capsys.readouterr().out
    (found,) = Doctor(account, "staging", read_stage(Wishes("staging")), 0.0)._model()
    assert found.seen == "claude-haiku-5-5 on Bedrock: access can only be tested by a call"
    assert found.mend == "enable it in Bedrock's console, Model access; `smoke` tests it"
