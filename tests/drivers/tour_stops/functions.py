"""What has no caller: timers, rules, the steps of the state machines, and what other functions call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat
from dualtrack.clock import day_of
from dualtrack.ids import execution_name, new_job_id
from dualtrack.storage.corpus_jobs import Job
from dualtrack.storage.stores import build_stores
from dualtrack_stack.machines import REFRESH

from tests.clients.stack_client import TERMINAL
from tests.drivers.tour import stop
from tests.drivers.tour_stops.administration import added, ended, removed, uploaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.drivers.tour import Visit

TOOL = "step chat Tool"


class Nobody:
    """Executions that never start, as when the request dies between admission and start."""

    def start(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Do nothing."""


@stop("timer Sweep")
def a_chat_that_was_never_started(visit: Visit) -> None:
    root, ann = visit.root, visit.owner
    clients = root.client("dynamodb"), root.client("s3")
    stores = build_stores(root.settings, *clients, clock=lambda: time.time() - 60)
    visit.script.says("Late, but here.")
    starter: Any = Nobody()
    chat = start_chat(stores, starter, NewChat(ann.id, visit.script.question()), None)
    assert visit.invoke()["started"] >= 1
    assert visit.finish(chat.chat_id)["response"] == "Late, but here."


@stop("timer CreditReset")
def an_account_of_yesterday(visit: Visit) -> None:
    ledger, yesterday = visit.root.stores().ledger, time.time() - 86_400
    account = ledger.load(visit.owner.id)
    held: Any = account.hold(f"ch_{visit.script.marker}", 5, yesterday)
    ledger.commit(account, held)
    assert any(visit.owner.id in page for page in ledger.used_before(day_of(time.time()), 100))
    visit.invoke()
    assert all(visit.owner.id not in page for page in ledger.used_before(day_of(time.time()), 100))


@stop("timer ToolRefresh")
def the_tools_are_listed_anew(visit: Visit) -> None:
    assert visit.invoke()["servers"]["kit"].startswith("listed ")


@stop("rule Deployed")
def the_tools_are_listed_after_a_deployment(visit: Visit) -> None:
    assert visit.invoke(REFRESH)["servers"]["kit"].startswith("listed ")


@stop("rule ExecutionEnded")
def an_execution_is_stopped(visit: Visit) -> None:
    visit.script.asks(("kit_hold", {"name": visit.script.marker}))
    started = visit.start()
    assert visit.tools.gate(visit.script.marker).arrived.wait(60)
    execution = visit.root.execution_arn(started["chat_id"])
    visit.root.client("stepfunctions").stop_execution(executionArn=execution)
    visit.asked += 1
    assert visit.until(started["chat_id"], *TERMINAL).data["code"] == "internal"


# ── a chat's steps ────────────────────────────────────────────────────────────────────────────────


def _ran(visit: Visit, tool: str, arguments: dict[str, Any], **chat: Any) -> dict[str, Any]:
    """The record of a tool call that the step's function has run."""
    visit.script.asks((tool, arguments))
    ended_ = visit.chat(**chat)
    visit.went_through(visit.root.execution_arn(ended_["chat_id"]))
    record = visit.owner.record(ended_["conversation_id"], "q1-t1")
    assert not record["is_error"], record
    return record


@stop("step chat Turn: turn")
def a_turn(visit: Visit) -> None:
    chat = visit.chat("Forty-two.")
    visit.went_through(visit.root.execution_arn(chat["chat_id"]))
    assert (chat["turns"], chat["response"]) == (1, "Forty-two.")


@stop(f"{TOOL}: tool")
def a_tool_in_the_house(visit: Visit) -> None:
    assert visit.script.question() in _ran(visit, "retrieve_full_context", {"id": "q1"})["result"]


@stop(f"{TOOL}: search")
def searches(visit: Visit) -> None:
    _ran(visit, "retrieve_documentation", {"query": "How do I set up OAuth for X ads?"})


@stop(f"{TOOL}: search")
def a_search_of_courses(visit: Visit) -> None:
    query = {"query": "computer use"}
    assert "Computer Use" in _ran(visit, "search_course_content", query, profile="courses")["result"]


@stop(f"{TOOL}: graph")
def a_query_of_the_graph(visit: Visit) -> None:
    _ran(visit, "count_by_label", {"label": "Asset"}, profile="graph")


