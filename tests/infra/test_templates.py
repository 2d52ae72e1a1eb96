"""What must be true of the templates of every stage, and of prod only."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from dualtrack.api.route import EVENTS_PATH, KEY_PATH
from dualtrack.api.streamed import api_at
from dualtrack.api.table import ROUTES
from dualtrack.chat_times import ANSWER_LEASE_SECONDS
from dualtrack.errors import STATUS_OF_CODE
from dualtrack.storage.leases import STREAMS
from dualtrack_stack.gateway import key_methods
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.templates import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

TABLES = 4
KEY_LIKE = re.compile(r"sk-|ghp_|github_pat_|pa-|ctx7sk|AKIA|BEGIN [A-Z ]*PRIVATE KEY")


def function_names(stage: Stage) -> dict[str, dict[str, object]]:
    """Properties of the functions by their construct's name."""
    functions = stage.resources("Chat", "AWS::Lambda::Function")
    return {re.sub(r"Function[0-9A-F]{8}$", "", key): value for key, value in functions.items()}


def test_every_function_is_there_and_only_those(aws_stage: Stage) -> None:
    functions = function_names(aws_stage)
    assert set(functions) == {spec.construct_id for spec in SPECS.values()} - {"Own"}
    assert {function["Runtime"] for function in functions.values()} == {"python3.13"}
    assert {tuple(function["Architectures"]) for function in functions.values()} == {("arm64",)}  # type: ignore[arg-type]
    assert all(function["TracingConfig"] == {"Mode": "Active"} for function in functions.values())


def test_every_function_has_its_alias(aws_stage: Stage) -> None:
    aliases = aws_stage.resources("Chat", "AWS::Lambda::Alias").values()
    assert {alias["Name"] for alias in aliases} == {"live"}
    assert len(aliases) == len(SPECS) - 1


def test_a_release_of_prod_first_gets_a_fifth_of_the_chats(prod: Stage) -> None:
    """It rolls back on alarms; jobs on corpora are too few to be split."""
    aliases = prod.resources("Chat", "AWS::StepFunctions::StateMachineAlias")
    preferences = {key: alias["DeploymentPreference"] for key, alias in aliases.items()}
    (chat,) = [preference for key, preference in preferences.items() if key.startswith("Chat")]
    (corpus,) = [preference for key, preference in preferences.items() if key.startswith("Corpus")]
    assert (chat["Type"], chat["Percentage"], chat["Interval"]) == ("CANARY", 20, 10)
    alarms = [str(alarm["Ref"]) for alarm in chat["Alarms"]]
    assert [re.sub("[0-9A-F]{8}$", "", alarm) for alarm in alarms] == [
        "ObservabilityChatsFail",
        "ObservabilityChatsTimeOut",
        "ObservabilityAbortFails",
    ]
    assert corpus["Type"] == "ALL_AT_ONCE"
    failing = prod.resources("Chat", "AWS::CloudWatch::Alarm")[alarms[0]]["Metrics"]
    assert {query["MetricStat"]["Period"] for query in failing if "MetricStat" in query} == {300}


def test_staging_switches_at_once_and_the_local_stack_has_no_versions(
    staging: Stage, assembly: Callable[..., Path]
) -> None:
    kinds = ("AWS::StepFunctions::StateMachineAlias", "AWS::StepFunctions::StateMachineVersion")
    local = Stage("local", assembly("local"))
    assert not any(local.resources("Chat", kind) for kind in kinds)
    aliases = staging.resources("Chat", kinds[0]).values()
    assert {alias["DeploymentPreference"]["Type"] for alias in aliases} == {"ALL_AT_ONCE"}


def test_everything_stored_is_encrypted(aws_stage: Stage) -> None:
    tables = aws_stage.resources("Data", "AWS::DynamoDB::Table")
    assert len(tables) == TABLES
    for table in tables.values():
        assert table["SSESpecification"] == {"SSEEnabled": True}
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    (bucket,) = aws_stage.resources("Data", "AWS::S3::Bucket").values()
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    queues = aws_stage.resources("Chat", "AWS::SQS::Queue").values()
    assert queues
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues)
    (key,) = aws_stage.resources("Data", "AWS::KMS::Key").values()
    assert key["EnableKeyRotation"] is True


