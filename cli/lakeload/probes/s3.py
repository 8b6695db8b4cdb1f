"""Errors of AWS with better advice than the call itself could give."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from lakeload.policy.iam import granting
from lakeload.policy.model import place, role_is_catalogs
from lakeload.probes.causes import Refusal, likely_causes, refusal
from lakeload.probes.runner import (
    CheckSkipped,
    Deadline,
    Permission,
    Probe,
    failed,
    probes_of,
    succeeds,
    within,
)
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.bucket import bucket_region
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.core.layout import job_history_path, probe_path
from lakeload_jobs.storage.objects import Completion, Objects, OpenUpload, Part

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef, ListObjectsV2RequestTypeDef


_OF_KEY = {
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    "put": ("kms:GenerateDataKey",),
    "get": ("kms:Decrypt",),
    "job-history": ("kms:GenerateDataKey",),
    "upload": ("kms:GenerateDataKey", "kms:Decrypt"),
    "complete-upload": ("kms:GenerateDataKey", "kms:Decrypt"),
}


def resource(destination: DestinationSpec, about: str) -> str:
    """Return the ARN of the bucket, of the job history, or of the objects of the connection
    test."""
    arns = place(destination)
    if about == "bucket":
        return arns.s3(destination.bucket)
    if about == "history":
        return arns.s3(destination.bucket, f"{job_history_path(destination.prefix)}*")
    return arns.s3(destination.bucket, f"{probe_path(destination.prefix)}*")


def key_permissions(name: str, destination: DestinationSpec) -> tuple[Permission, ...]:
    """Return what the probe `name` takes of the KMS key; nothing without a key of one's own."""
    # Writing the policies takes a tenth of a second, and each sync asks for every probe.
    actions = _OF_KEY.get(name, ()) if destination.encryption.kms_key_id else ()
    statement = granting(destination, "kms:Decrypt") if actions else None
    if statement is None:
        return ()
    key = ", ".join(statement.resources)
    return tuple(Permission(action, key) for action in actions)


def explain(
    name: str, action: str, destination: DestinationSpec, error: Exception
) -> tuple[str, ...]:
    """Return the likely causes of a failure of the probe `name`, the likeliest first."""
    code = getattr(error, "code", "")
    if code in ("NotImplemented", "MethodNotAllowed") and name == "list-uploads":
        return ("the store does not support this call: remove old uploads with a lifecycle rule",)
    if code == "NotImplemented" and destination.encryption.type != "NONE":
        lacking = f"the store has no {destination.encryption.type}: leave `encryption` out"
        return (lacking, *likely_causes(error))
    causes = likely_causes(error, denied=_denied(name, action, destination))
    denial = refusal(error)
    if denial and denial.explicit:
        return (*causes, *_demanded(denial, action, destination))
    if denial and denial.action.startswith("kms:"):
        return _key_causes(denial, name, destination)
    return causes


def hint(error: AwsError, name: str, action: str, destination: DestinationSpec) -> str | None:
    """Return what to do about a denial; None where the error's own hint will do."""
    denial = refusal(error)
    keys = key_permissions(name, destination)
    if denial and denial.explicit:
        what = denial.policy or "one of the policies"
        return f"remove or narrow the Deny for `{denial.action or action}` in {what}"
    if denial and denial.action.startswith("kms:"):
        key = f"`{keys[0].resource}`" if keys else "the bucket's default key"
        return f"allow `{denial.action}` on {key} in the role's policy and in the key's own policy"
    if denial and denial.policy and not denial.policy.startswith("a policy"):
        return f"allow `{denial.action or action}` in {denial.policy} as well"
    if keys:
        needed = " and ".join(f"`{one.action}`" for one in keys)
        return f"allow `{action}` on this resource, and {needed} on the key `{keys[0].resource}`"
    return None


_ENCRYPT = (
    "the bucket policy requires encryption: set `encryption: {type: SSE_S3}`, or `SSE_KMS` with "
    "the `kms_key_id` that it names"
)


def _demanded(denial: Refusal, action: str, destination: DestinationSpec) -> Iterator[str]:
    """Yield what a bucket's policy usually denies requests for the lack of."""
    if not denial.of_resource:
        return
    if action == "s3:PutObject" and destination.encryption.type == "NONE":
        yield _ENCRYPT
    if (destination.endpoints.s3 or "").startswith("http://"):
        yield (
            "the bucket policy requires https (aws:SecureTransport), and the endpoint begins with "
            "http: write https"
        )


