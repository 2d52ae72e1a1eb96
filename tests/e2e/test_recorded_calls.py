"""Every call that the deployed functions make in whole chats and jobs is allowed by the roles of the stages that go to
AWS, and calls that nobody should make are refused (docs/aws/security.md).

The local stack enforces actions and resources, but no condition on keys and no policy of a bucket or key. Here a
simulator of IAM decides on all of them.
"""

from __future__ import annotations

import base64
import json
import re
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.start_chat import start_chat
from dualtrack.chat_times import CHAT_SECONDS
from dualtrack.storage.stores import build_stores
from dualtrack_stack.local import stack as local_stack
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.stacks.function_specs import PLUGIN_STACKS, SPECS

from tests.clients.script import Script
from tests.clients.stack_client import KEYS, Person, Root, announced, wait_for
from tests.drivers.documents import ROOT
from tests.drivers.iam_simulator import ALLOWED, decisions
from tests.drivers.plugin_parts import parts
from tests.drivers.recorded_calls import Asked, moved, read_calls
from tests.drivers.stage_permissions import ACCOUNT, ResolvedStage, many
from tests.drivers.synthesised import AWS_STAGES, synthesised
from tests.servers.provider import model_settings, serve_model
from tests.servers.tool_server import NAME, serve_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.servers.tool_server import ToolServer

OF_PLUGINS: Final = tuple(spec.construct_id for stack in PLUGIN_STACKS for spec in stack.functions)
BY_TIMER: Final = tuple(
    spec.construct_id
    for stack in PLUGIN_STACKS
    for spec in stack.functions
    if spec.name in {timer.function for timer in stack.timers}
)
DECRYPTING: Final = tuple(
    function for part in parts("permissions") for function, may in part.OTHER.items() if "kms:Decrypt" in may
)
"""Those of them that read what is encrypted for a user."""

COURSE: Final = b"Course Title: Knots\n\nLesson 1: The bowline\nIt holds.\n"
NODES: Final = b"node_id,label,name,depth\nprobe-1,Probe,One,7\n"
LARGE: Final = "A long text, kept as an object. " * 10_000

SILENT: Final = frozenset({"Embed"})
"""Functions that call nothing of AWS."""

Statement = dict[str, Any]
Grant = tuple[str, str, Statement]
"""A permission: function, action, a statement of that action and one resource."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Asked], dict[str, str]]:
    """What the functions of a local stack asked for in the stories below, and the stack's outputs."""
    state_dir = tmp_path_factory.mktemp("recorded")
    with (
        pytest.MonkeyPatch.context() as patch,
        serve_model() as model,
        serve_tools() as tools,
        serve_sample_docs() as documents,
    ):
        patch.setattr(local_stack, "EMULATOR", "tests.drivers.recording_emulator")
        patch.setenv("PYTHONPATH", str(ROOT))
        server = {"name": NAME, "url": tools.url, "auth": {"type": "github_connection"}}
        environment = {
            "GITHUB_TOKEN": KEYS["GITHUB_TOKEN"],
            **model_settings(model),
            "CONTEXT7_BASE_URL": documents,
            "MCP_SERVERS": json.dumps([server]),
            "DUALTRACK_TITLES": "model",
        }
        with LocalStack(state_dir, environment=environment) as stack:
            root = Root(stack, state_dir)
            root.invoke("Mcp", {"action": "refresh"})
            _tell(root, Script(model, "recorded"), tools)
            return read_calls(state_dir), dict(stack.outputs)


def _tell(root: Root, script: Script, tools: ToolServer) -> None:
    ann, bob = (Person(root.stack.url, root.stack.token(name)) for name in ("ann", "bob"))
    admin = Person(root.stack.url, root.stack.token("admin", admin=True))
    root.grant(ann.id)
    _chats(ann, script)
    _approval(ann, script, tools)
    _by_key(ann, script)
    _ends(ann, script, tools)
    _left_behind(root, ann, script, tools)
    _corpora(admin)
    _searches(ann, script)
    _reads(ann, admin)
    for name in ("CreditReset", *BY_TIMER):
        root.invoke(name, {})
    for part in parts("recorded"):
        part.tell(ann, script)
    _erasures(root, ann, bob, admin)


