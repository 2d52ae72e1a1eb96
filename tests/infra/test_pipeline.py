"""From a commit to a stage: GitHub's workflows, and the AWS roles that trust them (docs/aws/pipeline.md)."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from cfnlint.decode.cfn_yaml import load
from dualtrack_stack.cli.aws.cdk import PACKAGE
from dualtrack_stack.cli.new_command import SKELETON

from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKFLOWS: Final = (
    *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
    SKELETON / "github" / "workflows" / "deploy.yml",
)
REUSABLE: Final = "deploy-stage.yml"
TEMPLATE: Final = ROOT / "infra" / "dualtrack_stack" / "pipeline.yaml"
ISSUER: Final = "token.actions.githubusercontent.com"
PUBLISHERS: Final = ("actions/", "aws-actions/", "./.github/workflows/")
"""Owners of trusted actions: GitHub, AWS, and this project."""

ALLOWED: Final = {"contents": "read", "id-token": "write", "attestations": "write"}
"""Of a job: a token of its own for AWS or PyPI, and the proof of what was built."""

COMMIT: Final = re.compile(r"@[0-9a-f]{40}$")
SETUP_NODE: Final = "actions/setup-node@49933ea5288caeca8642d1e84afbd3f7d6820020 # v4.4.0"
UV: Final = "0.13.9"

BOOTSTRAP_ROLES: Final = {"deploy", "file-publishing", "lookup"}
READS: Final = {
    "cloudformation:DescribeStackEvents", "cloudformation:DescribeStacks", "cloudformation:GetTemplate",
    "cloudformation:ListStackResources", "ssm:GetParameter",
}  # fmt: skip
VERSIONS: Final = {
    "lambda": ("function", "DeleteFunction", {"ListAliases", "ListVersionsByFunction"}),
    "states": (
        "stateMachine",
        "DeleteStateMachineVersion",
        {
            "DescribeStateMachine", "DescribeStateMachineAlias", "ListExecutions", "ListStateMachineAliases",
            "ListStateMachineVersions",
        },
    ),
}  # fmt: skip
"""Service → resource, the action that deletes a version, and those that read."""
SMOKE_USER: Final = {
    "AdminCreateUser", "AdminDeleteUser", "AdminInitiateAuth", "AdminSetUserPassword", "ListUsers",
}  # fmt: skip


# ── workflows ─────────────────────────────────────────────────────────────────────────────────────


def actionlint() -> str:
    """The program, on the PATH or where its script installs it; skips the test without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = shutil.which("actionlint") or shutil.which("actionlint", path=cache / "dualtrack" / "bin")
    return program or pytest.skip("actionlint is not installed: bash .ci/install_actionlint.sh")