def test_prod_retains_its_data_and_staging_does_not(prod: Stage, staging: Stage) -> None:
    for stage, protected in ((prod, True), (staging, False)):
        for table in stage.resources("Data", "AWS::DynamoDB::Table").values():
            recovery = table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
            assert (recovery, table["DeletionProtectionEnabled"]) == (protected, protected)
        (pool,) = stage.resources("Identity", "AWS::Cognito::UserPool").values()
        assert pool["DeletionProtection"] == ("ACTIVE" if protected else "INACTIVE")
        kept = {
            resource["Type"]
            for resource in stage.template("Data")["Resources"].values()
            if resource.get("DeletionPolicy", "Delete") != "Delete"
        }
        stored = {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key"}
        assert kept == (stored if protected else set())


def test_logs_are_kept_for_a_time_and_no_longer(aws_stage: Stage) -> None:
    groups = aws_stage.all_resources("AWS::Logs::LogGroup").values()
    assert groups
    assert all(group.get("RetentionInDays") for group in groups)
    logging = [f["LoggingConfig"] for f in function_names(aws_stage).values()]
    assert all(config["LogGroup"] for config in logging)  # type: ignore[index]


def test_no_template_contains_a_secret(aws_stage: Stage) -> None:
    for stack in ("Data", "Identity", "Chat"):
        assert not KEY_LIKE.search(json.dumps(aws_stage.template(stack)))
    for function in function_names(aws_stage).values():
        names = set(function["Environment"]["Variables"])  # type: ignore[index]
        assert not {name for name in names if name.endswith(("_API_KEY", "_TOKEN", "_PASSWORD"))}


def test_settings_are_part_of_the_version_that_is_published(aws_stage: Stage) -> None:
    """A template parameter would change the function and leave the alias on the old version."""
    assert set(aws_stage.template("Chat")["Parameters"]) == {"BootstrapVersion"}


def test_staging_and_prod_differ_by_settings_alone(prod: Stage, staging: Stage) -> None:
    for stack in ("Data", "Identity", "Chat"):
        only_prod = {
            resource["Type"]
            for key, resource in prod.template(stack)["Resources"].items()
            if key not in staging.template(stack)["Resources"] and "CurrentVersion" not in key
        }
        # the name of API Gateway's deployment depends on its content
        assert only_prod <= {
            "AWS::CloudWatch::Alarm",
            "AWS::SNS::Topic",
            "AWS::SNS::TopicPolicy",
            "AWS::ApiGateway::Deployment",
        }


def test_the_gateways_own_errors_have_the_contracts_form(aws_stage: Stage) -> None:
    answers = aws_stage.resources("Chat", "AWS::ApiGateway::GatewayResponse").values()
    kinds = {answer["ResponseType"] for answer in answers}
    assert {
        "UNAUTHORIZED",
        "THROTTLED",
        "REQUEST_TOO_LARGE",
        "INTEGRATION_TIMEOUT",
        "INTEGRATION_FAILURE",
    } <= kinds
    for answer in answers:
        error = json.loads(answer["ResponseTemplates"]["application/json"])["error"]
        # clients of other forms read the last two
        assert set(error) - {"type", "param"} == {"code", "message"}
        # without a status it is the gateway's default response
        if not answer["ResponseType"].startswith("DEFAULT_"):
            assert STATUS_OF_CODE[error["code"]] == int(answer["StatusCode"])
        if error["code"] == "rate_limited":
            assert "gatewayresponse.header.Retry-After" in answer["ResponseParameters"]


def methods_by_path(stage: Stage) -> list[tuple[str, Mapping[str, Any]]]:
    """Path and properties of each method of the API."""
    resources = stage.resources("Chat", "AWS::ApiGateway::Resource")

    def path_of(reference: Mapping[str, Any]) -> str:
        if reference.get("Ref") not in resources:
            return ""
        own = resources[reference["Ref"]]
        return f"{path_of(own['ParentId'])}/{own['PathPart']}"

    methods = stage.resources("Chat", "AWS::ApiGateway::Method").values()
    return [(path_of(method["ResourceId"]), method) for method in methods]


def test_every_route_but_two_and_those_of_keys_needs_a_token(aws_stage: Stage) -> None:
    open_routes = {
        (path, method["HttpMethod"])
        for path, method in methods_by_path(aws_stage)
        if method["HttpMethod"] != "OPTIONS" and method["AuthorizationType"] != "COGNITO_USER_POOLS"
    }
    assert open_routes == {("/health", "GET"), ("/openapi.json", "GET"), *key_methods()}
    assert all(path.startswith("/key/v1/") or api_at(path) for path, _ in key_methods())


def test_a_parent_path_of_the_events_is_answered_like_any_other(aws_stage: Stage) -> None:
    """API Gateway does not fall back to the proxy where a more specific resource exists."""
    answered = {path for path, method in methods_by_path(aws_stage) if method["HttpMethod"] in ("ANY", "GET")}
    above = EVENTS_PATH.strip("/").split("/")[:-1]
    assert {"/" + "/".join(above[: end + 1]) for end in range(len(above))} < answered


def test_a_key_reaches_every_route_that_has_a_scope() -> None:
    """At its own resource below ``/key``, or at the proxy."""
    reached = set(key_methods())
    paths = {path for path, _ in reached}
    for route in ROUTES:
        own = f"/key{route.path}"
        at = own if own in paths else "/key/v1/{proxy+}"
        assert ((at, route.method.upper()) in reached) >= bool(route.scopes), route.path


def test_only_events_and_answers_by_plug_ins_own_apis_are_streamed(aws_stage: Stage) -> None:
    streamed = {
        path: method["Integration"]
        for path, method in methods_by_path(aws_stage)
        if method["Integration"].get("ResponseTransferMode") == "STREAM"
    }
    answers = {path for path, _ in key_methods() if api_at(path)}
    assert set(streamed) == {EVENTS_PATH, KEY_PATH + EVENTS_PATH, *answers}
    seconds = int(str(function_names(aws_stage)["Stream"]["Timeout"]))
    for path, integration in streamed.items():
        own = ANSWER_LEASE_SECONDS if path in answers else STREAMS.seconds
        assert own * 1000 < integration["TimeoutInMillis"] <= seconds * 1000, "it ends by itself"
        assert "response-streaming-invocations" in json.dumps(integration["Uri"])
    (api,) = aws_stage.resources("Chat", "AWS::ApiGateway::RestApi").values()
    assert api["EndpointConfiguration"]["Types"] == [
        "REGIONAL"
    ]  # an edge-optimised API cuts idle streams at 30 s


def test_ends_without_a_catch_reach_abort(aws_stage: Stage) -> None:
    rules = aws_stage.resources("Chat", "AWS::Events::Rule").values()
    (ended,) = [r for r in rules if r["EventPattern"]["source"] == ["aws.states"]]
    assert set(ended["EventPattern"]["detail"]["status"]) == {"FAILED", "TIMED_OUT", "ABORTED"}
    (target,) = ended["Targets"]
    assert target["Arn"]["Ref"].startswith("AbortLive")
    assert target["DeadLetterConfig"]


def test_schedules_have_retries_and_a_queue_for_what_was_not_delivered(aws_stage: Stage) -> None:
    schedules = aws_stage.resources("Chat", "AWS::Scheduler::Schedule").values()
    expressions = {schedule["ScheduleExpression"] for schedule in schedules}
    assert {"rate(5 minutes)", "cron(0 0 * * ? *)"} <= expressions
    assert all(schedule["Target"]["DeadLetterConfig"] for schedule in schedules)
