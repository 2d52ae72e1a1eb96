"""What `aws up`, `doctor` and `down` decide from an account's state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from dualtrack.clock import epoch_of
from dualtrack.models.prices import price_list
from dualtrack.settings import Settings
from dualtrack_stack.cli.aws import decide, doctor
from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.checks import CHECKS, ChatTimes, CheckResult, Probe, run_checks
from dualtrack_stack.cli.aws.down import must_be_named
from dualtrack_stack.cli.aws.facts import PoolUser, Stack, StackResource, is_tagged
from dualtrack_stack.cli.aws.losses import counted, size
from dualtrack_stack.cli.aws.questions import Person
from dualtrack_stack.cli.aws.smoke_report import markdown, measures, picture
from dualtrack_stack.cli.aws.things import Thing, in_order, is_of_stage, log_groups_of
from dualtrack_stack.cli.aws.up import new_password
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.local.loopback import serve_in_thread

CHAT = Stack("dualtrack-staging-chat", "CREATE_COMPLETE")


@pytest.mark.parametrize(
    ("status", "action"),
    [
        ("CREATE_COMPLETE", "go"),
        ("UPDATE_COMPLETE", "go"),
        ("UPDATE_ROLLBACK_COMPLETE", "go"),
        ("REVIEW_IN_PROGRESS", "go"),
        ("CREATE_IN_PROGRESS", "wait"),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "wait"),
        ("ROLLBACK_IN_PROGRESS", "wait"),
        ("DELETE_IN_PROGRESS", "wait"),
        ("ROLLBACK_COMPLETE", "delete"),
        ("CREATE_FAILED", "delete"),
        ("DELETE_FAILED", "delete"),
        ("UPDATE_ROLLBACK_FAILED", "stop"),
    ],
)
def test_a_stack_is_changed_only_in_a_state_that_allows_it(status: str, action: str) -> None:
    assert decide.before_deploy(replace(CHAT, status=status)) == action


def test_a_missing_stack_is_created() -> None:
    assert decide.before_deploy(None) == "go"


def test_what_the_account_allows_is_derived_unless_the_operator_says_otherwise() -> None:
    """Streams have half of it; the embeddings of one search leave the smallest account nine of its ten executions."""
    streams, calls = "DUALTRACK_OPEN_STREAMS", "DUALTRACK_EMBED_CALLS"
    new = decide.of_concurrency(10, {}, {})
    assert new == {streams: "5", calls: "1"}
    assert decide.of_concurrency(50, {}, {})[calls] == "5"
    assert decide.of_concurrency(1000, new, new) == {streams: "500", calls: "8"}, "the limit was raised"
    assert decide.of_concurrency(1000, {}, {streams: "40", calls: "2"}) == {}


@pytest.mark.parametrize(("version", "needed"), [(None, True), (5, True), (6, False), (33, False)])
def test_the_region_is_bootstrapped_once(version: int | None, needed: bool) -> None:
    assert decide.needs_bootstrap(version) is needed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("anthropic", "sk-ant-api03-0123456789abcdefghij"),
        ("anthropic", "none"),
        ("voyage", "pa-0123456789"),
        ("context7", "ctx7sk-0123456789"),
        ("github", "github_pat_0123456789abcdefghijk"),
    ],
)
def test_a_key_of_the_right_form_is_taken(name: str, value: str) -> None:
    assert not decide.key_problem(name, value)


@pytest.mark.parametrize(
    "value", ["", "sk-proj-of-another-house-entirely", "sk-ant-x y", " sk-ant-0123456789012345678901"]
)
def test_a_wrong_key_is_refused_and_never_echoed(value: str) -> None:
    problem = decide.key_problem("anthropic", value)
    assert problem
    assert not value or value.strip() not in problem


def test_a_custom_service_accepts_any_single_line_key() -> None:
    assert not decide.key_problem("anthropic", "internal-7", own_service=True)
    for value in ("two\nlines", "two words", "naïve"):
        assert decide.key_problem("anthropic", value, own_service=True)


def test_an_existing_key_is_replaced_only_on_request() -> None:
    keys = {"anthropic": "a", "voyage": "v"}
    assert decide.keys_to_put({"anthropic"}, keys) == {"voyage": "v"}
    assert decide.keys_to_put({"anthropic"}, keys, renew=True) == keys


def test_settings_of_an_earlier_up_are_kept() -> None:
    recorded: dict[str, Any] = {
        "settings": {"ALARM_EMAIL": "a@example.org", "PAGE_URL": "https://p/", "WAF": "on"},
        "overriding": ["ALARM_EMAIL", "PAGE_URL"],
    }
    assert decide.carried(recorded, {"PAGE_URL": "https://other/"}) == {"ALARM_EMAIL": "a@example.org"}
    assert decide.carried(None, {}) == {}


def test_the_sign_in_learns_the_pages_address_once() -> None:
    page = Stack(
        "dualtrack-staging-page", "CREATE_COMPLETE", outputs={"PageUrl": "https://d1.cloudfront.net/"}
    )
    assert decide.page_to_allow({}, page) == "https://d1.cloudfront.net/"
    assert not decide.page_to_allow({"PAGE_URL": "https://d1.cloudfront.net/"}, page)
    assert not decide.page_to_allow({"DOMAIN": "chat.example.org"}, page)
    assert not decide.page_to_allow({}, None)


def test_an_account_that_cloudfront_does_not_know_yet_is_recognised() -> None:
    said = "Distribution: Your account must be verified before you can add new CloudFront resources."
    assert decide.is_not_verified(Stack("p", "ROLLBACK_COMPLETE", said))
    assert not decide.is_not_verified(
        Stack("p", "ROLLBACK_COMPLETE", "Distribution: InvalidViewerCertificate")
    )
    assert not decide.is_not_verified(None)


def of_stage(**statuses: str) -> dict[str, Stack]:
    return {name: Stack(f"dualtrack-prod-{name}", status) for name, status in statuses.items()}


def test_a_stack_is_switched_off_if_its_setting_is() -> None:
    done = "CREATE_COMPLETE"
    stacks = of_stage(data=done, identity=done, vectors=done, mcp=done, chat=done, page=done)
    wanted = {"GITHUB_MCP_IMAGE": "registry.example/x", "DUALTRACK_COURSE_INDEX": "s3vectors"}
    assert decide.switched_off(stacks, wanted, page=True) == []
    assert decide.switched_off(stacks, {}, page=False) == ["vectors", "mcp", "page"]
    assert decide.switched_off(stacks, {"DUALTRACK_COURSE_INDEX": "embedded"}, page=True) == [
        "vectors",
        "mcp",
    ]
    assert decide.switched_off(of_stage(data=done, chat=done), {}, page=False) == []


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "DELETE_FAILED", "CREATE_IN_PROGRESS"])
def test_what_is_deleted_anyway_is_not_asked_about(status: str) -> None:
    assert decide.switched_off(of_stage(page=status), {}, page=False) == []


def test_a_stack_that_cannot_go_says_why() -> None:
    assert decide.why_it_stays("page", ()) == decide.why_it_stays("mcp", ()) == ""
    assert "Versions 4, 12 of the function mcp" in decide.why_it_stays("mcp", {12, 4})
    assert "delete-index" in decide.why_it_stays("vectors", ())


def test_versions_in_a_network_are_those_published_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda's answer for a function without a VPC has an empty VpcConfig, or none."""
    account = AwsAccount("us-east-1")
    client: Any = boto3.client("lambda", region_name="us-east-1")
    inside = {"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"], "VpcId": "vpc-1"}
    versions = [
        {"Version": "$LATEST", "VpcConfig": inside},
        {"Version": "1"},
        {"Version": "2", "VpcConfig": inside},
        {"Version": "3", "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": [], "VpcId": ""}},
    ]
    monkeypatch.setattr(account, "client", lambda _: client)
    with Stubber(client) as stub:
        stub.add_response("list_versions_by_function", {"Versions": versions}, {"FunctionName": "mcp"})
        assert account.versions_in_network("mcp") == {2}