def _key_causes(denial: Refusal, name: str, destination: DestinationSpec) -> tuple[str, ...]:
    """Return why the key is denied, where AWS says that it is the key."""
    keys = key_permissions(name, destination)
    if not keys:
        return (
            "the bucket encrypts with a KMS key by default, and this identity may not use it: see "
            "the bucket's properties; allow kms:GenerateDataKey and kms:Decrypt on that key",
        )
    of_role = (
        "no policy of the role or user allows kms:GenerateDataKey and kms:Decrypt on "
        f"{keys[0].resource}"
    )
    of_key = (
        "the key policy does not allow this identity: for a key of another account both "
        "policies have to allow it"
    )
    first, second = (of_key, of_role) if denial.of_resource else (of_role, of_key)
    return first, second, "a condition in it, such as kms:ViaService, is for another region"


def _denied(name: str, action: str, destination: DestinationSpec) -> tuple[str, ...]:
    """Return why S3 denies this, the likeliest cause first."""
    of_bucket = action.startswith("s3:List")
    causes = [f"no policy of the role or user allows {action} on the resource above"]
    if name == "list" and destination.prefix:
        pattern = f"{destination.prefix}/*"
        causes.append(f"a condition on s3:prefix does not match `{pattern}`")
    if name == "list-uploads":
        causes.append(
            "the statement has a condition on s3:prefix, which this action does not support"
        )
    if of_bucket:
        causes.append("the action is allowed on the bucket's objects (`…/*`) only")
    else:
        causes.append("the prefix in the policy is not the one of the destination")
    if name in _OF_KEY and destination.encryption.type == "SSE_KMS":
        causes.append(
            "the KMS key does not allow kms:GenerateDataKey and kms:Decrypt: S3 then denies "
            "the call"
        )
    if action == "s3:PutObject" and destination.encryption.type == "NONE":
        causes.append(_ENCRYPT)
    causes.append("the bucket's own policy, a permissions boundary or an SCP denies it")
    if of_bucket:
        causes.append("the bucket is another account's: its name is misspelt")
    return tuple(causes)


@dataclass
class ProbeBucket:
    """The reading probes of one test."""

    destination: DestinationSpec
    session: AwsSession
    objects: Objects

    @property
    def place(self) -> str:
        """What every key of the lake begins with; '' without a prefix."""
        return f"{self.destination.prefix}/" if self.destination.prefix else ""

    def find(self) -> str:
        """The bucket exists, where the document says."""
        wanted, bucket = self.destination.region, self.destination.bucket
        try:
            found = bucket_region(self.session.s3, bucket)
        except AwsError as error:
            if error.code == "400":
                # The answer to HEAD has no body: an expired key and a broken token look alike.
                self._list()
            raise
        if found and found != wanted:
            raise failed("bucket-region", bucket=bucket, found=found, wanted=wanted)
        if found:
            return f"in {found}"
        # AWS always names it. Whatever else answers may be no store at all.
        try:
            self._list()
        except AwsError as error:
            if error.denied:  # of a bucket that is not there a store may say the same
                raise CheckSkipped(
                    "not known: the store reports no region and does not allow this "
                    "identity to list the bucket"
                ) from error
        return "it exists; the store reports no region to compare"

    def list_prefix(self) -> str:
        """Objects under the prefix can be listed."""
        try:
            answer = self._list()
        except AwsError as error:
            if error.denied and self._wants_a_payer():
                raise failed("requester-pays", bucket=self.destination.bucket) from error
            raise
        return "" if answer.get("Contents") else "nothing there yet"

    def find_owner(self) -> str:
        """The bucket belongs to the account that writes, and not to whoever took its name."""
        account = self._account()
        try:
            self._list(ExpectedBucketOwner=account)
        except AwsError as error:
            if not error.denied:
                raise
            raise failed("bucket-owner", bucket=self.destination.bucket, account=account) from error
        return f"account {account}"

    def list_uploads(self) -> str:
        """Open multipart uploads can be listed."""
        found = any(True for _ in self.objects.list_uploads(self.place))
        return "some are open" if found else ""

    def _list(self, **more: str) -> ListObjectsV2OutputTypeDef:
        wanted: ListObjectsV2RequestTypeDef = {
            "Bucket": self.destination.bucket,
            "Prefix": self.place,
            "MaxKeys": 1,
            **more,  # type: ignore[typeddict-item]
        }
        with aws_call(f"listing `{self.objects.url(self.place)}`"):
            answer = self.session.s3.list_objects_v2(**wanted)
        if "Name" in answer:
            return answer
        raise failed("no-store", url=self.objects.url(self.place))

    def _wants_a_payer(self) -> bool:
        """Whether the bucket lets in only who pays for the request, and this is why it refused."""
        with suppress(AwsError):
            self._list(RequestPayer="requester")
            try:
                self._list()
            except AwsError as error:
                return error.denied
        return False

    def _account(self) -> str:
        role = self.destination.credentials.role_arn or ""
        if role:
            return role.split(":")[4]
        endpoints = self.destination.endpoints
        if endpoints.s3 and not endpoints.sts:
            raise CheckSkipped("the S3 endpoint is not AWS's: the store has no accounts of AWS")
        with aws_call("getting the account from STS"):
            return self.session.sts.get_caller_identity()["Account"]


