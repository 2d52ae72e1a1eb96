"""AWS WAF on the API's stage, by setting.

It protects the stage and not CloudFront, because the gateway's own address is open too. Behind CloudFront the sender is
an edge location, and the viewer's address is in X-Forwarded-For, where a viewer can forge it. So one rule limits each
forwarded address, which stops careless clients, and another each sender, with a limit for all viewers of an edge
location, which stops the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from aws_cdk import aws_wafv2 as waf
from constructs import Construct

if TYPE_CHECKING:
    from aws_cdk import aws_apigateway as apigateway

    from dualtrack_stack.stages import StageSettings

REQUESTS_OF_ONE: Final = 2_000
"""Requests of one address in five minutes; a page with an open chat makes some ten a minute."""
REQUESTS_OF_AN_EDGE: Final = 50_000

_BLOCKING: Final = ("AWSManagedRulesAmazonIpReputationList",)
_COUNTING: Final = ("AWSManagedRulesCommonRuleSet", "AWSManagedRulesKnownBadInputsRuleSet")
"""Rules over bodies: they block code and texts over 8 KB, which users of an agent do send."""


class Firewall(Construct):
    """Rate and reputation block; rules over bodies only count, so that an operator sees what they would block."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        on: apigateway.Stage,
        logs_hits: bool = False,
    ) -> None:
        """``logs_hits``: log what a rule blocks or counts."""
        super().__init__(scope, construct_id)
        own = REQUESTS_OF_AN_EDGE if stage.page else REQUESTS_OF_ONE
        rates = {
            "RatePerAddress": waf.CfnWebACL.RateBasedStatementProperty(aggregate_key_type="IP", limit=own)
        }
        if stage.page:
            rates["RatePerViewer"] = waf.CfnWebACL.RateBasedStatementProperty(
                aggregate_key_type="FORWARDED_IP",
                limit=REQUESTS_OF_ONE,
                forwarded_ip_config=waf.CfnWebACL.ForwardedIPConfigurationProperty(
                    header_name="X-Forwarded-For", fallback_behavior="NO_MATCH"
                ),
            )
        rules = [
            *(_rate(name, statement) for name, statement in rates.items()),
            *(_managed(name, counting=False) for name in _BLOCKING),
            *(_managed(name, counting=True) for name in _COUNTING),
        ]
        for priority, rule in enumerate(rules):
            rule["priority"] = priority
        acl = waf.CfnWebACL(
            self,
            "Acl",
            scope="REGIONAL",
            default_action=waf.CfnWebACL.DefaultActionProperty(allow={}),
            rules=[waf.CfnWebACL.RuleProperty(**rule) for rule in rules],  # type: ignore[arg-type]
            visibility_config=_seen("All"),
        )
        waf.CfnWebACLAssociation(self, "OnStage", resource_arn=on.stage_arn, web_acl_arn=acl.attr_arn)
        if logs_hits:
            self._log(stage, acl)

    def _log(self, stage: StageSettings, acl: waf.CfnWebACL) -> None:
        group = logs.LogGroup(
            self,
            "Log",
            # WAF writes only to groups with such a name (AWS WAF Developer Guide, "Sending web ACL traffic logs to an
            # Amazon CloudWatch Logs log group")
            log_group_name=f"aws-waf-logs-{stage.prefix}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        hits = [{"ActionCondition": {"Action": action}} for action in ("BLOCK", "COUNT")]
        waf.CfnLoggingConfiguration(
            self,
            "Logging",
            resource_arn=acl.attr_arn,
            log_destination_configs=[group.log_group_arn],
            redacted_fields=[
                waf.CfnLoggingConfiguration.FieldToMatchProperty(single_header={"Name": "authorization"})
            ],
            logging_filter={
                "DefaultBehavior": "DROP",
                "Filters": [{"Behavior": "KEEP", "Requirement": "MEETS_ANY", "Conditions": hits}],
            },
        )


def _rate(name: str, statement: waf.CfnWebACL.RateBasedStatementProperty) -> dict[str, object]:
    return {
        "name": name,
        "action": waf.CfnWebACL.RuleActionProperty(block={}),
        "statement": waf.CfnWebACL.StatementProperty(rate_based_statement=statement),
        "visibility_config": _seen(name),
    }


def _managed(name: str, *, counting: bool) -> dict[str, object]:
    group = waf.CfnWebACL.ManagedRuleGroupStatementProperty(vendor_name="AWS", name=name)
    override: dict[str, Any] = {"count": {}} if counting else {"none": {}}
    return {
        "name": name,
        "override_action": waf.CfnWebACL.OverrideActionProperty(**override),
        "statement": waf.CfnWebACL.StatementProperty(managed_rule_group_statement=group),
        "visibility_config": _seen(name),
    }


def _seen(name: str) -> waf.CfnWebACL.VisibilityConfigProperty:
    """Counted, and with samples of three hours in the console, which cost nothing."""
    return waf.CfnWebACL.VisibilityConfigProperty(
        cloud_watch_metrics_enabled=True, metric_name=name, sampled_requests_enabled=True
    )