def _chats(ann: Person, script: Script) -> None:
    """Tools of every function, a large text, two more queries, a fork."""
    put = ann.http.put("/v1/connections/github", json={"token": "github_pat_" + "a" * 40})
    assert put.is_success, put.text
    script.asks(("retrieve_documentation", {"query": "OAuth for X ads"}), (f"{NAME}_echo", {"text": "Hello"}))
    script.asks((f"{NAME}_big", {"megabytes": 1}))
    script.says("Here it is. " * 200)
    text = {"media_type": "text/plain", "name": "a.txt", "data": base64.b64encode(LARGE.encode()).decode()}
    body = {"message": script.question(), "attachments": [text]}
    chat = ann.finish(ann.http.post("/v1/chats", json=body).json()["chat_id"])
    conversation = chat["conversation_id"]
    script.asks(("retrieve_full_context", {"id": "q1-t3"}), ("search_conversation", {"query": "OAuth"}))
    script.says("The same. " * 200)
    ann.ask(script.question("Again."), conversation)
    fork = ann.http.post(f"/v1/conversations/{conversation}/fork", json={"before": "q2"}).json()
    script.says("Another way.")
    ann.ask(script.question("Otherwise."), fork["conversation_id"])
    assert script.left == 0


def _approval(ann: Person, script: Script, tools: ToolServer) -> None:
    """A chat that waits for its call's approval, and goes on."""
    tools.gate("approved").released.set()
    script.asks((f"{NAME}_write", {"name": "approved"}))
    script.says("Written.")
    chat = ann.start(script.question("Write."))
    ann.until(chat["chat_id"], lambda event: event.kind == "paused")
    (paused,) = ann.get("/v1/pauses")["pauses"]
    decision = {"id": paused["calls"][0]["id"], "approve": True}
    assert ann.http.post(f"{chat['url']}/decisions", json={"decisions": [decision]}).is_success
    assert ann.finish(chat["chat_id"])["status"] == "done"


def _by_key(ann: Person, script: Script) -> None:
    """A chat by an API key, which is charged for it and then revoked."""
    made = ann.http.post("/v1/keys", json={"name": "report", "scopes": ["chat", "read"]}).json()
    by_key, where = {"Authorization": f"Bearer {made['key']}"}, f"/v1/keys/{made['key_id']}"
    script.says("Reported.")
    body = {"message": script.question("Report.")}
    chat = ann.http.post("/v1/chats", json=body, headers=by_key).json()
    assert ann.http.get(chat["events_url"], headers=by_key).is_success
    assert ann.finish(chat["chat_id"])["status"] == "done"
    assert ann.http.patch(where, json={"name": "nightly"}).is_success
    assert ann.http.post(f"{where}/rotate", json={"overlap": 60}).is_success
    assert ann.get("/v1/keys")["keys"]
    assert ann.http.delete(where).status_code == 204


def _ends(ann: Person, script: Script, tools: ToolServer) -> None:
    """A failed chat and a cancelled one."""
    script.refuses(400)
    assert ann.ask(script.question("Fail."))["status"] == "failed"
    script.asks((f"{NAME}_hold", {"name": "recorded"}))
    chat = ann.start(script.question("Wait."))
    assert tools.gate("recorded").arrived.wait(60)
    assert ann.cancel(chat["chat_id"])["status"] == "cancelled"
    tools.release_all()


def _left_behind(root: Root, ann: Person, script: Script, tools: ToolServer) -> None:
    """A chat whose execution is stopped, one that was never started, and one whose time is up."""
    script.asks((f"{NAME}_hold", {"name": "stopped"}))
    chat = ann.start(script.question("Stop."))
    assert tools.gate("stopped").arrived.wait(60)
    root.client("stepfunctions").stop_execution(executionArn=root.execution_arn(chat["chat_id"]))
    assert ann.finish(chat["chat_id"])["status"] == "failed"
    tools.release_all()
    script.says("Late, but here.")
    ages = {"never started": 60, "time is up": CHAT_SECONDS + 1}
    admitted = [_admit(root, ann, script.question(text), age) for text, age in ages.items()]
    root.invoke("Sweep", {})
    assert [ann.finish(chat_id)["status"] for chat_id in admitted] == ["done", "failed"]


