"""What goes wrong with the KMS key of the files; the answers are those of S3."""

from __future__ import annotations

from lakeload_jobs.contract.spec import EncryptionSpec
from tests.integration.probes.world import KEY, Case, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward, Response, answer


def _no_right_to(world: World, operation: str, action: str, kind: str) -> None:
    world.encrypt()
    world.refuse(operation, action, f"because no {kind} policy allows the {action} action", KEY)


def _key_says(world: World, code: str) -> None:
    world.encrypt()
    world.proxy.on("PutObject", answer(400, code))


def _default_key(world: World) -> None:
    world.refuse(
        "PutObject", "kms:GenerateDataKey", "because no identity-based policy allows it", KEY
    )


def _silent_about_the_key(world: World) -> None:
    world.encrypt()
    world.proxy.on("PutObject", answer(403, "AccessDenied", "Access Denied"))


def _plain(request: Request, forward: Forward) -> Response:
    response = forward(request)
    kept = tuple(h for h in response.headers if "server-side-encryption" not in h[0].lower())
    return Response(response.status, kept, response.body)


def _ignores_encryption(world: World) -> None:
    world.change(encryption=EncryptionSpec("SSE_S3"))
    world.proxy.on("HeadObject", _plain)


def _lacks_encryption(world: World) -> None:
    world.encrypt()
    world.proxy.on("PutObject", answer(501, "NotImplemented"))


KEYS = [
    Case(
        "key that the role's policy does not name",
        lambda world: _no_right_to(world, "PutObject", "kms:GenerateDataKey", "identity-based"),
        *("put", "AccessDenied", f"allow `kms:GenerateDataKey` on `{KEY}` in the role's policy"),
    ),
    Case(
        "key whose own policy does not know the role",
        lambda world: _no_right_to(world, "PutObject", "kms:GenerateDataKey", "resource-based"),
        *("put", "AccessDenied", "the key policy does not allow this identity"),
    ),
    Case(
        "key that may encrypt and not decrypt",
        lambda world: _no_right_to(world, "GetObject", "kms:Decrypt", "identity-based"),
        *("get", "AccessDenied", "allow `kms:Decrypt`"),
    ),
    Case(
        "key that may not decrypt the parts of an upload",
        lambda world: _no_right_to(world, "UploadPart", "kms:Decrypt", "identity-based"),
        *("upload", "AccessDenied", "allow `kms:Decrypt`"),
    ),
    Case(
        "store that does not say whether bucket or key refuses",
        _silent_about_the_key,
        *("put", "AccessDenied", f"and `kms:GenerateDataKey` on the key `{KEY}`"),
    ),
    Case(
        "bucket that encrypts with a key by default",
        _default_key,
        *("put", "AccessDenied", "encrypts with a KMS key by default"),
    ),
    Case(
        "key that is disabled",
        lambda world: _key_says(world, "KMS.DisabledException"),
        *("put", "KMS.DisabledException", "enable it in KMS"),
    ),
    Case(
        "key of another region",
        lambda world: _key_says(world, "KMS.NotFoundException"),
        *("put", "KMS.NotFoundException", "another region than the bucket"),
    ),
    Case(
        "key that waits to be deleted",
        lambda world: _key_says(world, "KMS.KMSInvalidStateException"),
        *("put", "KMS.KMSInvalidStateException", "cancel the deletion"),
    ),
    Case(
        "key for signatures",
        lambda world: _key_says(world, "KMS.InvalidKeyUsageException"),
        *("put", "KMS.InvalidKeyUsageException", "symmetric key"),
    ),
    Case(
        "store without KMS",
        _lacks_encryption,
        *("put", "NotImplemented", "the store has no SSE_KMS"),
    ),
    Case(
        "store that ignores the wish for encryption",
        _ignores_encryption,
        *("encryption", "EncryptionIgnored", "use a store that has this encryption"),
        warning=True,
    ),
]
