"""Sets up an emulated AWS account: buckets, users and roles, over plain HTTP.

boto3 lives in `lakeload_jobs.aws` alone and speaks for a user's own identity; this module
is the emulator's administrator, whom it knows by the access key and asks for no signature.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from lakeload_jobs.contract.errors import Refused

Policy = Mapping[str, object]


@dataclass(frozen=True)
class AccessKey:
    """Keys of an emulated IAM user."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


class AwsAdmin:
    """The administrator of the emulated account. Every method raises `Refused` when told no.

    A 12-digit access key makes it the administrator of the account of that number, so that
    roles can trust another account.
    """

    def __init__(
        self, endpoint: str, *, access_key: str = "test", region: str = "us-east-1"
    ) -> None:
        self._address = urlsplit(endpoint)
        self._access_key = access_key
        self._region = region

    def create_bucket(self, bucket: str, *, region: str | None = None) -> None:
        """Create an empty bucket in `region` (default: the administrator's)."""
        place = region or self._region
        body = ""
        if place != "us-east-1":  # S3 knows us-east-1 only as "no constraint"
            body = (
                "<CreateBucketConfiguration><LocationConstraint>"
                f"{place}</LocationConstraint></CreateBucketConfiguration>"
            )
        self._send("s3", "PUT", f"/{bucket}", body.encode(), region=place)

    def create_user(self, name: str, policy: Policy | None = None) -> AccessKey:
        """Create an IAM user with an inline policy and return its new access key."""
        self._iam("CreateUser", UserName=name)
        if policy is not None:
            self.put_user_policy(name, policy)
        return self.create_access_key(name)

    def create_access_key(self, user: str) -> AccessKey:
        """Return a new access key of an existing user."""
        answer = self._iam("CreateAccessKey", UserName=user)
        return AccessKey(_element(answer, "AccessKeyId"), _element(answer, "SecretAccessKey"))

    def put_user_policy(self, user: str, policy: Policy) -> None:
        """Replace the user's inline policy."""
        self._iam(
            "PutUserPolicy",
            UserName=user,
            PolicyName="lakeload",
            PolicyDocument=json.dumps(policy),
        )

    def create_role(self, name: str, *, trust: Policy, policy: Policy) -> str:
        """Create a role with a trust policy and an inline policy; return its ARN."""
        answer = self._iam("CreateRole", RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
        self.put_role_policy(name, policy)
        return _element(answer, "Arn")

    def put_role_policy(self, role: str, policy: Policy) -> None:
        """Replace the role's inline policy."""
        self._iam(
            "PutRolePolicy",
            RoleName=role,
            PolicyName="lakeload",
            PolicyDocument=json.dumps(policy),
        )

    def _iam(self, action: str, **parameters: str) -> str:
        form = {"Action": action, "Version": "2010-05-08", **parameters}
        return self._send("iam", "POST", "/", urlencode(form).encode(), region=self._region)

    def _send(self, service: str, method: str, path: str, body: bytes, *, region: str) -> str:
        scope = f"{self._access_key}/20260101/{region}/{service}/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
        }
        connection = http.client.HTTPConnection(self._address.netloc, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except OSError as error:
            raise Refused(f"setting up the emulated AWS failed: {error}") from error
        finally:
            connection.close()
        if response.status >= 300:
            raise Refused(
                f"setting up the emulated AWS failed: `{method} {path}` answered "
                f"{response.status} {text}"
            )
        return text


def _element(answer: str, name: str) -> str:
    """Return the text of the first element of that name in the emulator's own answer."""
    found = re.search(f"<{name}>([^<]*)</{name}>", answer)
    if found is None:
        raise Refused(f"the emulated AWS answered without `{name}`")
    return found.group(1)
