"""The stage's own domain and firewall, and a stage without CloudFront."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from dualtrack.checked_settings import checked
from dualtrack.settings import DEFAULTS
from dualtrack_stack.app import build
from dualtrack_stack.edge import StageEdge, edge_from
from dualtrack_stack.settings import STAGES

from tests.drivers.synthesised import built_layers

if TYPE_CHECKING:
    from pathlib import Path

PROD = STAGES["prod"]
WITHOUT_PAGE = dataclasses.replace(PROD, page=False)


def certificate(region: str) -> str:
    return f"arn:aws:acm:{region}:123456789012:certificate/12345678-1234-1234-1234-123456789012"


def test_nothing_set_is_awss_own_address_and_no_firewall() -> None:
    assert edge_from(checked({}), PROD) == StageEdge("", "", firewall=False)


def test_a_domain_its_certificate_and_the_firewall() -> None:
    values = {"DOMAIN": "chat.example.org", "CERTIFICATE_ARN": certificate("us-east-1"), "WAF": "on"}
    edge = edge_from(checked(values), PROD)
    assert edge == StageEdge("chat.example.org", certificate("us-east-1"), firewall=True)
    assert edge.url == "https://chat.example.org/"


def test_the_firewall_is_logged_by_the_same_setting() -> None:
    assert edge_from(checked({"WAF": "log"}), PROD) == StageEdge("", "", firewall=True, firewall_log=True)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"DOMAIN": "chat.example.org"}, "CERTIFICATE_ARN"),
        ({"CERTIFICATE_ARN": certificate("us-east-1")}, "DOMAIN"),
        ({"DOMAIN": "https://chat.example.org", "CERTIFICATE_ARN": certificate("us-east-1")}, "DOMAIN"),
        ({"DOMAIN": "localhost", "CERTIFICATE_ARN": certificate("us-east-1")}, "DOMAIN"),
        ({"DOMAIN": "chat.example.org", "CERTIFICATE_ARN": "mine"}, "CERTIFICATE_ARN"),
        ({"DOMAIN": "chat.example.org", "CERTIFICATE_ARN": certificate("eu-central-1")}, "us-east-1"),
        ({"WAF": "yes"}, "WAF"),
        ({"WAF": "logs"}, "WAF"),
    ],
)
def test_what_aws_would_refuse_is_refused_before(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        edge_from(checked(wrong), PROD)


def test_without_cloudfront_the_certificate_is_the_regions() -> None:
    values = {"DOMAIN": "api.example.org", "CERTIFICATE_ARN": certificate("eu-central-1")}
    assert edge_from(checked(values), WITHOUT_PAGE).domain == "api.example.org"


def test_a_stage_without_its_page_needs_no_cloudfront(tmp_path: Path) -> None:
    """CloudFront refuses accounts that AWS has not yet verified."""
    built_layers()
    app = cdk.App(outdir=str(tmp_path), context={"aws:cdk:disable-asset-staging": True})
    edge = StageEdge("api.example.org", certificate("eu-central-1"), firewall=True)
    build(app, WITHOUT_PAGE, DEFAULTS, edge=edge)
    app.synth()
    templates = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*.template.json")}
    assert set(templates) == {"Chat.template.json", "Data.template.json", "Identity.template.json"}
    resources = [resource for template in templates.values() for resource in template["Resources"].values()]
    assert not [resource for resource in resources if "CloudFront" in resource["Type"]]
    (domain,) = [
        resource["Properties"] for resource in resources if resource["Type"] == "AWS::ApiGateway::DomainName"
    ]
    assert domain["EndpointConfiguration"]["Types"] == ["REGIONAL"]
    assert domain["SecurityPolicy"] == "TLS_1_2"
    (acl,) = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::WAFv2::WebACL"]
    rates = [waf_rule["Statement"]["RateBasedStatement"] for waf_rule in acl["Rules"] if "Action" in waf_rule]
    assert [rate["AggregateKeyType"] for rate in rates] == ["IP"]  # no proxy in front of the gateway
