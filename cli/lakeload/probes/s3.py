"""Probes of the bucket and of what a load does in it (F6–F8, F12, F77, F83; B15, B16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakeload.policy.iam.s3 import role_is_catalogs
from lakeload.probes.hints import with_hint
from lakeload.probes.model import Level, Probe
from lakeload.probes.probe_bucket import ProbeBucket
from lakeload.probes.probe_objects import ProbeObjects
from lakeload.probes.s3_access import explain, hint, key_permissions, resource
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import format_of


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


def s3_probes(
    destination: DestinationSpec, bucket: ProbeBucket, objects: ProbeObjects
) -> list[Probe]:
    """Return the probes of the bucket; those that write do so below `_lakeload/probe/` only.

    Deleting and aborting are asked first, about nothing: a role that may not clean up is told so
    before there is something to clean.
    """
    return [
        *(_probe(question, destination, writes=False) for question in _reading(bucket)),
        *(_probe(question, destination, writes=True) for question in _writing(objects)),
    ]


def _reading(bucket: ProbeBucket) -> list[_Question]:
    return [
        _Question(
            "bucket",
            "the bucket exists, in the configured region",
            "s3:ListBucket",
            bucket.find,
            ("credentials", "assume-role"),
            of_bucket=True,
        ),
        _Question(
            "list",
            "objects under the prefix can be listed",
            "s3:ListBucket",
            bucket.list_prefix,
            ("bucket",),
            of_bucket=True,
        ),
        _Question(
            "bucket-owner",
            "the bucket belongs to the account that writes",
            "s3:ListBucket",
            bucket.find_owner,
            ("list",),
            Level.SAFETY,
            of_bucket=True,
        ),
        _Question(
            "list-uploads",
            "unfinished uploads of killed runs can be found",
            "s3:ListBucketMultipartUploads",
            bucket.list_uploads,
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
        ),
        _Question("get", "an object can be read back", "s3:GetObject", objects.get, ("put",)),
        _Question(
            "encryption",
            "what is written is encrypted as configured",
            "s3:GetObject",
            objects.find_encryption,
            ("get",),
            Level.SAFETY,
        ),
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
    about = (question.name, question.action, destination)
    return Probe(
        name=question.name,
        proves=question.proves,
        level=question.level,
        action=question.action,
        resource=resource(destination, of_bucket=question.of_bucket),
        run=lambda: _run(question, destination),
        explain=lambda error: explain(error, *about),
        needs=question.needs,
        writes=writes,
        beside_the_point=_beside_the_point(question.name, destination),
        also=key_permissions(question.name, destination),
    )


def _run(question: _Question, destination: DestinationSpec) -> str:
    """Ask. A denial gets the hint that fits what refused."""
    try:
        return question.run()
    except AwsError as error:
        told = hint(error, question.name, question.action, destination) if error.denied else None
        if told is None:
            raise
        raise with_hint(error, told) from error


def _beside_the_point(name: str, destination: DestinationSpec) -> str:
    if role_is_catalogs(destination):
        return "the catalog gives out the credentials for its files"
    if name == "list-uploads" and not format_of(destination).lists_uploads:
        return "an Iceberg load finds no uploads of others"
    if name == "put-again" and destination.single_writer:
        return "`single_writer: true` does without it"
    if name == "encryption" and destination.encryption.type == "NONE":
        return "no `encryption` is configured"
    return ""
