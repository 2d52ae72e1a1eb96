"""The edge: API Gateway, CloudFront, the firewall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.page.web import DIAGRAM

from tests.drivers.templates import readable
from tests.infra.rules.registry import VARIANTS, named, of_kind, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template

_API: Final = {"Type": "AWS::ApiGateway::RestApi", "Properties": {}}
CACHING_DISABLED: Final = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
ALL_BUT_HOST: Final = "b689b0a8-53d0-40ab-baf2-68738e2966ac"
API_PATHS: Final = {"/v1/*", "/health", "/openapi.json"}


@rule({"Api": _API})
def every_refusal_of_the_gateway_has_the_contracts_form(template: Template) -> Iterator[str]:
    """API Gateway Developer Guide, "Gateway response types for API Gateway": errors without their own response use
    DEFAULT_4XX or DEFAULT_5XX, whose default body is {"message": ...}.
    """
    if of_kind(template, "AWS::ApiGateway::RestApi"):
        responses = of_kind(template, "AWS::ApiGateway::GatewayResponse").values()
        yield from {"DEFAULT_4XX", "DEFAULT_5XX"} - {response["ResponseType"] for response in responses}


def path_of(template: Template, method: dict[str, Any]) -> str:
    """``/v1/chats`` of a method."""
    resources = of_kind(template, "AWS::ApiGateway::Resource")
    parts: list[str] = []
    key = named(method["ResourceId"])
    while key in resources:
        parts.insert(0, resources[key]["PathPart"])
        key = named(resources[key]["ParentId"])
    return "/" + "/".join(parts)


_OPEN: Final = {
    "Health": {"Type": "AWS::ApiGateway::Resource", "Properties": {"PathPart": "health", "ParentId": "root"}},
    "Get": {
        "Type": "AWS::ApiGateway::Method",
        "Properties": {
            "HttpMethod": "GET",
            "AuthorizationType": "NONE",
            "ResourceId": {"Ref": "Health"},
            "Integration": {"Type": "AWS_PROXY"},
        },
    },
    "Stage": {
        "Type": "AWS::ApiGateway::Stage",
        "Properties": {
            "MethodSettings": [{"ResourcePath": "/*", "HttpMethod": "*", "ThrottlingRateLimit": 200}]
        },
    },
}


@rule(_OPEN)
def an_open_method_has_a_limit_of_its_own(template: Template) -> Iterator[str]:
    """API Gateway Developer Guide, "Throttle requests to your REST APIs for better throughput in API Gateway",
    "Configuring API-level and stage-level throttling targets": limits are shared by all callers, so callers without a
    token could use up the users' limit.
    """
    stages = of_kind(template, "AWS::ApiGateway::Stage").values()
    settings = [
        setting for stage in stages for setting in stage["MethodSettings"] if "ThrottlingRateLimit" in setting
    ]
    # CloudFormation writes a path's slashes as ~1
    limited = {
        (setting["ResourcePath"].replace("~1", "/").lstrip("/"), setting["HttpMethod"])
        for setting in settings
    }
    for method in of_kind(template, "AWS::ApiGateway::Method").values():
        name = (path_of(template, method).lstrip("/"), method["HttpMethod"])
        if method["AuthorizationType"] == "NONE" and name[1] != "OPTIONS" and name not in limited:
            yield " ".join(name)


@rule(_OPEN)
def health_starts_no_function(template: Template) -> Iterator[str]:
    """API Gateway Developer Guide, "Mock integrations for REST APIs in API Gateway": answered without a backend."""
    for method in of_kind(template, "AWS::ApiGateway::Method").values():
        if path_of(template, method) == "/health" and method["Integration"]["Type"] != "MOCK":
            yield "/health"


def distributions(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, distribution in of_kind(template, "AWS::CloudFront::Distribution").items():
        yield key, distribution["DistributionConfig"]


_DISTRIBUTION: Final = {
    "Distribution": {
        "Type": "AWS::CloudFront::Distribution",
        "Properties": {"DistributionConfig": {"CustomErrorResponses": [{"ErrorCode": 403}]}},
    }
}


@rule(_DISTRIBUTION)
def no_error_page_stands_for_an_answer(template: Template) -> Iterator[str]:
    """Amazon CloudFront Developer Guide, "Generate custom error responses": they apply to the whole distribution, for
    any origin: a 404 of the API would become the page.
    """
    yield from (key for key, config in distributions(template) if config.get("CustomErrorResponses"))


@rule(_DISTRIBUTION)
def page_and_api_share_an_origin(template: Template) -> Iterator[str]:
    """RFC 6454, "The Web Origin Concept", section 4; answers contain ``/v1/…`` paths on their own origin."""
    for _, config in distributions(template):
        yield from API_PATHS - {behavior["PathPattern"] for behavior in config.get("CacheBehaviors", [])}


@rule(
    {
        "Distribution": {
            "Type": "AWS::CloudFront::Distribution",
            "Properties": {"DistributionConfig": {"CacheBehaviors": [{"PathPattern": "/v1/*"}]}},
        }
    }
)
def nothing_of_the_api_is_cached_or_left_out(template: Template) -> Iterator[str]:
    """Amazon CloudFront Developer Guide, "Use managed cache policies" (CachingDisabled), "Use managed origin request
    policies" (AllViewerExceptHostHeader: API Gateway finds an API by its host) and "Configure CloudFront to forward the
    Authorization header" (by a policy that forwards all viewer headers).
    """
    for _, config in distributions(template):
        for behaviour in config.get("CacheBehaviors", []):
            if behaviour["PathPattern"] == f"/{DIAGRAM}":
                continue  # a file of the page, with a policy of its own
            policies = behaviour.get("CachePolicyId"), behaviour.get("OriginRequestPolicyId")
            methods = set(behaviour.get("AllowedMethods", []))
            if policies != (CACHING_DISABLED, ALL_BUT_HOST) or not methods >= {
                "PUT",
                "POST",
                "PATCH",
                "DELETE",
            }:
                yield behaviour["PathPattern"]


@rule(
    {
        "Distribution": {
            "Type": "AWS::CloudFront::Distribution",
            "Properties": {
                "DistributionConfig": {"Origins": [{"CustomOriginConfig": {"OriginReadTimeout": 10}}]}
            },
        }
    }
)
def a_stream_meets_no_read_timeout(template: Template) -> Iterator[str]:
    """Amazon CloudFront Developer Guide, "Response timeout": it also applies between two packets, 30 s by default. A
    heartbeat is sent every 15 s.
    """
    for key, config in distributions(template):
        for origin in config.get("Origins", []):
            if origin.get("CustomOriginConfig", {}).get("OriginReadTimeout", 30) < 30:
                yield key


_ACL: Final = {
    "Acl": {
        "Type": "AWS::WAFv2::WebACL",
        "Properties": {
            "Scope": "CLOUDFRONT",
            "Rules": [
                {
                    "OverrideAction": {"None": {}},
                    "Statement": {"ManagedRuleGroupStatement": {"Name": "AWSManagedRulesCommonRuleSet"}},
                }
            ],
        },
    }
}


@rule(_ACL)
def rules_over_bodies_only_count(template: Template) -> Iterator[str]:
    """AWS WAF Developer Guide, "Baseline rule groups": SizeRestrictions_BODY blocks bodies over 8 KB, other rules what
    looks like code; a chat's message may be both.
    """
    for key, acl in of_kind(template, "AWS::WAFv2::WebACL").items():
        for waf_rule in acl["Rules"]:
            group = waf_rule["Statement"].get("ManagedRuleGroupStatement", {}).get("Name", "")
            is_by_address = not group or group == "AWSManagedRulesAmazonIpReputationList"
            if not is_by_address and waf_rule["OverrideAction"] != {"Count": {}}:
                yield f"{key}: {group}"


@rule(_ACL)
def a_firewall_covers_the_gateways_own_address(template: Template) -> Iterator[str]:
    """AWS WAF Developer Guide, "How AWS WAF works", "Resources that you can protect": a web ACL of CloudFront does not
    see requests to the REST API's own address; one of the API's stage sees both.
    """
    covered = {
        named(association["WebACLArn"])
        for association in of_kind(template, "AWS::WAFv2::WebACLAssociation").values()
        if "/restapis/" in readable(association["ResourceArn"])
    }
    for key, acl in of_kind(template, "AWS::WAFv2::WebACL").items():
        if acl["Scope"] != "REGIONAL" or key not in covered:
            yield key


@rule(
    {
        "Logging": {
            "Type": "AWS::WAFv2::LoggingConfiguration",
            "Properties": {"LogDestinationConfigs": [{"Fn::GetAtt": ["Log", "Arn"]}]},
        },
        "Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "waf"}},
    },
    tuple(VARIANTS)[-1:],
)
def the_firewall_may_write_its_log(template: Template) -> Iterator[str]:
    """AWS WAF Developer Guide, "Sending web ACL traffic logs to an Amazon CloudWatch Logs log group": its name begins
    with aws-waf-logs-. What is logged of a request must not contain its token.
    """
    groups = of_kind(template, "AWS::Logs::LogGroup")
    for key, logging in of_kind(template, "AWS::WAFv2::LoggingConfiguration").items():
        names = [groups[named(target)].get("LogGroupName", "") for target in logging["LogDestinationConfigs"]]
        hidden = [field.get("SingleHeader", {}).get("Name") for field in logging.get("RedactedFields", [])]
        if not all(name.startswith("aws-waf-logs-") for name in names) or "authorization" not in hidden:
            yield key


@rule({"Api": _API}, tuple(VARIANTS)[-1:])
def the_firewall_is_there_when_it_is_set(template: Template) -> Iterator[str]:
    """docs/aws/settings.md, the setting "WAF": ``on`` creates the firewall."""
    if of_kind(template, "AWS::ApiGateway::RestApi") and not of_kind(template, "AWS::WAFv2::WebACL"):
        yield "no web ACL"
