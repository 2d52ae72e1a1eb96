"""The template of the page's stack: private files, strict headers, its stage's configuration."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks
from dualtrack.api.table import ROUTES
from dualtrack_stack.edge import PLAIN, StageEdge
from dualtrack_stack.page import vendor, web
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.page import PageStack

from tests.drivers.planted_plugin import LISTED, SERVED, plug_in

if TYPE_CHECKING:
    import pytest

API = "https://abc123.execute-api.eu-central-1.amazonaws.com/live/"
SIGN_IN = "https://dualtrack-prod-123456789012.auth.eu-central-1.amazoncognito.com"


BUCKET = "dualtrack-prod-bodies"


def synthesised(
    api_url: str = API, *, nag: bool = False, edge: StageEdge = PLAIN
) -> tuple[cdk.App, PageStack]:
    app = cdk.App()
    if nag:
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks())
    stack = PageStack(
        app,
        "Page",
        stage=STAGES["prod"],
        api_url=api_url,
        sign_in_url=SIGN_IN,
        client_id="client-1",
        terminal_client_id="terminal",
        uploads_bucket=BUCKET,
        edge=edge,
    )
    return app, stack


@cache
def template() -> Template:
    return Template.from_stack(synthesised()[1])


def only(kind: str, of: Template | None = None) -> dict[str, Any]:
    (resource,) = (of or template()).find_resources(kind).values()
    properties: dict[str, Any] = resource["Properties"]
    return properties


def headers_of(of: Template, path: str = "") -> dict[str, Any]:
    """The headers that CloudFront adds to the page's files, or to the one at a path."""
    config = only("AWS::CloudFront::Distribution", of)["DistributionConfig"]
    found = [each for each in config["CacheBehaviors"] if each["PathPattern"] == path]
    (behaviour,) = found if path else [config["DefaultCacheBehavior"]]
    policies = of.find_resources("AWS::CloudFront::ResponseHeadersPolicy")
    policy = policies[behaviour["ResponseHeadersPolicyId"]["Ref"]]
    headers: dict[str, Any] = policy["Properties"]["ResponseHeadersPolicyConfig"]
    return headers


def directives(policy: str) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in policy.split(";"))
    return {name: value for name, _, value in parts}