BODY = b"written by lakeload test-connection; safe to delete\n"
_METADATA = {"lakeload": "probe"}


@dataclass
class ProbeObjects:
    """The write probes of one test. Their keys are its own, so tests may run side by side."""

    destination: DestinationSpec
    session: AwsSession
    objects: Objects
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _written: set[str] = field(default_factory=set)
    _uploads: dict[str, str] = field(default_factory=dict)
    """Open uploads: id → key."""
    _unanswered: bool = False
    """An upload may have begun whose id never arrived."""

    def key(self, name: str) -> str:
        """Return the key of one of this test's objects."""
        return f"{probe_path(self.destination.prefix)}{self._mark}-{name}"

    def delete_nothing(self) -> None:
        """Probe objects may be deleted: asked before one is written, so that none stays behind."""
        self._delete(self.key("absent"))

    def put(self) -> None:
        """An object can be created."""
        self._written.add(self.key("object"))
        key = self.key("object")
        if not self.objects.put_if_absent(key, BODY):
            raise failed("written-already", url=self.objects.url(key))

    def put_again(self) -> str:
        """A second writer of the same key is refused."""
        if self.objects.put_if_absent(self.key("object"), BODY):
            url = self.objects.url(self.key("object"))
            raise failed("no-conditions", operation="PutObject", url=url)
        return "the second write got 412"

    def get(self) -> None:
        """What was written can be read back."""
        if self.objects.get(self.key("object")) != BODY:
            raise failed("content", url=self.objects.url(self.key("object")))

    def replace_no_history(self) -> None:
        """The job history can be written: asked about an object that is not there."""
        key = f"{job_history_path(self.destination.prefix)}{self._mark}"
        try:
            if self.objects.put_version(key, BODY, f'"{self._mark}"'):
                self._written.add(key)
        except AwsError as error:
            if not error.not_implemented:
                raise

    def find_encryption(self) -> str:
        """What was written is encrypted as the document says; some stores ignore the headers."""
        wanted = self.destination.encryption
        key = self.key("object")
        with aws_call(f"reading the metadata of `{self.objects.url(key)}`"):
            answer = self.session.s3.head_object(Bucket=self.destination.bucket, Key=key)
        algorithm = {"SSE_S3": "AES256", "SSE_KMS": "aws:kms"}[wanted.type]
        found, with_key = answer.get("ServerSideEncryption"), answer.get("SSEKMSKeyId", "")
        name = (wanted.kms_key_id or "").rpartition("/")[2]
        # S3 answers with the key's own ARN, whatever alias the request names.
        other_key = "alias/" not in (wanted.kms_key_id or "") and not with_key.endswith(name)
        if found != algorithm or other_key:
            shown = f"`{found}`" if found else "nothing"
            raise failed(
                "encryption",
                url=self.objects.url(key),
                algorithm=algorithm,
                found=f"the key `{with_key}`" if found == algorithm else shown,
            )
        return f"with {with_key}" if with_key else ""

    def abort_nothing(self) -> None:
        """Uploads may be aborted: asked before one is begun, so that none stays behind."""
        self.objects.abort_upload(self.key("absent"), "AbsentUpload")

    def upload(self) -> None:
        """A file can be uploaded without becoming visible, and given up."""
        upload_id, _ = self._upload("aborted")
        self.objects.abort_upload(self._uploads.pop(upload_id), upload_id)

    def complete(self) -> str:
        """A file appears at once, and a second one cannot replace it."""
        key = self.key("multipart")
        self._written.add(key)
        if self._complete("multipart") is not Completion.COMPLETED:
            raise failed("upload", url=self.objects.url(key))
        if self.destination.single_writer:
            return ""
        if self._complete("multipart") is Completion.COMPLETED:
            raise failed(
                "no-conditions", operation="CompleteMultipartUpload", url=self.objects.url(key)
            )
        return "the second completion got 412"

    def remove_all(self, deadline: Deadline) -> tuple[str, ...]:
        """Remove what the probes wrote; return the URLs of what could not be removed."""
        left = []
        for upload_id, key in self._open_uploads(deadline):
            if not succeeds(partial(self.objects.abort_upload, key, upload_id), deadline):
                left.append(f"{self.objects.url(key)} (multipart upload)")
        for key in sorted(self._written):
            if not succeeds(partial(self._delete, key), deadline):
                left.append(self.objects.url(key))
        return tuple(left)

    def _open_uploads(self, deadline: Deadline) -> list[tuple[str, str]]:
        """Return id and key of open uploads, with those whose beginning was never answered."""
        known = dict(self._uploads)
        if self._unanswered:
            with suppress(LakeloadError):
                for upload in within(self._listed, deadline):
                    known[upload.upload_id] = upload.key
        return list(known.items())

    def _listed(self) -> list[OpenUpload]:
        return list(self.objects.list_uploads(self.key("")))

    def _delete(self, key: str) -> None:
        with aws_call(f"deleting `{self.objects.url(key)}`"):
            self.session.s3.delete_object(Bucket=self.destination.bucket, Key=key)

    def _upload(self, name: str) -> tuple[str, Part]:
        key = self.key(name)
        self._unanswered = True
        upload_id = self.objects.create_upload(key, _METADATA)
        self._uploads[upload_id] = key
        self._unanswered = False
        return upload_id, self.objects.upload_part(key, upload_id, 1, BODY)

    def _complete(self, name: str) -> Completion:
        upload_id, part = self._upload(name)
        outcome = self.objects.complete_upload(self.key(name), upload_id, (part,))
        if outcome is Completion.COMPLETED:
            del self._uploads[upload_id]
        return outcome