NEW, KNOWN = PoolUser("ann", "FORCE_CHANGE_PASSWORD"), PoolUser("ann", "CONFIRMED")


@pytest.mark.parametrize(
    ("admins", "user", "shown", "todo"),
    [
        ((), None, False, "create"),
        ((), None, True, "create"),
        ((), NEW, False, "group"),  # killed before the user became an administrator
        ((NEW,), NEW, False, "none"),
        ((NEW,), NEW, True, "password"),  # killed before the password was shown
        ((KNOWN,), KNOWN, True, "none"),
        ((PoolUser("bob", "CONFIRMED"),), NEW, True, "none"),
    ],
)
def test_the_first_user_is_made_once(
    admins: tuple[PoolUser, ...], user: PoolUser | None, shown: bool, todo: str
) -> None:
    assert decide.first_user(admins, user, shown=shown) == todo


def test_a_user_name_is_derived_from_an_address() -> None:
    assert decide.name_of("ann.lee+x@example.org") == "ann.lee+x"
    assert decide.name_of("änn@example.org") == "-nn"
    assert decide.is_address("a@b.c")
    assert not decide.is_address("a@b")
    assert not decide.is_address("two words@b.c")


def test_a_temporary_password_fits_the_pools_policy() -> None:
    for _ in range(50):
        password = new_password()
        assert len(password) == 16
        assert all(
            any(test(character) for character in password) for test in (str.islower, str.isupper, str.isdigit)
        )
        assert set(password) & set("-_.!")


