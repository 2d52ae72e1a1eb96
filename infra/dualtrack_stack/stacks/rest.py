"""The REST API: one proxy to ``api``, the event stream, and the gateway's own errors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Token
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_logs as logs
from constructs import Construct
from dualtrack.api.attachments import BINARY_TYPES
from dualtrack.api.sizes import TOO_LARGE, TOO_LARGE_BODY
from dualtrack.api.streamed import api_at
from dualtrack.chat_times import ANSWER_FUNCTION_SECONDS
from dualtrack.errors import NO_ROUTE

from dualtrack_stack.edge import PLAIN
from dualtrack_stack.gateway import METHODS
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.firewall import Firewall
from dualtrack_stack.stacks.functions import ALIAS

if TYPE_CHECKING:
    from aws_cdk import aws_cognito as cognito

    from dualtrack_stack.edge import StageEdge
    from dualtrack_stack.stacks.functions import Function
    from dualtrack_stack.stages import StageSettings

STAGE_NAME: Final = ALIAS
_EVENTS_SECONDS: Final = 130


@dataclass(frozen=True, slots=True)
class GatewayRefusal:
    """An error response of the gateway itself, in the contract's form (CONTRACT 4).

    ``status``: None for the gateway's default responses, which keep their own.
    """

    type: apigateway.ResponseType
    status: int | None
    code: str
    message: str


def _refusals() -> tuple[GatewayRefusal, ...]:
    kind = apigateway.ResponseType
    return (
        GatewayRefusal(kind.BAD_REQUEST_BODY, 400, "invalid_request", "The request body is not valid."),
        GatewayRefusal(
            kind.BAD_REQUEST_PARAMETERS, 400, "invalid_request", "The request parameters are not valid."
        ),
        GatewayRefusal(kind.UNSUPPORTED_MEDIA_TYPE, 400, "invalid_request", "Send application/json."),
        GatewayRefusal(kind.UNAUTHORIZED, 401, "unauthorized", "A valid ID token is needed."),
        GatewayRefusal(kind.EXPIRED_TOKEN, 401, "unauthorized", "The token has expired."),
        GatewayRefusal(kind.INVALID_SIGNATURE, 401, "unauthorized", "A valid ID token is needed."),
        GatewayRefusal(kind.ACCESS_DENIED, 403, "forbidden", "Not allowed."),
        GatewayRefusal(kind.INVALID_API_KEY, 403, "forbidden", "Not allowed."),
        GatewayRefusal(kind.WAF_FILTERED, 403, "forbidden", "Not allowed."),
        # API Gateway's response to an unknown path or method
        GatewayRefusal(kind.MISSING_AUTHENTICATION_TOKEN, 404, "not_found", NO_ROUTE),
        GatewayRefusal(kind.RESOURCE_NOT_FOUND, 404, "not_found", NO_ROUTE),
        GatewayRefusal(kind.REQUEST_TOO_LARGE, 413, "too_large", TOO_LARGE),
        GatewayRefusal(kind.THROTTLED, 429, "rate_limited", "Too many requests; try again shortly."),
        GatewayRefusal(kind.QUOTA_EXCEEDED, 429, "rate_limited", "Too many requests; try again later."),
        GatewayRefusal(kind.API_CONFIGURATION_ERROR, 500, "internal", "Internal error."),
        GatewayRefusal(kind.AUTHORIZER_CONFIGURATION_ERROR, 500, "internal", "Internal error."),
        GatewayRefusal(kind.AUTHORIZER_FAILURE, 500, "internal", "Internal error."),
        GatewayRefusal(
            kind.INTEGRATION_FAILURE, 503, "unavailable", "The service is not available; try again."
        ),
        GatewayRefusal(kind.INTEGRATION_TIMEOUT, 504, "timeout", "The request took too long."),
        GatewayRefusal(kind.DEFAULT_4_XX, None, "invalid_request", "The request is not valid."),
        GatewayRefusal(kind.DEFAULT_5_XX, None, "internal", "Internal error."),
    )


class Rest(Construct):
    """``/{proxy+}`` to ``api`` behind the authorizer, the open routes without, the events to ``stream``; and the same
    below ``/key`` for API keys, which the functions check themselves; plug-ins' own APIs to ``stream``, likewise."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        pool: cognito.IUserPool,
        api: Function,
        stream: Function,
        allowed_origins: str,
        edge: StageEdge = PLAIN,
    ) -> None:
        super().__init__(scope, construct_id)
        # A parameter (local) cannot be split: it is one origin.
        self._origins = (
            [allowed_origins] if Token.is_unresolved(allowed_origins) else allowed_origins.split(",")
        )
        self.access_log = logs.LogGroup(
            self, "AccessLog", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        self.rest = apigateway.RestApi(
            self,
            "Api",
            rest_api_name=f"{stage.prefix}-api",
            description="The HTTP API of dualtrack",
            # an edge-optimised one would cut event streams that are idle for 30 s
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            # binary responses of `api`; never */*: a message's JSON would arrive as base64 and, with 4 MB of files in
            # it, exceed the 6 MB of an invocation
            binary_media_types=list(BINARY_TYPES),
            cloud_watch_role=True,
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE_NAME,
                throttling_rate_limit=stage.request_rate,
                throttling_burst_limit=stage.request_burst,
                # API Gateway writes execution logs to a group that it makes itself, which is kept for ever and outlives
                # the stack; errors are in the access log
                logging_level=apigateway.MethodLoggingLevel.OFF,
                data_trace_enabled=False,
                # metrics by method cost more than everything else of an idle stage; those of the API are free
                metrics_enabled=False,
                tracing_enabled=True,
                access_log_destination=apigateway.LogGroupLogDestination(self.access_log),
                access_log_format=_access_log_format(),
                method_options=_method_options(stage),
            ),
        )
        accept(
            self.rest,
            "AwsSolutions-APIG2",
            "The function checks every field, with the contract's messages; a second schema would only drift.",
        )
        accept(
            self.rest,
            "AwsSolutions-APIG6",
            "Execution logs have no retention of ours; the access log says what failed, where and why.",
        )
        if edge.firewall:
            Firewall(
                self, "Firewall", stage=stage, on=self.rest.deployment_stage, logs_hits=edge.firewall_log
            )
        else:
            accept(
                self.rest,
                "AwsSolutions-APIG3",
                "Every route but two needs a token and is throttled; a web ACL costs while idle and is a setting.",
            )
        if edge.domain and not stage.page:
            self._domain(edge)
        accept(
            self.rest,
            "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
            "API Gateway's account-wide role for its own logs; AWS maintains the policy for it.",
        )
        self.authorizer = apigateway.CognitoUserPoolsAuthorizer(
            self, "Users", cognito_user_pools=[pool], results_cache_ttl=Duration.minutes(5)
        )
        self._routes(api, stream)
        for refusal in _refusals():
            self._gateway_response(refusal)

    def _routes(self, api: Function, stream: Function) -> None:
        to_api = apigateway.LambdaIntegration(
            api.alias, proxy=True, allow_test_invoke=False, scope_permission_to_method=False
        )
        to_events, to_answers = (
            apigateway.LambdaIntegration(
                stream.alias,
                proxy=True,
                allow_test_invoke=False,
                scope_permission_to_method=False,
                response_transfer_mode=apigateway.ResponseTransferMode.STREAM,
                timeout=Duration.seconds(seconds),
            )
            for seconds in (_EVENTS_SECONDS, ANSWER_FUNCTION_SECONDS)
        )
        for method in METHODS:
            resource = self.rest.root.resource_for_path(method.path)
            to = to_events if method.function == "stream" else to_api
            if api_at(method.path):
                to = to_answers
            match method.guard:
                case "open":
                    self._open(resource, to) if method.function else self._health(resource)
                case "token":
                    self._guarded(resource, method.method, to)
                case "key":
                    self._for_keys(resource, method.method, to)

    def _domain(self, edge: StageEdge) -> None:
        """The API's own host name, for a stage without CloudFront. Output ``DomainTarget``: the target of its DNS
        record."""
        certificate = acm.Certificate.from_certificate_arn(self, "Certificate", edge.certificate_arn)
        domain = self.rest.add_domain_name(
            "Domain",
            domain_name=edge.domain,
            certificate=certificate,
            endpoint_type=apigateway.EndpointType.REGIONAL,
            security_policy=apigateway.SecurityPolicy.TLS_1_2,
        )
        target = CfnOutput(self, "DomainTarget", value=domain.domain_name_alias_domain_name)
        target.override_logical_id("DomainTarget")

    def _health(self, resource: apigateway.Resource) -> None:
        """Answered by the gateway itself, so frequent health checks start no function."""
        answer = apigateway.MockIntegration(
            request_templates={"application/json": '{"statusCode": 200}'},
            passthrough_behavior=apigateway.PassthroughBehavior.NEVER,
            integration_responses=[
                apigateway.IntegrationResponse(
                    status_code="200", response_templates={"application/json": '{"status": "ok"}'}
                )
            ],
        )
        self._open(resource, answer, [apigateway.MethodResponse(status_code="200")])

    def _open(
        self,
        resource: apigateway.Resource,
        target: apigateway.Integration,
        answers: list[apigateway.MethodResponse] | None = None,
    ) -> None:
        method = resource.add_method(
            "GET", target, authorization_type=apigateway.AuthorizationType.NONE, method_responses=answers
        )
        for rule in ("AwsSolutions-APIG4", "AwsSolutions-COG4"):
            accept(
                method, rule, "Health and the API's description are public: they tell nothing of any user."
            )

    def _guarded(self, resource: apigateway.Resource, method: str, target: apigateway.Integration) -> None:
        resource.add_method(
            method,
            target,
            authorizer=self.authorizer,
            authorization_type=apigateway.AuthorizationType.COGNITO,
        )
        resource.add_cors_preflight(
            allow_origins=self._origins,
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            max_age=Duration.hours(1),
        )

    def _for_keys(self, resource: apigateway.Resource, method: str, target: apigateway.Integration) -> None:
        """Without CORS: a key does not belong in a page."""
        added = resource.add_method(method, target, authorization_type=apigateway.AuthorizationType.NONE)
        for rule in ("AwsSolutions-APIG4", "AwsSolutions-COG4"):
            accept(added, rule, "The functions check the API key of every request (dualtrack.api.key_door).")

    def _gateway_response(self, refusal: GatewayRefusal) -> None:
        headers = {"Access-Control-Allow-Origin": f"'{self._origins[0]}'"}
        if refusal.status == 429:
            headers["Retry-After"] = "'1'"
        body = {"error": {"code": refusal.code, "message": refusal.message}}
        body = TOO_LARGE_BODY if refusal.status == 413 else body
        self.rest.add_gateway_response(
            f"Gateway{refusal.type.response_type}",
            type=refusal.type,
            status_code=str(refusal.status) if refusal.status else None,
            response_headers=headers,
            templates={"application/json": json.dumps(body)},
        )


def _method_options(stage: StageSettings) -> dict[str, apigateway.MethodDeploymentOptions]:
    """The limits of methods that have their own."""
    limits = {
        f"{method.path}/{method.method}": method.limit(stage) for method in METHODS if method.is_limited_apart
    }
    return {
        at: apigateway.MethodDeploymentOptions(
            throttling_rate_limit=limit.rate, throttling_burst_limit=limit.burst
        )
        for at, limit in limits.items()
    }


def _access_log_format() -> apigateway.AccessLogFormat:
    """What was called, from where, how it ended and how long it took; never a body, a query, a token or a user: lines
    only expire by age, and an erased user must not be in them (docs/privacy.md).
    """
    field = apigateway.AccessLogField
    return apigateway.AccessLogFormat.custom(
        json.dumps(
            {
                "request_id": field.context_request_id(),
                "at": field.context_request_time_epoch(),
                "ip": field.context_identity_source_ip(),
                "method": field.context_http_method(),
                "path": field.context_resource_path(),
                "status": field.context_status(),
                "ms": field.context_response_latency(),
                "bytes": field.context_response_length(),
                "error": field.context_error_response_type(),
                "integration_error": "$context.integration.error",
                "authorizer_error": "$context.authorizer.error",
            }
        )
    )
