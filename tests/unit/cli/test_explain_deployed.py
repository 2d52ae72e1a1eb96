"""``dualtrack explain`` against a stack that is not local: an address, a token, and AWS's own recorded answers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from botocore.stub import Stubber
from click.testing import CliRunner, Result
from dualtrack.ids import execution_name
from dualtrack.runtime.executions import Executions
from dualtrack_stack.cli.main import main
from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from tests.clients.api_client import Api, make_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.requests import Request

READ: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
MACHINE: Final = "arn:aws:states:eu-central-1:111122223333:stateMachine:dualtrack-prod-chat"


@pytest.fixture(autouse=True)
def _no_stack_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DUALTRACK_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)


@contextmanager
def deployed(users: dict[str, Api]) -> Iterator[tuple[str, list[str]]]:
    """The function `api` behind HTTP, as behind API Gateway: the token is the caller. And the list of requests."""
    asked: list[str] = []

    async def gateway(request: Request) -> Response:
        asked.append(f"{request.method} {request.url.path}")
        caller = users.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if caller is None:
            told = {"error": {"code": "unauthorized", "message": "The token is missing, wrong or too old."}}
            return Response(json.dumps(told), 401, media_type="application/json")
        answer = await run_in_threadpool(caller.call, request.method, request.url.path)
        return Response(answer.content, answer.status, media_type="application/json")

    routes = [Route("/{rest:path}", gateway, methods=["GET", "POST", "DELETE"])]
    with serve_in_thread(Starlette(routes=routes)) as url:
        yield url, asked


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("explain", *arguments))


def recorded(chat: dict[str, Any], user: str) -> dict[str, Any]:
    """The response of DescribeExecution for an execution that has ended (Step Functions API Reference,
    "DescribeExecution", response syntax)."""
    name = execution_name(chat["chat_id"])
    payload = {
        "user": user,
        "chat_id": chat["chat_id"],
        "conversation_id": chat["conversation_id"],
        "turn": 0,
    }
    began = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
    return {
        "executionArn": f"{MACHINE.replace(':stateMachine:', ':execution:')}:{name}",
        "stateMachineArn": MACHINE,
        "name": name,
        "status": "SUCCEEDED",
        "startDate": began,
        "stopDate": began,
        "input": json.dumps(payload),
        "inputDetails": {"included": True},
        "output": "{}",
        "outputDetails": {"included": True},
        "redriveCount": 0,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "traceHeader": "Root=1-5f84c3a2-1f0c2b3d4e5f60718293a4b5;Sampled=1",
    }


@contextmanager
def step_functions(api: Api, *answers: dict[str, Any] | str) -> Iterator[None]:
    """The recorded answers, in order; a string is an error code."""
    client = boto3.client("stepfunctions", region_name="eu-central-1")
    with Stubber(client) as stubber:
        for answer in answers:
            if isinstance(answer, str):
                stubber.add_client_error("describe_execution", answer, http_status_code=400)
            else:
                asked = {"executionArn": answer["executionArn"]}
                stubber.add_response("describe_execution", answer, asked)
        api.module.executions = Executions(client, MACHINE)  # type: ignore[attr-defined]
        yield
        stubber.assert_no_pending_responses()


def test_a_user_sees_only_their_own_chats() -> None:
    with make_api() as api:
        api.world.model.script.add({"match": "turn", "content": [READ]})
        chat = api.ask("Read it.")
        with deployed({"of-ann": api, "of-eve": api.of("eve")}) as (url, asked):
            shown = explain(chat["chat_id"], "--url", url, "--token", "of-ann")
            assert shown.exit_code == 0, shown.output
            for part in ("q1-t1 retrieve_full_context", "turn 2", "ledger: settle 7", "total, 7 credits"):
                assert part in shown.output
            assert "It does not add up" not in shown.output
            told = explain(chat["chat_id"], "--url", url, "--token", "of-ann", "--json")
            assert json.loads(told.stdout) == api.get(f"/v1/chats/{chat['chat_id']}/receipt")
            assert explain(chat["chat_id"], "--url", url, "--token", "of-eve").exit_code != 0
            assert explain(chat["chat_id"], "--url", url, "--token", "forged").exit_code != 0
        assert asked.count(f"GET /v1/chats/{chat['chat_id']}/receipt") == 4
        assert not [request for request in asked if "/dev/token" in request]


def test_an_operator_needs_only_the_chats_id() -> None:
    """The chat's owner comes from Step Functions."""
    with make_api() as api:
        chat = api.ask("What is it?")
        operator = api.of("olga", "admin")
        with (
            deployed({"of-olga": operator}) as (url, _),
            step_functions(api, recorded(chat, "ann")),
        ):
            shown = explain(chat["chat_id"], "--url", url, "--token", "of-olga")
        assert shown.exit_code == 0, shown.output
        assert "user ann" in shown.output
        assert "What is it?" not in shown.output


@pytest.mark.parametrize("answer", ["ExecutionDoesNotExist", "InvalidArn"])
def test_an_execution_that_step_functions_no_longer_has_is_not_found(answer: str) -> None:
    """It keeps an execution for 90 days after its end; the owner can still read the chat."""
    with make_api() as api:
        chat = api.ask("What is it?")
        users = {"of-ann": api, "of-olga": api.of("olga", "admin")}
        with deployed(users) as (url, _), step_functions(api, answer):
            refused = explain(chat["chat_id"], "--url", url, "--token", "of-olga")
            assert explain(chat["chat_id"], "--url", url, "--token", "of-ann").exit_code == 0
        assert refused.exit_code != 0
        assert "no such chat" in refused.output