def test_without_a_terminal_no_question_is_asked() -> None:
    person = Person(is_there=False)
    with pytest.raises(Missing, match="--email"):
        person.says("Address", "--email", lambda _: "")
    assert not person.says("Address", "--email", lambda _: "", optional=True)
    assert Person(yes=True, is_there=False).agrees("Deploy?")
    assert person.asked == 0


# doctor


def test_for_a_stage_never_deployed_the_command_is_named() -> None:
    findings = list(doctor.of_stacks("staging", {}))
    assert [finding.state for finding in findings] == ["wrong"] * 3
    assert {finding.mend for finding in findings} == {"uv run dualtrack aws up --stage staging"}
    assert not doctor.is_well(findings)


@pytest.mark.parametrize(
    ("status", "state", "mend"),
    [
        ("UPDATE_COMPLETE", "ok", ""),
        ("UPDATE_IN_PROGRESS", "note", "wait"),
        ("ROLLBACK_COMPLETE", "wrong", "aws up"),
        ("UPDATE_ROLLBACK_COMPLETE", "note", "rolled back"),
        ("UPDATE_ROLLBACK_FAILED", "wrong", "continue-update-rollback --stack-name dualtrack-staging-chat"),
    ],
)
def test_each_state_of_a_stack_has_its_remedy(status: str, state: str, mend: str) -> None:
    stacks = {"data": CHAT, "identity": CHAT, "chat": replace(CHAT, status=status)}
    finding = list(doctor.of_stacks("staging", stacks))[-1]
    assert finding.state == state
    assert mend in finding.mend


def test_every_fault_is_named_with_its_remedy() -> None:
    wrong = [
        doctor.of_bootstrap(None, "staging"),
        doctor.of_keys("staging", frozenset({"voyage"}), {}),
        doctor.of_secrets("staging", "eu-west-1", ["STRIPE_KEY"]),
        doctor.of_model(401, "m", "staging", "ANTHROPIC_API_KEY"),
        doctor.of_model(404, "m", "staging", "ANTHROPIC_API_KEY"),
        doctor.of_subscription(0, 1, "a@example.org", "prod"),
        doctor.of_subscription(0, 0, "", "prod"),
        doctor.of_queue("Queue", 2, "https://sqs/q"),
        doctor.of_executions([("ch_1.1", 0.0), ("ch_2.1", 1900.0)], 2000.0),
        doctor.of_admins([], "staging"),
    ]
    assert all(finding.state == "wrong" and finding.mend for finding in wrong)
    assert "1 run for more than 20 minutes: ch_1" in wrong[-2].seen
    assert wrong[-2].mend == "uv run dualtrack explain ch_1"


