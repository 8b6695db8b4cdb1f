"""What keeps the base identity from being found: profiles, files, variables, secrets elsewhere."""

from __future__ import annotations

from lakeload_jobs.contract.secrets import SecretReference
from tests.integration.probes.world import Case, World
from tests.servers.fault_proxy import answer
from tests.servers.ministack import EXTERNAL_ID_VARIABLE

_ROLE = "role_arn = arn:aws:iam::123456789012:role/base"


def _no_identity(world: World) -> None:
    world.without_keys()


def _unset_key(world: World) -> None:
    world.static_keys()
    world.environment.delenv("KEY")


def _unreadable_settings(world: World) -> None:
    world.profile("")
    (world.folder / "aws-config").write_text("region us-east-1\n")


def _environment_without_keys(world: World) -> None:
    world.without_keys()
    world.profile(f"{_ROLE}\ncredential_source = Environment")


def _web_identity(world: World, token: str = "", role: str = "") -> None:
    world.without_keys()
    world.environment.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token or str(world.folder / "token"))
    if role:
        world.environment.setenv("AWS_ROLE_ARN", role)


def _web_identity_of_another_cluster(world: World) -> None:
    (world.folder / "token").write_text("header.body.signature")
    _web_identity(world, role="arn:aws:iam::123456789012:role/base")
    world.environment.setenv("AWS_ENDPOINT_URL_STS", world.proxy.endpoint)
    world.proxy.on("AssumeRoleWithWebIdentity", answer(400, "InvalidIdentityToken", "No provider"))


def _metadata_elsewhere(world: World) -> None:
    world.without_keys()
    world.environment.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/keys")


def _secret_elsewhere(world: World, kind: str, operation: str, status: int, code: str) -> None:
    assert kind in ("aws_secret", "aws_parameter")
    reference = SecretReference("aws_secret", "/lakeload/id")
    if kind == "aws_parameter":
        reference = SecretReference("aws_parameter", "/lakeload/id")
    world.credentials(external_id=reference)
    world.environment.setenv("AWS_ENDPOINT_URL", world.proxy.endpoint)
    world.proxy.on(operation, answer(status, code))


PROFILES = [
    Case(
        "variable of the external id not set",
        lambda world: world.environment.delenv(EXTERNAL_ID_VARIABLE),
        *("credentials", "InvalidInput", f"export {EXTERNAL_ID_VARIABLE}=…"),
    ),
    Case(
        "variable of a key not set",
        _unset_key,
        *("credentials", "InvalidInput", "`KEY` is not set"),
    ),
    Case(
        "secret file that is not there",
        lambda world: world.credentials(
            external_id=SecretReference("file", str(world.folder / "external-id"))
        ),
        *("credentials", "InvalidInput", "create the file"),
    ),
    Case(
        "profile that does not exist",
        lambda world: world.credentials(profile="nobody"),
        *("credentials", "ProfileNotFound", "the profile's name is misspelt"),
    ),
    Case(
        "no identity at all",
        _no_identity,
        *("credentials", "NoCredentialsError", "AWS_PROFILE"),
    ),
    Case(
        "half an identity",
        lambda world: world.environment.delenv("AWS_SECRET_ACCESS_KEY"),
        *("credentials", "PartialCredentialsError", "`AWS_SECRET_ACCESS_KEY` is missing"),
    ),
    Case(
        "credential_process that fails",
        lambda world: world.profile("credential_process = /bin/false"),
        *("credentials", "CredentialRetrievalError", "run the profile's `credential_process`"),
    ),
    Case(
        "credential_process that is not installed",
        lambda world: world.profile("credential_process = /no/such/program"),
        *("credentials", "FileUnreadable", "installed in this container"),
    ),
    Case(
        "credential_process that prints something else than keys",
        lambda world: world.profile("credential_process = /bin/echo logged in"),
        *("credentials", "CredentialRetrievalError", "returned an invalid response"),
    ),
    Case(
        "source_profile that does not exist",
        lambda world: world.profile(f"{_ROLE}\nsource_profile = gone"),
        *("credentials", "InvalidConfigError", 'source_profile "gone"'),
    ),
    Case(
        "role of a profile without a source",
        lambda world: world.profile(_ROLE),
        *("credentials", "PartialCredentialsError", "names neither `source_profile` nor"),
    ),
    Case(
        "profiles that lead back to each other",
        lambda world: world.profile(
            f"{_ROLE}\nsource_profile = other\n[profile other]\n{_ROLE}\nsource_profile = lake"
        ),
        *("credentials", "InfiniteLoopConfigError", "refers back to itself"),
    ),
    Case(
        "profile of a login that nobody made",
        lambda world: world.profile(
            "sso_session = corp\nsso_account_id = 123456789012\nsso_role_name = x\n"
            "[sso-session corp]\nsso_region = us-east-1\n"
            "sso_start_url = https://corp.awsapps.com/start"
        ),
        *("credentials", "SSOTokenLoadError", "run `aws sso login`"),
    ),
    Case(
        "profile of a login session that is not configured",
        lambda world: world.profile(
            "sso_session = corp\nsso_account_id = 123456789012\nsso_role_name = x"
        ),
        *("credentials", "InvalidConfigError", "fix ~/.aws/config"),
    ),
    Case(
        "credential_source that has no keys",
        _environment_without_keys,
        *("credentials", "CredentialRetrievalError", "`credential_source = Environment` finds"),
    ),
    Case(
        "AWS settings that are not settings",
        _unreadable_settings,
        *("credentials", "ConfigParseError", "`name = value`"),
    ),
    Case(
        "web identity token that is not mounted",
        lambda world: _web_identity(world, role="arn:aws:iam::123456789012:role/base"),
        *("credentials", "FileUnreadable", "is not mounted"),
    ),
    Case(
        "web identity without a role",
        _web_identity,
        *("credentials", "InvalidConfigError", "AWS_ROLE_ARN"),
    ),
    Case(
        "web identity of another cluster",
        _web_identity_of_another_cluster,
        *("credentials", "InvalidIdentityToken", "OIDC provider"),
    ),
    Case(
        "container credentials from a foreign host",
        _metadata_elsewhere,
        *("credentials", "CredentialRetrievalError", "loopback or metadata address"),
    ),
    Case(
        "secret that Secrets Manager does not have",
        lambda world: _secret_elsewhere(
            world, "aws_secret", "GetSecretValue", 400, "ResourceNotFoundException"
        ),
        *("credentials", "ResourceNotFoundException", "the secret's name is misspelt"),
    ),
    Case(
        "secret that the base identity may not read",
        lambda world: _secret_elsewhere(
            world, "aws_secret", "GetSecretValue", 400, "AccessDeniedException"
        ),
        *("credentials", "AccessDeniedException", "allow `secretsmanager:GetSecretValue`"),
    ),
    Case(
        "parameter that the store of parameters does not have",
        lambda world: _secret_elsewhere(
            world, "aws_parameter", "GetParameter", 400, "ParameterNotFound"
        ),
        *("credentials", "ParameterNotFound", "begins with `/`"),
    ),
]
