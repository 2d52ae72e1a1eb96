"""One origin for page and API: CloudFront before private files in S3 and before the REST API. Optional per stage.

The API gets the page's origin, so it needs no CORS and ``/v1/…`` links in answers work, and by setting a domain of its
own. The API is never cached, and no error page replaces its responses.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import CfnOutput, Duration, Fn, RemovalPolicy, Stack
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from dualtrack.api.streamed import streamed_apis

from dualtrack_stack.edge import PLAIN
from dualtrack_stack.page import web
from dualtrack_stack.page.folder import whole_page
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.rest import STAGE_NAME

if TYPE_CHECKING:
    from constructs import Construct

    from dualtrack_stack.edge import StageEdge
    from dualtrack_stack.stages import StageSettings

_API_PATHS: Final = (
    "/v1/*",
    "/key/v1/*",
    *(f"{api.path}/*" for api in streamed_apis()),
    "/health",
    "/openapi.json",
)
KEYS_TO_THEIR_DOOR: Final = Path(__file__).with_name("key_door.js")
"""The code of the CloudFront function."""
_READ_TIMEOUT: Final = Duration.seconds(60)
_REVALIDATE = "public, max-age=0, must-revalidate"  # names carry no hash; a check costs an empty 304
_BASIC_EXECUTION = "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
_ASSETS = "arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>/*"


class PageStack(Stack):
    """Serves `dualtrack_stack.page` and the API; the page reads from ``config.json`` where to sign in.

    ``api_url`` is the REST API's URL with its stage, ``sign_in_url`` the Cognito domain's base URL
    (``https://…amazoncognito.com``), ``client_id`` and ``terminal_client_id`` the app clients of page and terminal. The
    page's has to allow this stack's output ``PageUrl`` as callback and logout URL. ``uploads_bucket`` is the name of
    the bucket to which administrators upload, at addresses that the API signs. ``edge``: the stage's own domain; its
    DNS record must point to the output ``DomainTarget``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        api_url: str,
        sign_in_url: str,
        client_id: str,
        terminal_client_id: str,
        uploads_bucket: str,
        edge: StageEdge = PLAIN,
    ) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-page")
        self._stage = stage
        self._edge = edge
        self.files = self._bucket()
        self._origin = origins.S3BucketOrigin.with_origin_access_control(
            self.files, origin_access_control=self._reader()
        )
        self.distribution = self._distribution(
            api_url, sign_in_url, *_bucket_origins(uploads_bucket, self.region)
        )
        sign_in = {
            "kind": "cognito",
            "domain": sign_in_url,
            "client_id": client_id,
            "terminal_client_id": terminal_client_id,  # read by `dualtrack login`
        }
        self._deploy(web.config(api="", sign_in=sign_in))
        self.url = edge.url or f"https://{self.distribution.distribution_domain_name}/"
        CfnOutput(self, "PageUrl", value=self.url)
        CfnOutput(self, "DomainTarget", value=self.distribution.distribution_domain_name)

    def _bucket(self) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Files",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        accept(
            bucket, "AwsSolutions-S1", "It holds the public page alone, and CloudFront is its only reader."
        )
        return bucket

    def _distribution(self, api_url: str, *called: str) -> cloudfront.Distribution:
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=f"Page and API of {self._stage.prefix}",
            default_root_object="index.html",
            default_behavior=self._files_with(self._page_headers(*called)),
            additional_behaviors={
                f"/{web.DIAGRAM}": self._files_with(self._diagram_headers()),
                **dict.fromkeys(_API_PATHS, _to_api(api_url, self._key_door())),
            },
            **self._domain(),
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
        )
        accept(distribution, "AwsSolutions-CFR1", "The page may be read from everywhere.")
        accept(
            distribution,
            "AwsSolutions-CFR2",
            "Files are static, and the firewall stands on the API's stage, which has an address of its own.",
        )
        accept(
            distribution,
            "AwsSolutions-CFR3",
            "Files are public and static; who calls the API is in the API's log.",
        )
        accept(
            distribution,
            "AwsSolutions-CFR4",
            "CloudFront's own certificate brings its own TLS policy; a custom domain sets one.",
        )
        return distribution

    def _files_with(self, headers: cloudfront.ResponseHeadersPolicy) -> cloudfront.BehaviorOptions:
        return cloudfront.BehaviorOptions(
            origin=self._origin,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
            cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
            response_headers_policy=headers,
            compress=True,
        )

    def _key_door(self) -> cloudfront.Function:
        """Leads requests with an API key to their own door; its name must be unique in the account."""
        return cloudfront.Function(
            self,
            "KeyDoor",
            function_name=f"{self._stage.prefix}-keys-{self.region}",
            comment="Leads API keys from /v1 to /key/v1",
            code=cloudfront.FunctionCode.from_file(file_path=str(KEYS_TO_THEIR_DOOR)),
            runtime=cloudfront.FunctionRuntime.JS_2_0,
        )

    def _reader(self) -> cloudfront.S3OriginAccessControl:
        """Its name must be unique in the account; the CDK's default is the same in every region."""
        return cloudfront.S3OriginAccessControl(
            self, "Reader", origin_access_control_name=f"{self._stage.prefix}-page-{self.region}"
        )

    def _domain(self) -> dict[str, Any]:
        if not self._edge.domain:
            return {}
        certificate = acm.Certificate.from_certificate_arn(self, "Certificate", self._edge.certificate_arn)
        return {
            "domain_names": [self._edge.domain],
            "certificate": certificate,
            "minimum_protocol_version": cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
        }

    def _page_headers(self, *called: str) -> cloudfront.ResponseHeadersPolicy:
        return self._headers(
            "Headers", "page", web.content_security_policy(*called), cloudfront.HeadersFrameOption.DENY
        )

    def _diagram_headers(self) -> cloudfront.ResponseHeadersPolicy:
        return self._headers(
            "DiagramHeaders", "diagram", web.diagram_policy(), cloudfront.HeadersFrameOption.SAMEORIGIN
        )

    def _headers(
        self, construct_id: str, name: str, policy: str, framed: cloudfront.HeadersFrameOption
    ) -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            construct_id,
            # unique in the account, like the reader's name
            response_headers_policy_name=f"{self._stage.prefix}-{name}-{self.region}",
            comment=f"Security headers of the {name} of {self._stage.prefix}",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=policy, override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(frame_option=framed, override=True),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.days(365), include_subdomains=True, override=True
                ),
            ),
            custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
                custom_headers=[
                    cloudfront.ResponseCustomHeader(header=name, value=value, override=True)
                    for name, value in (
                        ("Cross-Origin-Opener-Policy", "same-origin"),
                        ("Permissions-Policy", web.PERMISSIONS_POLICY),
                    )
                ]
            ),
        )

    def _deploy(self, config: dict[str, object]) -> None:
        """The files, and this stage's configuration."""
        log = logs.LogGroup(
            self, "DeployLog", retention=logs.RetentionDays.ONE_WEEK, removal_policy=RemovalPolicy.DESTROY
        )
        deployment.BucketDeployment(
            self,
            "Deploy",
            sources=[
                deployment.Source.asset(str(whole_page())),
                deployment.Source.json_data("config.json", config),
            ],
            destination_bucket=self.files,
            cache_control=[deployment.CacheControl.from_string(_REVALIDATE)],
            retain_on_delete=False,
            log_group=log,
        )
        self._accept_copier()

    def _accept_copier(self) -> None:
        """Accept cdk-nag's findings on the CDK's own function, which copies the files at deployment."""
        copier = next(
            child for child in self.node.children if child.node.id.startswith("Custom::CDKBucketDeployment")
        )
        bucket = self.get_logical_id(self.files.node.default_child)  # type: ignore[arg-type]
        accept(copier, "AwsSolutions-L1", "Its runtime is the CDK's choice.")
        accept(copier, f"AwsSolutions-IAM4[Policy::{_BASIC_EXECUTION}]", "It writes its own log.")
        for action in ("GetObject", "GetBucket", "List", "DeleteObject", "Abort"):
            accept(
                copier, f"AwsSolutions-IAM5[Action::s3:{action}*]", "It copies files and removes old ones."
            )
        for resource in (f"<{bucket}.Arn>/*", _ASSETS):
            accept(
                copier, f"AwsSolutions-IAM5[Resource::{resource}]", "The page's files and the CDK's assets."
            )


def _to_api(url: str, key_door: cloudfront.IFunction) -> cloudfront.BehaviorOptions:
    """Everything as the client sent it except the host, by which API Gateway selects the API; nothing is cached.

    An event stream sends a comment every 15 s, so it never meets the read time-out.
    """
    return cloudfront.BehaviorOptions(
        origin=origins.HttpOrigin(
            Fn.select(2, Fn.split("/", url)),
            origin_path=f"/{STAGE_NAME}",
            protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
            read_timeout=_READ_TIMEOUT,
        ),
        viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
        allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
        cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
        origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
        compress=False,
        function_associations=[
            cloudfront.FunctionAssociation(
                function=key_door, event_type=cloudfront.FunctionEventType.VIEWER_REQUEST
            )
        ],
    )


def _bucket_origins(bucket: str, region: str) -> tuple[str, str]:
    """The origins of a bucket's signed addresses: the region's endpoint, and in us-east-1 the global one."""
    return f"https://{bucket}.s3.{region}.amazonaws.com", f"https://{bucket}.s3.amazonaws.com"