def _admit(root: Root, person: Person, message: str, age: float) -> str:
    """A chat admitted so many seconds ago by a function that died before it started the execution."""
    clients = root.client("dynamodb"), root.client("s3")
    stores = build_stores(root.settings, *clients, clock=lambda: time.time() - age)
    nobody: Any = SimpleNamespace(start=lambda *_: None)
    return start_chat(stores, nobody, NewChat(person.id, message), None).chat_id


def _corpora(admin: Person) -> None:
    """Documents added and removed again."""
    for corpus, name, data in (("courses", "knots.txt", COURSE), ("graph", "probe-nodes.csv", NODES)):
        path = f"/v1/admin/corpora/{corpus}"
        announcement = {"files": [announced(name, data)]}
        (upload,) = admin.http.post(f"{path}/uploads", json=announcement).json()["uploads"]
        put = httpx.put(upload["url"], content=data, headers=upload["headers"], trust_env=False)
        assert put.is_success, put.text
        files = [{"upload_id": upload["upload_id"], "name": name}]
        _done(admin, admin.http.post(f"{path}/jobs", json={"files": files}))
        listed = admin.get(path)["documents"]
        added = next(entry for entry in listed if "Knots" in str(entry) or name in str(entry))
        _done(admin, admin.http.delete(f"{path}/documents/{added['document_id']}"))


def _done(admin: Person, started: httpx.Response) -> None:
    assert started.status_code == 202, started.text
    url = started.json()["url"]
    wait_for(lambda: admin.get(url)["status"] in ("done", "failed"))
    assert admin.get(url)["status"] == "done", admin.get(url)


def _searches(ann: Person, script: Script) -> None:
    for profile, call in (
        ("courses", ("search_course_content", {"query": "computer use"})),
        ("graph", ("get_schema", {})),
    ):
        script.asks(call)
        script.says("Found.")
        body = {"message": script.question(), "profile": profile}
        assert ann.finish(ann.http.post("/v1/chats", json=body).json()["chat_id"])["status"] == "done"


def _reads(ann: Person, admin: Person) -> None:
    """Everything that the API shows and changes."""
    shown = ann.get("/v1/conversations?q=do+it")["conversations"]
    ann.http.post("/v1/chats?wait=1", json={"message": ""})
    for path in ("/v1/tools", "/v1/credits", "/v1/credits/ledger", "/v1/connections/github"):
        ann.get(path)
    for conversation in shown[:1]:
        where = f"/v1/conversations/{conversation['conversation_id']}"
        ann.get(f"{where}?track=summarised")
        ann.http.patch(where, json={"title": "Another"})
    ann.get(f"/v1/chats/{ann.chats[0]}/receipt")
    admin.get(f"/v1/chats/{ann.chats[0]}/receipt")
    user = f"/v1/admin/users/{ann.id}"
    admin.http.put(f"{user}/plan", json={"plan": "pro"})
    admin.http.post(f"{user}/grants", json={"credits": 5, "reason": "pack", "grant_id": "g"})
    for path in ("credits", "spending"):
        admin.get(f"{user}/{path}")
    accepted = admin.http.post(f"/v1/admin/tools/{NAME}/accept", json={"marks": ["0" * 16]})
    assert accepted.json() == {"changed": []}, accepted.text


def _erasures(root: Root, ann: Person, bob: Person, admin: Person) -> None:
    """A conversation, a connection, a user by themselves and one by an administrator; then what goes on behind them."""
    shown = ann.get("/v1/conversations")["conversations"]
    assert ann.http.delete(f"/v1/conversations/{shown[0]['conversation_id']}").status_code == 204
    ann.http.delete("/v1/connections/github")
    assert ann.http.delete("/v1/me").status_code == 202
    assert admin.http.delete(f"/v1/admin/users/{bob.id}").status_code == 202
    root.invoke("Sweep", {})
    for person in (ann, bob, admin):
        person.http.close()


