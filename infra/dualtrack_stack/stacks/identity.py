"""Who may call: the user pool, its admin group and the app client (CONTRACT 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aws_cdk import ArnFormat, Aws, CfnOutput, Duration, RemovalPolicy, SecretValue, Stack
from aws_cdk import aws_cognito as cognito

from dualtrack_stack.sign_in import OWN_USERS
from dualtrack_stack.sign_in_ports import PORTS, address_at
from dualtrack_stack.stacks.findings import accept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constructs import Construct

    from dualtrack_stack.sign_in import Mail, Oidc, Saml, SignIn
    from dualtrack_stack.stages import StageSettings

ADMIN_GROUP: Final = "admin"


class IdentityStack(Stack):
    """A Cognito user pool; other providers, OpenID Connect or SAML, are federated into it.

    ``page_url``: the page's address, once it is known, a callback of the sign-in. Without it, and without callbacks of
    the stage's own, the sign-in page is off: Cognito requires a callback.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        stage: StageSettings,
        page_url: str = "",
        sign_in: SignIn = OWN_USERS,
    ) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-identity")
        self._stage = stage
        self.pool = self._pool()
        if sign_in.mail:
            self._send_by_ses(sign_in.mail)
        cognito.CfnUserPoolGroup(
            self,
            "Admins",
            user_pool_id=self.pool.user_pool_id,
            group_name=ADMIN_GROUP,
            description="May call /v1/admin/*",
        )
        providers = [self._oidc(sign_in.oidc)] if sign_in.oidc else []
        providers += [self._saml(sign_in.saml)] if sign_in.saml else []
        callbacks = [*stage.callback_urls, *([page_url] if page_url else [])]
        self.client = self._client(callbacks, providers)
        self.terminal = self._terminal(providers)
        self.sign_in = self.pool.add_domain(
            "SignIn",
            cognito_domain=cognito.CognitoDomainOptions(domain_prefix=f"{stage.prefix}-{Aws.ACCOUNT_ID}"),
        )
        CfnOutput(self, "UserPoolId", value=self.pool.user_pool_id)
        CfnOutput(self, "UserPoolClientId", value=self.client.user_pool_client_id)
        # the page's, whether there is one or not: an export in use cannot be dropped
        self.export_value(self.sign_in.domain_name)

    def _pool(self) -> cognito.UserPool:
        keep, is_forced = self._stage.keep_data, self._stage.mfa_required
        pool = cognito.UserPool(
            self,
            "Users",
            user_pool_name=f"{self._stage.prefix}-users",
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(username=True, email=True),
            # one setting for all users of a pool: if administrators need a second factor, everybody does
            mfa=cognito.Mfa.REQUIRED if is_forced else cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_digits=True,
                require_lowercase=True,
                require_uppercase=True,
                require_symbols=True,
            ),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            deletion_protection=keep,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else RemovalPolicy.DESTROY,
        )
        if not is_forced:
            accept(
                pool,
                "AwsSolutions-COG2",
                "A second factor is offered, not forced: scripts and tests sign in to this stage.",
            )
        accept(
            pool,
            "AwsSolutions-COG8",
            "The Plus plan is billed per user; users are made by operators or come from a federated provider.",
        )
        return pool

    def _send_by_ses(self, mail: Mail) -> None:
        identity = self.format_arn(
            service="ses",
            resource="identity",
            resource_name=mail.identity,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        pool: Any = self.pool.node.default_child
        pool.add_property_override(
            "EmailConfiguration",
            {"EmailSendingAccount": "DEVELOPER", "From": mail.sender, "SourceArn": identity},
        )

    def _oidc(self, provider: Oidc) -> cognito.CfnUserPoolIdentityProvider:
        details = {
            "oidc_issuer": provider.issuer,
            "client_id": provider.client_id,
            # a reference that CloudFormation resolves; the value is in no template
            "client_secret": SecretValue.secrets_manager(provider.secret).unsafe_unwrap(),
            "authorize_scopes": "openid email profile",
            "attributes_request_method": "GET",
        }
        return self._provider("Oidc", "OIDC", provider.name, details, {"email": "email"})

    def _saml(self, provider: Saml) -> cognito.CfnUserPoolIdentityProvider:
        email = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"
        return self._provider(
            "Saml", "SAML", provider.name, {"MetadataURL": provider.metadata_url}, {"email": email}
        )

    def _provider(
        self,
        construct_id: str,
        kind: str,
        name: str,
        details: Mapping[str, str],
        attributes: Mapping[str, str],
    ) -> cognito.CfnUserPoolIdentityProvider:
        return cognito.CfnUserPoolIdentityProvider(
            self,
            construct_id,
            user_pool_id=self.pool.user_pool_id,
            provider_type=kind,
            provider_name=name,
            provider_details=dict(details),
            attribute_mapping=dict(attributes),
        )

    def _client(
        self, callbacks: list[str], providers: list[cognito.CfnUserPoolIdentityProvider]
    ) -> cognito.UserPoolClient:
        password = self._stage.password_sign_in
        hours = Duration.hours(self._stage.token_hours)
        oauth = cognito.OAuthSettings(
            flows=cognito.OAuthFlows(authorization_code_grant=True),
            scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.EMAIL, cognito.OAuthScope.PROFILE],
            callback_urls=callbacks,
            logout_urls=callbacks,
        )
        client = self.pool.add_client(
            "App",
            auth_flows=cognito.AuthFlow(
                admin_user_password=password or None, user_password=password or None, user_srp=True
            ),
            generate_secret=False,
            prevent_user_existence_errors=True,
            id_token_validity=hours,
            access_token_validity=hours,
            refresh_token_validity=Duration.days(30),
            o_auth=oauth if callbacks else None,
            disable_o_auth=None if callbacks else True,
            supported_identity_providers=[
                cognito.UserPoolClientIdentityProvider.COGNITO,
                *(cognito.UserPoolClientIdentityProvider.custom(own.provider_name) for own in providers),
            ],
        )
        for provider in providers:
            client.node.add_dependency(provider)
        return client

    def _terminal(self, providers: list[cognito.CfnUserPoolIdentityProvider]) -> cognito.UserPoolClient:
        """Of `dualtrack login`: a code to three addresses of the caller's own machine, and no password."""
        hours = Duration.hours(self._stage.token_hours)
        client = self.pool.add_client(
            "Terminal",
            generate_secret=False,
            prevent_user_existence_errors=True,
            enable_token_revocation=True,
            id_token_validity=hours,
            access_token_validity=hours,
            refresh_token_validity=Duration.days(30),
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.EMAIL, cognito.OAuthScope.PROFILE],
                callback_urls=[address_at(port) for port in PORTS],
            ),
            supported_identity_providers=[
                cognito.UserPoolClientIdentityProvider.COGNITO,
                *(cognito.UserPoolClientIdentityProvider.custom(own.provider_name) for own in providers),
            ],
        )
        resource: Any = client.node.default_child
        resource.explicit_auth_flows = ["ALLOW_REFRESH_TOKEN_AUTH"]  # without the list also SRP is allowed
        for provider in providers:
            client.node.add_dependency(provider)
        return client
