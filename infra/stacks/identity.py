"""Who may call: the user pool, its admin group and the app client (CONTRACT 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cognito as cognito

from infra.stacks.findings import accept

if TYPE_CHECKING:
    from constructs import Construct

    from infra.stages import StageSettings

ADMIN_GROUP: Final = "admin"


class IdentityStack(Stack):
    """A Cognito user pool; other OIDC providers are federated into it.

    ``page_url``: where the page is, once that is known; the sign-in may lead back there.
    """

    def __init__(self, scope: Construct, construct_id: str, stage: StageSettings, page_url: str = "") -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-identity")
        self.pool = cognito.UserPool(
            self,
            "Users",
            user_pool_name=f"{stage.prefix}-users",
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(username=True, email=True),
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_digits=True,
                require_lowercase=True,
                require_uppercase=True,
                require_symbols=True,
            ),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            deletion_protection=stage.keep_data,
            removal_policy=RemovalPolicy.RETAIN if stage.keep_data else RemovalPolicy.DESTROY,
        )
        accept(
            self.pool,
            "AwsSolutions-COG2",
            "A second factor is offered, not forced: whether a team's users need one is the team's decision.",
        )
        accept(
            self.pool,
            "AwsSolutions-COG8",
            "The Plus plan is billed per user; users are made by operators or come from a federated provider.",
        )
        cognito.CfnUserPoolGroup(
            self,
            "Admins",
            user_pool_id=self.pool.user_pool_id,
            group_name=ADMIN_GROUP,
            description="May call /v1/admin/*",
        )
        callbacks = [*stage.callback_urls, *([page_url] if page_url else [])]
        self.client = self.pool.add_client(
            "App",
            auth_flows=cognito.AuthFlow(admin_user_password=True, user_password=True, user_srp=True),
            generate_secret=False,
            prevent_user_existence_errors=True,
            id_token_validity=Duration.hours(stage.token_hours),
            access_token_validity=Duration.hours(stage.token_hours),
            refresh_token_validity=Duration.days(30),
            o_auth=cognito.OAuthSettings(
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.EMAIL, cognito.OAuthScope.PROFILE],
                callback_urls=callbacks,
                logout_urls=callbacks,
            ),
        )
        self.sign_in = self.pool.add_domain(
            "SignIn",
            cognito_domain=cognito.CognitoDomainOptions(domain_prefix=f"{stage.prefix}-{Aws.ACCOUNT_ID}"),
        )
        CfnOutput(self, "UserPoolId", value=self.pool.user_pool_id)
        CfnOutput(self, "UserPoolClientId", value=self.client.user_pool_client_id)