# ── the stages that go to AWS ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", params=AWS_STAGES)
def stage(request: pytest.FixtureRequest) -> ResolvedStage:
    return ResolvedStage.of(synthesised(request.param))


@pytest.fixture(scope="module")
def calls(recorded: tuple[list[Asked], dict[str, str]], stage: ResolvedStage) -> list[Asked]:
    """What was recorded, with the resources of the stage."""
    asked, outputs = recorded
    return [moved(call, outputs, stage.outputs()) for call in asked]


def _policies(stage: ResolvedStage) -> dict[str, list[Statement]]:
    """The statements of each function's role."""
    names = {spec.construct_id for spec in SPECS.values()}
    return {name: statements for name, statements in stage.policies().items() if name in names}


def _refused(
    stage: ResolvedStage, calls: list[Asked], policies: Mapping[str, list[Statement]] | None = None
) -> list[Asked]:
    """Those of the calls that IAM would refuse."""
    policies = policies or _policies(stage)
    decided = decisions([(call, policies[call.function]) for call in calls], stage.resource_policies())
    return [call for call, decision in zip(calls, decided, strict=True) if decision != ALLOWED]


def test_every_recorded_call_is_allowed(stage: ResolvedStage, calls: list[Asked]) -> None:
    assert {call.function for call in calls} == _policies(stage).keys() - SILENT
    assert _refused(stage, calls) == []


def test_no_recorded_call_is_allowed_in_another_stage(stage: ResolvedStage, calls: list[Asked]) -> None:
    elsewhere = [
        replace(call, resource=re.sub(r"dualtrack-(staging|prod)", "dualtrack-other", call.resource, count=1))
        for call in calls
    ]
    assert not set(elsewhere) & set(calls)
    assert _refused(stage, elsewhere) == elsewhere


NOBODY: Final = {
    "dynamodb:DeleteTable": "History", "dynamodb:UpdateTable": "Credits", "dynamodb:Scan": "Chats",
    "dynamodb:PartiQLSelect": "Cache", "dynamodb:ExportTableToPointInTime": "History",
    "s3:DeleteBucket": "Bodies", "s3:PutBucketPolicy": "Bodies", "s3:DeleteObjectVersion": "Bodies/a",
    "s3:GetObject": "arn:aws:s3:::somebody-elses/a", "ssm:PutParameter": "/anthropic",
    "iam:PassRole": f"arn:aws:iam::{ACCOUNT}:role/admin", "sts:AssumeRole": f"arn:aws:iam::{ACCOUNT}:role/admin",
    "states:UpdateStateMachine": "StateMachine", "kms:ScheduleKeyDeletion": "Key",
}  # fmt: skip
"""What no function may do, and to what."""

READERS: Final = ("Ingest", "GraphLoad", *(name for part in parts("recorded") for name in part.READERS))
"""Functions that read files of strangers."""

KEYED: Final = (
    # takes leases, and nothing else of the cache but what an administrator accepts
    (("Stream",), ("UpdateItem",), "Cache", ("mcp#catalogue",)),
    (("Api", "Stream"), ("UpdateItem",), "Cache", ("LEASE#a", "TOKEN#ann")),
    (("Api",), ("UpdateItem",), "Cache", ("mcp#catalogue", "TOKEN#ann")),
    # pins agents, and changes what servers offer
    (("Turn",), ("PutItem", "UpdateItem"), "Cache", ("TOKEN#ann",)),
    (("Turn",), ("UpdateItem",), "Cache", ("agent#a",)),
    (("Mcp",), ("PutItem", "UpdateItem"), "Cache", ("agent#a",)),
    (("Mcp",), ("PutItem",), "Cache", ("mcp#catalogue", "TOKEN#ann")),
    # reads files of strangers: no user's items
    (("Ingest", "GraphLoad"), ("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"), "History", ("USER#ann",)),
    (("Ingest", "GraphLoad"), ("PutItem", "DeleteItem"), "History", ("CORPUS#courses", "USER#ann")),
    *(refused for part in parts("permissions") for refused in part.KEYED),
)  # fmt: skip
"""Functions, actions, table, or an index of it, and partition keys beyond the condition of a statement."""