def s3_probes(
    destination: DestinationSpec, bucket: ProbeBucket, objects: ProbeObjects
) -> list[Probe]:
    """Return the probes of the bucket; those that write do so below `_lakeload/probe/` only.

    Deleting and aborting are asked first, about nothing: a role that may not clean up learns so
    before there is something to clean.
    """
    return [
        replace(
            probe,
            run=partial(_run, probe, destination),
            explain=partial(explain, probe.name, probe.action, destination),
            resource=resource(destination, probe.about),
            beside_the_point=_beside_the_point(probe.name, destination),
            also=key_permissions(probe.name, destination),
        )
        for probe in (*probes_of("bucket", bucket), *probes_of("objects", objects))
    ]


def _run(probe: Probe, destination: DestinationSpec) -> str | None:
    """Ask. A denial gets the hint that fits what refused."""
    try:
        return probe.run()
    except AwsError as error:
        if error.denied and (
            advice := probe.lost or hint(error, probe.name, probe.action, destination)
        ):
            error.hint = advice
        raise


def _beside_the_point(name: str, destination: DestinationSpec) -> str:
    if role_is_catalogs(destination):
        return "the catalog vends the credentials for its files"
    if name == "list-uploads" and not format_of(destination).lists_uploads:
        return "Iceberg loads do not list uploads"
    if name in ("put-again", "job-history") and destination.single_writer:
        return "not needed with `single_writer: true`"
    if name == "encryption" and destination.encryption.type == "NONE":
        return "no `encryption` is configured"
    return ""
