"""Probes of the bucket and of what a load does in it (F6–F8, F12, F77, F83; B15, B16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lakeload.probes.causes import likely_causes
from lakeload.probes.model import Level, Probe
from lakeload.probes.probe_objects import ProbeObjects
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.rules.layout import probe_path


@dataclass(frozen=True)
class _Question:
    """A probe but for the ARN and the causes, which follow from the destination."""

    name: str
    proves: str
    action: str
    run: Callable[[], str]
    needs: tuple[str, ...]
    level: Level = Level.REQUIRED
    of_bucket: bool = False
    """Whether the action's resource is the bucket; else the objects of the connection test."""
    conditional: bool = False
    """Whether it is about conditional writes alone."""


def s3_probes(destination: DestinationSpec, objects: ProbeObjects) -> list[Probe]:
    """Return the probes of the bucket; those that write do so below `_lakeload/probe/` only.

    Deleting and aborting are asked first, about nothing: a role that may not clean up is told so
    before there is something to clean.
    """
    return [
        *(_probe(question, destination, writes=False) for question in _reading(objects)),
        *(_probe(question, destination, writes=True) for question in _writing(objects)),
    ]


def _reading(objects: ProbeObjects) -> list[_Question]:
    return [
        _Question(
            "bucket",
            "the bucket exists, in the configured region",
            "s3:ListBucket",
            objects.find_bucket,
            ("credentials", "assume-role"),
            of_bucket=True,
        ),
        _Question(
            "list",
            "objects under the prefix can be listed",
            "s3:ListBucket",
            objects.list_prefix,
            ("bucket",),
            of_bucket=True,
        ),
        _Question(
            "list-uploads",
            "unfinished uploads of killed runs can be found",
            "s3:ListBucketMultipartUploads",
            objects.list_uploads,
            ("bucket",),
            Level.USEFUL,
            of_bucket=True,
        ),
    ]


def _writing(objects: ProbeObjects) -> list[_Question]:
    return [
        _Question(
            "delete",
            "the objects of this test can be deleted",
            "s3:DeleteObject",
            objects.delete_nothing,
            ("bucket",),
        ),
        _Question("put", "an object can be created", "s3:PutObject", objects.put, ("delete",)),
        _Question(
            "put-again",
            "two writers cannot overwrite each other (If-None-Match)",
            "s3:PutObject",
            objects.put_again,
            ("put",),
            conditional=True,
        ),
        _Question("get", "an object can be read back", "s3:GetObject", objects.get, ("put",)),
        _Question(
            "abort-upload",
            "the uploads of a load that failed can be removed",
            "s3:AbortMultipartUpload",
            objects.abort_nothing,
            ("bucket",),
            Level.USEFUL,
        ),
        _Question(
            "upload",
            "a file can be uploaded without becoming visible",
            "s3:PutObject",
            objects.upload,
            ("abort-upload",),
        ),
        _Question(
            "complete-upload",
            "a file appears whole, and never over another one",
            "s3:PutObject",
            objects.complete,
            ("delete", "upload"),
        ),
    ]


def _probe(question: _Question, destination: DestinationSpec, *, writes: bool) -> Probe:
    pointless = question.conditional and destination.single_writer
    return Probe(
        name=question.name,
        proves=question.proves,
        level=question.level,
        action=question.action,
        resource=_resource(destination, of_bucket=question.of_bucket),
        run=question.run,
        explain=partial(likely_causes, denied=_denied(question, destination)),
        needs=question.needs,
        writes=writes,
        beside_the_point="`single_writer: true` does without it" if pointless else "",
    )


def _resource(destination: DestinationSpec, *, of_bucket: bool) -> str:
    partition = {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(
        next((p for p in ("cn", "us-gov") if destination.region.startswith(f"{p}-")), ""), "aws"
    )
    bucket = f"arn:{partition}:s3:::{destination.bucket}"
    return bucket if of_bucket else f"{bucket}/{probe_path(destination.prefix)}*"


def _denied(question: _Question, destination: DestinationSpec) -> tuple[str, ...]:
    """Return why S3 denies this, the likeliest cause first."""
    causes = [f"no policy of the role or user allows {question.action} on the resource above"]
    if question.name == "list" and destination.prefix:
        pattern = f"{destination.prefix}/*"
        causes.append(f"a condition on s3:prefix does not match `{pattern}`, for example by a typo")
    if question.name == "list-uploads":
        causes.append("the statement has a condition on s3:prefix, which this action does not know")
    if question.of_bucket:
        causes.append("the action is allowed on the bucket's objects (`…/*`) only")
    else:
        causes.append("the prefix in the policy is not the one of the destination")
    if question.action == "s3:PutObject" and destination.encryption.type == "SSE_KMS":
        causes.append("the KMS key does not allow kms:GenerateDataKey and kms:Decrypt")
    causes.append("the bucket's own policy, a permissions boundary or an SCP denies it")
    if question.of_bucket:
        causes.append("the bucket is another account's: its name is misspelt")
    return tuple(causes)