def _planted(stage: ResolvedStage) -> list[Asked]:
    """Calls that nobody should make: of other users' items, of whole tables, of roles and policies."""
    names = stage.arns()
    anybody = [
        Asked(function, action, names.get(what, what))
        for function in _policies(stage)
        for action, what in NOBODY.items()
    ]
    keyed = [
        Asked(
            function, f"dynamodb:{action}", f"{names[table]}{slash}{index}", (("dynamodb:LeadingKeys", keys),)
        )
        for functions, actions, place, keys in KEYED
        for table, slash, index in [place.partition("/")]
        for function in functions
        for action in actions
    ]
    objects = [
        Asked(function, f"s3:{action}", f"{names['Bodies']}/USER/ann")
        for function in READERS
        for action in ("GetObject", "PutObject")
    ]
    lists = [
        Asked(function, "s3:ListBucket", names["Bodies"], (("s3:prefix", (prefix,)),))
        for function in READERS
        if function != "GraphLoad"
        for prefix in ("", "USER/")
    ]
    keys = [
        Asked(function, "kms:Decrypt", names["Key"])
        for function in _policies(stage)
        if function not in ("Mcp", *DECRYPTING)
    ]
    return [*anybody, *keyed, *objects, *lists, *keys]


def test_planted_calls_are_refused(stage: ResolvedStage) -> None:
    planted = _planted(stage)
    assert _refused(stage, planted) == planted


def test_without_its_condition_a_statement_lets_a_planted_call_through(stage: ResolvedStage) -> None:
    """So the planted calls show each condition."""
    planted, policies = _planted(stage), _policies(stage)
    limited = [
        (function, number)
        for function, statements in policies.items()
        for number, statement in enumerate(statements)
        if "Condition" in statement
    ]
    assert len(limited) > 6
    for function, number in limited:
        wider = [*policies[function]]
        wider[number] = {name: value for name, value in wider[number].items() if name != "Condition"}
        ours = [call for call in planted if call.function == function]
        assert _refused(stage, ours, {function: wider}) != ours, wider[number]


# ── what is granted and was not used ──────────────────────────────────────────────────────────────

ASKED_BY_LAMBDA: Final = frozenset({"logs", "xray", "sqs"})
"""Services that Lambda calls with a function's role: its log, its traces, events that failed."""