def linted(*paths: Path) -> subprocess.CompletedProcess[str]:
    """actionlint's findings, without the checkers of other languages, which it uses if they are installed."""
    command = [actionlint(), "-shellcheck=", "-pyflakes=", *map(str, paths)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_actionlint_has_nothing_to_say() -> None:
    done = linted(*WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_sees_what_is_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("inputs.stage", "inputs.nothing"))
    assert "inputs.nothing" in broken.read_text()
    assert '"nothing" is not defined' in linted(broken).stdout


def faults(text: str, workflow: dict[Any, Any]) -> Iterator[str]:
    """What is wrong with a workflow: GitHub Docs, "Secure use reference"."""
    yield from (
        f"it knows {name}" for name in re.findall(r"DUALTRACK_DROP|secrets\b|\w+_KEY\b|_TOKEN\b", text)
    )
    yield from (
        f"no release is named: {line}"
        for line in re.findall(r"@[0-9a-f]{40}\b(?! # v\d+\.\d+\.\d+$).*", text, re.MULTILINE)
    )
    yield from (
        f"any version of uv: {line}" for line in re.findall(r"pipx? install .*\buv\b(?!==\d).*", text)
    )
    if "pull_request_target" in text:
        yield "untrusted code runs with the repository's permissions"
    if workflow["permissions"] != {"contents": "read"}:
        yield f"every job may {workflow['permissions']}"
    for name, job in workflow["jobs"].items():
        yield from (f"{name}: {fault}" for fault in job_faults(job))


def job_faults(job: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a job."""
    if not job.get("permissions", {}).items() <= ALLOWED.items():
        yield f"may {job['permissions']}"
    for step in (job, *job.get("steps", ())):
        used, run = step.get("uses", ""), step.get("run", "")
        if used and not used.startswith(PUBLISHERS):
            yield f"runs code of {used}"
        if used and not used.startswith("./") and not COMMIT.search(used):
            yield f"{used} is no commit"
        if "${{" in run:
            yield f"user input becomes part of a command: {run}"
        if (
            used.startswith("actions/checkout@")
            and step.get("with", {}).get("persist-credentials") is not False
        ):
            yield "GitHub's token is left on the disk"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: f"{path.parents[2].name}-{path.name}")
def test_a_workflow_has_the_least_permissions_and_no_key(path: Path) -> None:
    assert list(faults(path.read_text(), load(str(path)))) == []


@pytest.mark.parametrize(
    ("there", "instead", "fault"),
    [
        ("contents: read\n\njobs", "write-all\n\njobs", "every job may"),
        ("id-token: write", "packages: write", "may {"),
        (SETUP_NODE, "actions/setup-node@main", "no commit"),
        (SETUP_NODE, "actions/setup-node@v4.4.0", "no commit"),
        (SETUP_NODE, "actions/setup-node@49933ea", "no commit"),
        (" # v4.4.0", "", "no release is named"),
        (" # v4.4.0", " # v4", "no release is named"),
        ("actions/setup-node@", "somebody/setup-node@", "runs code of"),
        (f"uv=={UV}", "uv", "any version of uv"),
        ('--stage "$STAGE" --rolled', "--stage ${{ inputs.stage }} --rolled", "part of a command"),
        ("STAGE: ${{", "DUALTRACK_DROP: all\n      STAGE: ${{", "DUALTRACK_DROP"),
        ("STAGE: ${{", "KEY: ${{ secrets.KEY }}\n      STAGE: ${{", "secrets"),
        ("STAGE: ${{", "ANTHROPIC_API_KEY: sk\n      STAGE: ${{", "ANTHROPIC_API_KEY"),
        ("persist-credentials: false", "persist-credentials: true", "left on the disk"),
        ("  workflow_call:", "  pull_request_target:\n  workflow_call:", "untrusted code"),
    ],
)
def test_a_bad_workflow_is_detected(there: str, instead: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    text = next(workflow for workflow in WORKFLOWS if workflow.name == REUSABLE).read_text()
    assert there in text
    path.write_text(
        text.replace("permissions:\n  " + there, "permissions: " + instead).replace(there, instead)
    )
    assert any(fault in complaint for complaint in faults(path.read_text(), load(str(path))))


def test_a_stage_is_deployed_in_its_environment_and_never_cancelled() -> None:
    """Reviews are required per environment, and the role's trust policy names it."""
    theirs = load(str(WORKFLOWS[-1]))["jobs"]
    for stage in ("staging", "prod"):
        assert theirs[stage]["environment"] == stage
        assert theirs[stage]["concurrency"] == {"group": f"deploy-{stage}", "cancel-in-progress": False}
    deploy = load(str(ROOT / ".github" / "workflows" / REUSABLE))["jobs"]["deploy"]
    assert deploy["environment"] == "${{ inputs.stage }}"
    assert deploy["concurrency"] == {"group": "deploy-${{ inputs.stage }}", "cancel-in-progress": False}


def test_prod_comes_after_staging_and_staging_after_the_tests() -> None:
    own = load(str(ROOT / ".github" / "workflows" / "deploy.yml"))["jobs"]
    assert {name: job.get("needs") for name, job in own.items()} == {
        "test": None, "staging": "test", "prod": "staging",
    }  # fmt: skip
    theirs = load(str(WORKFLOWS[-1]))["jobs"]
    assert {name: job.get("needs") for name, job in theirs.items()} == {
        "test": None, "staging": "test", "prod": "staging",
    }  # fmt: skip
    assert own["staging"]["with"]["smoke"] is True
    assert theirs["staging"]["steps"][-1]["run"] == "uv run dualtrack aws smoke --stage staging"
    for jobs in (own, theirs):
        assert "refs/heads/main" in jobs["staging"]["if"]
        assert "if" not in jobs["prod"] or "always()" not in jobs["prod"]["if"]


def test_the_pipeline_and_the_command_deploy_with_the_same_cdk() -> None:
    versions = {version for path in WORKFLOWS for version in re.findall(r"aws-cdk@[\w.]+", path.read_text())}
    assert versions == {PACKAGE}


def test_every_runner_installs_the_same_uv() -> None:
    texts = [path.read_text() for path in (*WORKFLOWS, ROOT / ".ci" / "run")]
    installed = [line for text in texts for line in text.splitlines() if re.search("pipx? install", line)]
    assert len(installed) == 7
    assert all(line.endswith(f" uv=={UV}") for line in installed)


# ── roles ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def template() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(load(str(TEMPLATE))))
    return loaded


def test_the_stages_of_an_account_are_chosen(template: dict[str, Any]) -> None:
    """With `both`, a compromised staging reaches prod: nobody gets that without saying so."""
    assert "Default" not in template["Parameters"]["Stages"]


def test_cfn_lint_takes_the_template() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from cfnlint.runner.cli import main; sys.exit(main())",
            str(TEMPLATE),
            "--regions",
            "us-east-1",
            "eu-central-1",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def role_faults(template: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the roles. GitHub Docs, "Configuring OpenID Connect in Amazon Web Services"; IAM User Guide,
    "Create a role for OpenID Connect federation": without ``sub`` every GitHub repository could assume the role.
    """
    roles = {
        key: resource
        for key, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
    }
    if set(roles) != {"StagingRole", "ProdRole"}:
        yield f"there are {set(roles)}"
    for key, role in roles.items():
        stage = key.removesuffix("Role").lower()
        trust = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        wanted = {
            "StringEquals": {
                f"{ISSUER}:aud": "sts.amazonaws.com",
                f"{ISSUER}:sub": {"Fn::Sub": f"repo:${{Repository}}:environment:{stage}"},
            }
        }
        if [statement["Condition"] for statement in trust] != [wanted]:
            yield f"{key} trusts others than jobs of the environment {stage}"
        if set(role["Properties"]) != {"Description", "AssumeRolePolicyDocument", "Policies"}:
            yield f"{key} has {set(role['Properties'])}"
        for policy in role["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                yield from (f"{key} {fault}" for fault in statement_faults(statement, stage))


def statement_faults(statement: dict[str, Any], stage: str) -> Iterator[str]:
    """Permissions of a stage's role that it does not need."""
    actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
    resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
    named = [resource["Fn::Sub"] if isinstance(resource, dict) else resource for resource in resources]
    services = {action.split(":")[0] for action in actions}
    if services == {"sts"}:
        ends = "-role-${AWS::AccountId}-${AWS::Region}"
        assumed = {role_arn.partition("role/cdk-hnb659fds-")[2].removesuffix(ends) for role_arn in named}
        if actions != ["sts:AssumeRole"] or assumed != BOOTSTRAP_ROLES:
            yield f"assumes other roles than the bootstrap's: {named}"
    elif services in ({"cloudformation"}, {"ssm"}):
        if not set(actions) <= READS:
            yield f"does {actions}"
        own = (f":stack/dualtrack-{stage}-*/*", f":parameter/dualtrack-settings/{stage}")
        if not all(arn.endswith(own) for arn in named):
            yield f"reads what is another's: {named}"
    elif services == {"cognito-idp"}:
        tags = {"aws:ResourceTag/application": "dualtrack", "aws:ResourceTag/stage": stage}
        if stage == "prod" or statement.get("Condition") != {"StringEquals": tags}:
            yield "creates users in other pools than staging's"
        if {action.split(":")[1] for action in actions} != SMOKE_USER:
            yield f"does {actions}"
    elif services <= set(VERSIONS):
        yield from version_faults(stage, set(actions), named)
    else:
        yield f"does {actions}"


def version_faults(stage: str, does: set[str], named: list[str]) -> Iterator[str]:
    """What is wrong with a statement on the versions of functions or workflows."""
    (service,), actions = ({action.split(":")[part] for action in does} for part in (0, 1))
    resource, delete, reads = VERSIONS[service]
    if not (actions == {delete} or actions <= reads):
        yield f"does {actions}"
    ending = ":*" if delete in actions else ""
    if not all(arn.endswith(f":{resource}:dualtrack-{stage}-*{ending}") for arn in named):
        yield f"reaches more than the stage's versions: {named}"


def test_a_role_is_for_one_environment_and_assumes_only_the_bootstraps_roles(
    template: dict[str, Any],
) -> None:
    assert list(role_faults(template)) == []


def test_the_pool_has_the_tags_that_the_smoke_tests_permissions_require() -> None:
    identity = json.loads(
        (ROOT / "infra" / "dualtrack_stack" / "local" / "templates" / "Identity.template.json").read_text()
    )
    (pool,) = [
        resource
        for resource in identity["Resources"].values()
        if resource["Type"] == "AWS::Cognito::UserPool"
    ]
    assert pool["Properties"]["UserPoolTags"] == {"application": "dualtrack", "stage": "local"}


def _statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = template["Resources"][role]["Properties"]["Policies"][0][
        "PolicyDocument"
    ]["Statement"]
    return statements


def _condition(template: dict[str, Any]) -> dict[str, Any]:
    trust = template["Resources"]["ProdRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    condition: dict[str, Any] = trust[0]["Condition"]["StringEquals"]
    return condition


BREAKERS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "any repository": lambda template: _condition(template).pop(f"{ISSUER}:sub"),
    "any job": lambda template: _condition(template).update(
        {f"{ISSUER}:sub": {"Fn::Sub": "repo:${Repository}:*"}}
    ),
    "any role": lambda template: _statements(template, "ProdRole")[0].update(Resource="*"),
    "an administrator": lambda template: _statements(template, "ProdRole")[0].update(Action="*"),
    "managed policies": lambda template: template["Resources"]["ProdRole"]["Properties"].update(
        ManagedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"]
    ),
    "users in prod": lambda template: _statements(template, "ProdRole").append(
        copy.deepcopy(_statements(template, "StagingRole")[-1])
    ),
    "every pool": lambda template: _statements(template, "StagingRole")[-1].pop("Condition"),
    "the other stage's settings": lambda template: _statements(template, "ProdRole")[1].update(
        _statements(template, "StagingRole")[1]
    ),
    "a stage's keys": lambda template: _statements(template, "ProdRole")[1].update(
        Resource={"Fn::Sub": "arn:aws:ssm:*:*:parameter/dualtrack-prod/*"}
    ),
    "the other stage's stacks": lambda template: _statements(template, "ProdRole")[2].update(
        _statements(template, "StagingRole")[2]
    ),
    "functions whole": lambda template: _statements(template, "ProdRole")[4].update(
        _statements(template, "ProdRole")[3] | {"Action": "lambda:DeleteFunction"}
    ),
    "the other stage's versions": lambda template: _statements(template, "ProdRole")[4].update(
        _statements(template, "StagingRole")[4]
    ),
}


@pytest.mark.parametrize("breaks", BREAKERS.values(), ids=BREAKERS)
def test_a_role_with_more_permissions_is_detected(
    breaks: Callable[[dict[str, Any]], object], template: dict[str, Any]
) -> None:
    breaks(template)
    assert list(role_faults(template))