def test_a_stack_that_is_switched_off_is_named_with_its_cost() -> None:
    finding = doctor.of_switched_off(CHAT, 11.608, "staging")
    assert finding.state == "note"
    assert "about $11.61 a month" in finding.seen
    assert finding.mend == "uv run dualtrack aws up --stage staging"


def test_a_healthy_stage_has_no_remedies() -> None:
    well = [
        doctor.of_bootstrap(30, "staging"),
        doctor.of_concurrency(1000, "eu-west-1"),
        doctor.of_keys("staging", frozenset({"anthropic"}), {}),
        doctor.of_keys("staging", frozenset(), {"DUALTRACK_PROVIDER": "bedrock"}),
        doctor.of_secrets("staging", "eu-west-1", []),
        doctor.of_model(200, "m", "staging", "ANTHROPIC_API_KEY"),
        doctor.of_subscription(1, 0, "", "prod"),
        doctor.of_queue("Queue", 0, ""),
        doctor.of_executions([("ch_2.1", 1900.0)], 2000.0),
        doctor.of_admins([NEW], "staging"),
        doctor.of_settings([], "staging"),
        doctor.of_cost_cap(0.25, "staging"),
    ]
    assert all(finding.state == "ok" and not finding.mend for finding in well)


def test_prices_that_are_old_or_not_known_are_a_note() -> None:
    taken = epoch_of(price_list().taken_on + "T00:00:00Z")
    fresh = doctor.of_prices(Settings(), taken + 90 * 86_400)
    old = doctor.of_prices(Settings(), taken + 91 * 86_400)
    assert (fresh.state, fresh.mend) == ("ok", "")
    assert (old.state, "91 days old" in old.seen) == ("note", True)
    assert "tests.drivers.model_prices" in old.mend
    dated = Settings(dualtrack_model="claude-haiku-4-5-20251001", dualtrack_provider="bedrock")
    assert doctor.of_prices(dated, taken).state == "ok"
    for provider, name in (("anthropic", "claude-nobody-9"), ("bedrock", "anthropic.claude-nobody-9")):
        own = Settings(dualtrack_model="claude-nobody-9", dualtrack_provider=provider)
        unknown = doctor.of_prices(own, taken)
        agreed = '{"claude-nobody-9":{"input":1,"output":5,"cache_read":0.1,"cache_write":1.25}}'
        assert doctor.of_prices(replace(own, dualtrack_model_prices=agreed), taken).state == "ok"
        assert (unknown.state, f"of {name}:" in unknown.seen) == ("note", True)


def test_a_new_accounts_limit_is_a_note_with_the_command() -> None:
    finding = doctor.of_concurrency(10, "eu-west-1")
    assert finding.state == "note"
    assert "about 3 chats" in finding.seen
    assert "L-B99A9384" in finding.mend
    assert doctor.is_well([finding])


def test_the_cost_cap_is_said_and_its_absence_too() -> None:
    capped = doctor.of_cost_cap(decide.chosen({"DUALTRACK_MAX_COST": "0.25"}).dualtrack_max_cost, "staging")
    assert (capped.state, capped.seen) == ("ok", "at most $0.25 a chat")
    free = doctor.of_cost_cap(decide.chosen({}).dualtrack_max_cost, "staging")
    assert (free.state, free.seen) == ("note", "no cap: DUALTRACK_MAX_COST is not set")
    assert "[stage.staging.settings] of dualtrack.toml" in free.mend
    with pytest.raises(Missing, match="DUALTRACK_MAX_COST = a lot"):
        decide.chosen({"DUALTRACK_MAX_COST": "a lot"})


# down


def test_prod_is_deleted_only_if_named() -> None:
    assert not must_be_named("staging", None)
    assert "--delete-data dualtrack-prod" in must_be_named("prod", None)
    assert must_be_named("prod", "prod")
    assert not must_be_named("prod", "dualtrack-prod")


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("dualtrack-staging-data-ChatsE68037FF-3EBEED8CAB223", True),
        ("dualtrack-staging-data-bodies3ff2aa63-52ad6fef028fe", True),
        ("dualtrack-staging-notes", False),
        ("dualtrack-staging-data-export", False),
        ("dualtrack-staging2-data-ChatsE68037FF-3EBEED8CAB223", False),
        ("dualtrack-prod-data-ChatsE68037FF-3EBEED8CAB223", False),
        ("my-dualtrack-staging-data-ChatsE68037FF-3EBEED8CAB223", False),
    ],
)
def test_only_resources_that_cloudformation_named_for_the_stage_are_deleted(name: str, is_ours: bool) -> None:
    assert is_of_stage(name, "staging") is is_ours