UNUSED: Final[Mapping[str, frozenset[str]]] = {
    "A large answer, result or summary is kept as an object, and read from it": frozenset(
        {
            "Turn s3:PutObject bodies/*", "Tool s3:PutObject bodies/*", "Search s3:PutObject bodies/*",
            "Graph s3:PutObject bodies/*", "Summarise s3:PutObject bodies/*", "Abort s3:PutObject bodies/*",
            "Sweep s3:PutObject bodies/*", "Abort s3:GetObject bodies/*", "Sweep s3:GetObject bodies/*",
            "Mcp s3:GetObject bodies/*",
        }
    ),
    "Texts of a middle size are items of their own, read many at once": frozenset(
        {
            "Abort dynamodb:BatchGetItem history", "Mcp dynamodb:BatchGetItem history",
            "Graph dynamodb:BatchGetItem history", "Tool dynamodb:BatchGetItem history",
            "Sweep dynamodb:BatchGetItem history", "Abort dynamodb:GetItem history",
        }
    ),
    "A long conversation: folds, digests, tracks that a failed query did not get": frozenset(
        {
            "Turn dynamodb:ConditionCheckItem history", "Summarise dynamodb:ConditionCheckItem history",
            "Abort dynamodb:ConditionCheckItem history", "Summarise dynamodb:UpdateItem history",
            "Tool dynamodb:Query history",
        }
    ),
    "Deletion of what forks have shared, in steps that may fail halfway": frozenset(
        {
            "Api dynamodb:ConditionCheckItem history", "Sweep dynamodb:ConditionCheckItem history",
            "Api s3:DeleteObject bodies/*", "Sweep s3:DeleteObject bodies/*", "Sweep dynamodb:DeleteItem chats",
            "Sweep dynamodb:DeleteItem credits", "Sweep dynamodb:DeleteItem history",
            "Sweep dynamodb:BatchWriteItem history", "Sweep s3:ListBucket bodies",
            "Sweep cognito-idp:AdminDeleteUser users",
        }
    ),
    "A repeat whose chat could not be started": frozenset({"Api dynamodb:DeleteItem chats"}),
    "Requests that wait for an answer (?wait)": frozenset({"Api dynamodb:UpdateItem cache LEASE#*"}),
    "A job whose workflow was never started, or has ended without it": frozenset(
        {"Sweep states:StartExecution corpus", "Sweep states:DescribeExecution corpus:*"}
    ),
    "An account that was used on an earlier day": frozenset(
        {"CreditReset dynamodb:GetItem credits", "CreditReset dynamodb:PutItem credits"}
    ),
    "A tool that the model's service refuses": frozenset(
        {"Turn dynamodb:PutItem cache mcp#catalogue", "Turn dynamodb:UpdateItem cache mcp#catalogue"}
    ),
    "Administrators' keys ask the pool at each use": frozenset({"Api cognito-idp:AdminListGroupsForUser users"}),
    "A call that may not wait, beside others that do": frozenset({"Turn dynamodb:ConditionCheckItem chats"}),
    "A chat whose agent a deployment has changed meanwhile": frozenset({"Summarise dynamodb:GetItem cache"}),
    "Several chats that wait, and a decision beside another": frozenset(
        {"Api dynamodb:BatchGetItem chats", "Api dynamodb:ConditionCheckItem chats"}
    ),
    "Passages of a long conversation, regrouped after each 16th query": frozenset(
        {"Summarise lambda:InvokeFunction embed:live", "Summarise ssm:GetParameter voyage"}
    ),
    "Vectors are kept, unless the embedder is too late, as on a busy machine": frozenset(
        {"Search dynamodb:ConditionCheckItem history"}
    ),
    "The deployment's own token, for users without one": frozenset({"Mcp ssm:GetParameter github"}),
}  # fmt: skip
"""Permissions that no story above uses, by the reason why they are there: function, action, resource."""

OTHER_STORIES: Final = ("Stream", *OF_PLUGINS)
"""The first admits chats with `api`'s own code, and a plug-in's tests tell of its functions."""


def _grants(stage: ResolvedStage) -> list[Grant]:
    return [
        (function, action, {**statement, "Action": action, "Resource": resource})
        for function, statements in _policies(stage).items()
        for statement in statements
        for action in many(statement["Action"])
        for resource in statement["Resource"]
        if action.partition(":")[0] not in ASKED_BY_LAMBDA
    ]


def _named(grant: Grant) -> str:
    """``Turn dynamodb:PutItem cache mcp#catalogue``."""
    function, action, statement = grant
    where = re.sub(r".*dualtrack-[a-z]+[-/](data-|identity-|chat-)?", "", statement["Resource"])
    where = re.sub(r"(function)?[0-9a-f]{8}(?=[:/]|$)", "", where)
    keys = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])
    return " ".join((function, action, where, *keys))


def _used(stage: ResolvedStage, calls: list[Asked]) -> set[str]:
    """The permissions that alone allow at least one of the calls."""
    asked = [
        (grant, call)
        for grant in _grants(stage)
        for call in calls
        if (call.function, call.action) == grant[:2]
    ]
    decided = decisions([(call, [grant[2]]) for grant, call in asked], stage.resource_policies())
    return {_named(grant) for (grant, _), decision in zip(asked, decided, strict=True) if decision == ALLOWED}


def test_what_is_granted_is_used_or_has_a_reason(stage: ResolvedStage, calls: list[Asked]) -> None:
    granted = {_named(grant) for grant in _grants(stage)}
    excused = frozenset[str]().union(*UNUSED.values())
    other = {name for name in granted if name.split()[0] in OTHER_STORIES}
    assert sorted(granted - _used(stage, calls) - excused - other) == []
    assert excused <= granted
