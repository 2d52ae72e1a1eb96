"""The web page: private files in S3, served by CloudFront under a strict policy. Optional per stage."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aws_cdk import CfnOutput, Duration, Fn, RemovalPolicy, Stack, Token
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment

from infra.page import web
from infra.stacks.findings import accept

if TYPE_CHECKING:
    from constructs import Construct

    from infra.stages import StageSettings

_REVALIDATE = "public, max-age=0, must-revalidate"  # names carry no hash; a check costs an empty 304
_BASIC_EXECUTION = "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
_ASSETS = "arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>/*"


class PageStack(Stack):
    """Serves `infra.page`, told by ``config.json`` where the API and the sign-in are.

    ``api_url`` is the REST API's URL with its stage, ``sign_in_url`` the Cognito domain's base URL
    (``https://…amazoncognito.com``), ``client_id`` the app client. The app client has to allow this
    stack's output ``PageUrl`` as callback and logout URL. ``uploads_bucket`` is the name of the bucket to which
    administrators put files at addresses that the API signs.
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
        uploads_bucket: str,
    ) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-page")
        self._stage = stage
        self.files = self._bucket()
        self.distribution = self._distribution(
            _origin(api_url), sign_in_url, *_bucket_origins(uploads_bucket, self.region)
        )
        sign_in = {"kind": "cognito", "domain": sign_in_url, "client_id": client_id}
        self._deploy({"api": api_url, "sign_in": sign_in})
        self.url = f"https://{self.distribution.distribution_domain_name}/"
        CfnOutput(self, "PageUrl", value=self.url)

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

    def _distribution(self, *called: str) -> cloudfront.Distribution:
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=f"The web page of {self._stage.prefix}",
            default_root_object="index.html",
            default_behavior=cloudfront.BehaviorOptions(
                origin=origins.S3BucketOrigin.with_origin_access_control(self.files),
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
                allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
                cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
                response_headers_policy=self._headers(*called),
                compress=True,
            ),
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
        )
        accept(distribution, "AwsSolutions-CFR1", "The page may be read from everywhere.")
        accept(
            distribution,
            "AwsSolutions-CFR2",
            "Static files without input; a firewall would cost more than the page.",
        )
        accept(
            distribution,
            "AwsSolutions-CFR3",
            "The page is public and static; who calls the API is in the API's log.",
        )
        accept(
            distribution,
            "AwsSolutions-CFR4",
            "CloudFront's own certificate brings its own TLS policy; a custom domain sets one.",
        )
        return distribution

    def _headers(self, *called: str) -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            comment=f"Security headers of the page of {self._stage.prefix}",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=web.content_security_policy(*called),
                    override=True,
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
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
        """The files, and a configuration of this stage in the place of the local one."""
        page = deployment.Source.asset(str(web.FOLDER), exclude=[*web.SOURCES, "config.json"])
        log = logs.LogGroup(
            self, "DeployLog", retention=logs.RetentionDays.ONE_WEEK, removal_policy=RemovalPolicy.DESTROY
        )
        deployment.BucketDeployment(
            self,
            "Deploy",
            sources=[page, deployment.Source.json_data("config.json", config)],
            destination_bucket=self.files,
            cache_control=[deployment.CacheControl.from_string(_REVALIDATE)],
            retain_on_delete=False,
            log_group=log,
        )
        self._accept_copier()

    def _accept_copier(self) -> None:
        """What cdk-nag finds on the CDK's own function, which copies the files at deployment."""
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


def _origin(url: str) -> str:
    """``https://host`` of a URL, for one that is known only at deployment too."""
    if not Token.is_unresolved(url):
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}"
    return Fn.join("", ["https://", Fn.select(2, Fn.split("/", url))])


def _bucket_origins(bucket: str, region: str) -> tuple[str, str]:
    """Where signed addresses of a bucket lead: to the region's endpoint, and in us-east-1 to the global one."""
    return f"https://{bucket}.s3.{region}.amazonaws.com", f"https://{bucket}.s3.amazonaws.com"