def test_a_key_belongs_to_a_stage_by_its_tags() -> None:
    assert is_tagged({"application": "dualtrack", "stage": "prod"}, "prod")
    assert not is_tagged({"application": "dualtrack", "stage": "staging"}, "prod")
    assert not is_tagged({"stage": "prod"}, "prod")


def test_an_importing_stack_is_deleted_before_the_exporting_one() -> None:
    names = [f"dualtrack-prod-{part}" for part in ("data", "identity", "chat", "page", "mcp")]
    things = [
        Thing("log group", "/g", "/g"),
        *(Thing("stack", stack, stack) for stack in names),
        Thing("table", "t", "t"),
    ]
    order = [thing.name.rsplit("-", 1)[-1] for thing in in_order(things)]
    assert order == ["page", "chat", "mcp", "identity", "data", "/g", "t"], "conversations are deleted last"


def test_a_log_group_without_tags_is_found_by_its_exact_name() -> None:
    resources = [
        StackResource("AWS::Logs::LogGroup", "dualtrack-prod-chat-TurnLogs-1"),
        StackResource("AWS::Lambda::Function", "dualtrack-prod-chat-Turn-1", "DELETE_COMPLETE"),
        StackResource("AWS::ApiGateway::RestApi", "a1b2"),
        StackResource("AWS::ApiGateway::Stage", "live"),
        StackResource("AWS::S3::Bucket", "dualtrack-prod-chat-bucket-1"),
    ]
    assert log_groups_of(resources) == {
        "dualtrack-prod-chat-TurnLogs-1",
        "/aws/lambda/dualtrack-prod-chat-Turn-1",
        "API-Gateway-Execution-Logs_a1b2/live",
    }


def test_a_loss_is_told_in_plain_figures() -> None:
    assert [size(count) for count in (0, 999, 1_000, 33_140_000, 5e15)] == [
        "0 bytes",
        "999 bytes",
        "1.0 KB",
        "33.1 MB",
        "5,000.0 TB",
    ]
    assert counted("conversations", 1_204, is_all=True) == "conversations: 1,204"
    assert counted("objects", 20_000, is_all=False) == "objects: at least 20,000"


# smoke


def test_an_unreachable_stack_fails_every_check_and_ends() -> None:
    probe = Probe("http://127.0.0.1:9", "token")
    told: list[CheckResult] = []
    results = run_checks(probe, told.append)
    probe.close()
    assert told == results
    assert len(results) == len(CHECKS)
    assert {result.state for result in results} == {"failed", "not reached"}


def test_an_answer_of_another_form_is_a_failed_check() -> None:
    async def empty(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    with serve_in_thread(empty) as url:
        probe = Probe(url, "t")
        results = {check.name: check for check in run_checks(probe, lambda _: None)}
        probe.close()
    assert results["health"].state == "passed"
    assert results["tools"].state == "failed"
    assert "KeyError" in results["tools"].seen


def test_the_report_has_every_check_and_every_figure() -> None:
    probe = Probe("https://d1.example", "t", timed={"first": ChatTimes(0.5, 2.25, 3.0)})
    probe.receipt = {"totals": {"dollars": 0.0004, "credits": 7}}
    results = [
        CheckResult("health", "200", "200", "passed", 0.1),
        CheckResult("a | b", "x", "<y>", "failed", 2.0),
    ]
    text = markdown("https://d1.example", "2026-11-22", results, measures(probe))
    assert "1 of 2 checks passed" in text
    assert "first token 2.25 s" in text
    assert "$0.000400, 7 credits" in text
    assert "| a \\| b | x |" in text
    drawn = picture(results)
    assert drawn.count("<rect") == 3
    assert "failed" in drawn