def test_the_files_are_private_and_only_cloudfront_reads_them() -> None:
    bucket = only("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "WebsiteConfiguration" not in bucket
    distribution = only("AWS::CloudFront::Distribution")["DistributionConfig"]
    assert "OriginAccessControlId" in distribution["Origins"][0]
    statements = only("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    readers = [
        statement
        for statement in statements
        if statement["Effect"] == "Allow" and "s3:GetObject" in statement["Action"]
    ]
    assert [statement["Principal"] for statement in readers] == [{"Service": "cloudfront.amazonaws.com"}]
    assert all("AWS:SourceArn" in json.dumps(statement["Condition"]) for statement in readers)


def test_visitors_get_https_and_only_read_methods() -> None:
    behaviour = only("AWS::CloudFront::Distribution")["DistributionConfig"]["DefaultCacheBehavior"]
    assert behaviour["ViewerProtocolPolicy"] == "redirect-to-https"
    assert set(behaviour["AllowedMethods"]) == {"GET", "HEAD"}
    assert "ResponseHeadersPolicyId" in behaviour


def test_the_policy_lets_the_page_call_only_its_origin_sign_in_and_bucket() -> None:
    app = cdk.App()
    env = cdk.Environment(account="123456789012", region="eu-central-1")
    stack = PageStack(
        cdk.Stage(app, "In", env=env),
        "Page",
        stage=STAGES["prod"],
        api_url=API,
        sign_in_url=SIGN_IN,
        client_id="client-1",
        terminal_client_id="terminal",
        uploads_bucket=BUCKET,
    )
    security = headers_of(Template.from_stack(stack))["SecurityHeadersConfig"]
    policy = directives(security["ContentSecurityPolicy"]["ContentSecurityPolicy"])
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["connect-src"].split() == [
        "'self'",
        SIGN_IN,
        f"https://{BUCKET}.s3.eu-central-1.amazonaws.com",
        f"https://{BUCKET}.s3.amazonaws.com",
    ]
    assert policy["frame-ancestors"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"].split() == ["dompurify", "workers"]
    assert policy["worker-src"] == policy["frame-src"] == "'self'"
    assert security["StrictTransportSecurity"]["AccessControlMaxAgeSec"] == 365 * 24 * 3600
    assert security["FrameOptions"]["FrameOption"] == "DENY"


def test_the_frame_for_diagrams_alone_may_be_framed_and_has_an_origin_of_its_own() -> None:
    security = headers_of(template(), f"/{web.DIAGRAM}")["SecurityHeadersConfig"]
    policy = directives(security["ContentSecurityPolicy"]["ContentSecurityPolicy"])
    scripts = policy.pop("script-src").split()
    assert len(scripts) == 3
    assert all(script.startswith("'sha256-") for script in scripts), "it loads nothing"
    assert policy == {
        "sandbox": "allow-scripts",
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
    }
    assert security["FrameOptions"]["FrameOption"] == "SAMEORIGIN"
    assert web.DIAGRAM in web.files()


def behaviours() -> dict[str, dict[str, Any]]:
    """Those of the API."""
    behaviors = only("AWS::CloudFront::Distribution")["DistributionConfig"]["CacheBehaviors"]
    return {
        behavior["PathPattern"]: behavior
        for behavior in behaviors
        if behavior["PathPattern"] != f"/{web.DIAGRAM}"
    }


def test_the_api_is_called_at_its_own_host_and_stage() -> None:
    config = only("AWS::CloudFront::Distribution")["DistributionConfig"]
    origins = {source["Id"]: source for source in config["Origins"]}
    for behaviour in behaviours().values():
        origin = origins[behaviour["TargetOriginId"]]
        assert origin["OriginPath"] == "/live"
        assert origin["DomainName"] == "abc123.execute-api.eu-central-1.amazonaws.com"
        assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
        assert behaviour["ViewerProtocolPolicy"] == "https-only"
        assert behaviour["Compress"] is False  # a compressed stream would be buffered until a block is full


def test_every_route_of_the_api_is_behind_the_page_and_no_file_is() -> None:
    patterns = [pattern.replace("*", "") for pattern in behaviours()]
    assert all(route.path.startswith(tuple(patterns)) for route in ROUTES)
    assert not [path for path in web.files() if f"/{path}".startswith(tuple(patterns))]


def test_a_domain_of_its_own_brings_its_certificate() -> None:
    edge = StageEdge("chat.example.org", f"arn:aws:acm:us-east-1:123456789012:certificate/{'1' * 36}")
    config = only("AWS::CloudFront::Distribution", Template.from_stack(synthesised(edge=edge)[1]))
    assert config["DistributionConfig"]["Aliases"] == [edge.domain]
    viewers = config["DistributionConfig"]["ViewerCertificate"]
    assert viewers["AcmCertificateArn"] == edge.certificate_arn
    assert viewers["MinimumProtocolVersion"] == "TLSv1.2_2021"


def deployed() -> tuple[set[str], dict[str, Any]]:
    """The files that are copied into the bucket, and the configuration."""
    app, _ = synthesised()
    assembly = Path(app.synth().directory)
    (page,) = assembly.glob("asset.*/index.html")
    (config,) = assembly.glob("asset.*/config.json")
    files = {path.relative_to(page.parent).as_posix() for path in page.parent.rglob("*") if path.is_file()}
    return files, json.loads(config.read_text())


def test_what_is_served_is_deployed_and_no_source() -> None:
    files, config = deployed()
    assert files == web.files().keys()
    assert {"index.html", "js/main.js", "lib/purify.js"} <= files
    assert not any(name.endswith((".py", ".pyc", ".json")) for name in files)
    assert config["sign_in"]["kind"] == "cognito"
    # two sources: the folder, and the configuration
    assert len(only("Custom::CDKBucketDeployment")["SourceBucketNames"]) == 2


def test_of_a_plug_in_scripts_and_style_sheets_alone_are_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PLUGINS", plug_in(tmp_path))
    files, config = deployed()
    assert {name for name in files if name.startswith("plugins/")} == SERVED
    assert config["plugins"] == LISTED


def test_the_page_is_deployed_without_any_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "PLUGINS", tmp_path / "none")
    files, config = deployed()
    assert not [name for name in files if name.startswith("plugins/")]
    assert config["plugins"] == []


def test_cdk_nag_agrees() -> None:
    app, _ = synthesised(nag=True)
    app.synth()


def test_the_vendored_libraries_are_the_pinned_ones() -> None:
    assert vendor.damaged() == ()


def test_a_changed_library_is_found(tmp_path: Any) -> None:
    for copied in vendor.COPIES:
        path = tmp_path / copied.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((vendor.FOLDER / copied.name).read_bytes())
    (tmp_path / "purify.js").write_bytes(b"something else")
    assert vendor.damaged(tmp_path) == ("purify.js",)