@stop(f"{TOOL}: mcp")
def a_tool_of_a_server(visit: Visit) -> None:
    assert _ran(visit, "kit_echo", {"text": "again"})["result"] == "again"


@stop(f"{TOOL}: own")
def a_tool_of_the_project(visit: Visit) -> None:
    """This project has none: a call of one that was withdrawn gets an error result, which its role records."""
    visit.script.asks(("kit_hold", {"name": visit.script.marker}))
    started = visit.start()
    assert visit.tools.gate(visit.script.marker).arrived.wait(60)
    ref = {"user": visit.owner.id, **{name: started[name] for name in ("chat_id", "conversation_id")}}
    visit.invoke({**ref, "turn": 1, "call": {"id": "q1-t1", "fn": "own"}})
    assert visit.owner.record(started["conversation_id"], "q1-t1")["is_error"]


@stop("step chat Summarise: summarise")
def a_chat_is_summarised(visit: Visit) -> None:
    chat = visit.chat("A long answer. " * 200)
    visit.went_through(visit.root.execution_arn(chat["chat_id"]))
    assert chat["summary"]


@stop("step chat Abort: abort")
def a_chat_whose_step_fails(visit: Visit) -> None:
    visit.script.asks(("kit_hold", {"name": visit.script.marker}))
    started = visit.start()
    assert visit.tools.gate(visit.script.marker).arrived.wait(60)
    ref = {"user": visit.owner.id, **{name: started[name] for name in ("chat_id", "conversation_id")}}
    error = {"Error": "States.Timeout", "Cause": ""}
    visit.invoke({**ref, "execution": execution_name(started["chat_id"], 1), "error": error})
    assert visit.until(started["chat_id"], *TERMINAL).kind == "error"


# ── a job's steps ─────────────────────────────────────────────────────────────────────────────────


def _admin(visit: Visit) -> Visit:
    """The visit as an administrator's."""
    visit.owner = visit.person(admin=True)
    return visit


def _job(visit: Visit, job_id: str) -> str:
    machine = visit.root.stack.outputs["CorpusMachineArn"]
    client = visit.root.client("stepfunctions")
    listed = client.list_executions(stateMachineArn=machine)["executions"]
    return next(str(one["executionArn"]) for one in listed if job_id in one["executionArn"])


@stop("step corpus Ingest: ingest")
def a_course_is_added(visit: Visit) -> None:
    admin = _admin(visit)
    removed(admin, added(admin, f"Added {visit.script.marker}"))
    visit.asked += 1


@stop("step corpus Ingest: graph_load")
def a_graph_is_loaded(visit: Visit) -> None:
    admin, graph = _admin(visit).owner, "/v1/admin/corpora/graph"
    name = f"{visit.script.marker}.csv"
    nodes = f"node_id,label,name\n{visit.script.marker},Probe,One\n".encode()
    files = [uploaded(admin, name, nodes, "graph")]
    job = ended(admin, admin.http.post(f"{graph}/jobs", json={"files": files}).json()["url"])
    assert (job["status"], job["files"][0]["outcome"]) == ("done", "added"), job
    visit.went_through(_job(visit, job["job_id"]))
    document = next(one for one in admin.get(graph)["documents"] if one["name"] == name)
    removal = admin.http.delete(f"{graph}/documents/{document['document_id']}").json()
    assert ended(admin, removal["url"])["status"] == "done"


def _failed(visit: Visit, corpus: str) -> None:
    jobs, job = visit.root.stores().corpus_jobs, Job(corpus, new_job_id(), visit.owner.id, int(time.time()))
    jobs.create(job, ())
    visit.invoke({"corpus": corpus, "job": job.job_id, "error": {"Error": "States.Timeout", "Cause": ""}})
    shown = _admin(visit).owner.get(f"/v1/admin/corpora/{corpus}/jobs/{job.job_id}")
    assert shown["status"] == "failed"


@stop("step corpus Fail: ingest")
def a_job_that_failed(visit: Visit) -> None:
    _failed(visit, "courses")


@stop("step corpus Fail: graph_load")
def a_graph_that_failed(visit: Visit) -> None:
    _failed(visit, "graph")


@stop("call embed")
def texts_become_vectors(visit: Visit) -> None:
    assert len(visit.invoke({"texts": ["A bowline holds.", "The wind fills the sail."]})["vectors"]) == 2
