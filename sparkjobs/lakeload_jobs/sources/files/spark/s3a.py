"""S3 as a source: lakeload lists, Spark reads through Hadoop's S3A (docs/decisions/0050).

Spark gets no secret. Its `credential_process` starts lakeload_jobs.aws.process_credentials,
which resolves the same references, assumes the same role, and is asked again before they expire.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lakeload_jobs
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput, JobSpec
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.key_patterns import KeyPattern
from lakeload_jobs.sources.readers import SourceReaders

_PROFILE = "lakeload"
_PROVIDER = "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider"
_MODULE = "lakeload_jobs.aws.process_credentials"


class S3Source:
    """S3 as the tables of one run read it. Thread-safe: tables share identities and clients.

    `aws` is the run's own session: it reads where the source has no credentials of its own.
    """

    def __init__(self, spec: JobSpec, aws: AwsSession) -> None:
        self.readers = SourceReaders(spec.destination, aws)
        self.label = spec.label
        self._runtime = spec.runtime
        self._folder = _kept_in or Path(spec.result_path).parent / "source"
        self._lock = threading.Lock()
        self._connected: set[str] = set()

    def connect(self, spark: SparkSession, source: FilesInput, files: Sequence[FileState]) -> None:
        """Tell Spark how to reach the buckets of `files`; settings are kept per bucket.

        Raises as `check_runtime` does, and `AwsError` where the bucket's region cannot be asked
        for.
        """
        self.check_runtime(files)
        buckets = {KeyPattern.parse(file.path).bucket for file in files if is_s3(file.path)}
        for bucket in sorted(buckets):
            self._connect(spark, source, bucket)

    def opener(self, source: FilesInput) -> FileBytes:
        """Return what opens the files of a source, in tasks too."""
        return FileBytes(self.readers.identity(source), self.label)

    def check_runtime(self, files: Sequence[FileState]) -> None:
        """Raise `InvalidInput` for objects on a master whose tasks run on other machines."""
        if not self._runtime.tasks_share_driver and any(is_s3(file.path) for file in files):
            raise InvalidInput(
                "input from S3 is not supported yet on cluster masters",
                hint="use `local[*]` or `local-cluster[…]`",
            )

    def _connect(self, spark: SparkSession, source: FilesInput, bucket: str) -> None:
        objects = self.readers.objects(source)
        with self._lock:
            if bucket in self._connected:
                return
            identity = self.readers.identity(source)
            region = identity.region
            if bucket != identity.bucket:
                region = objects.region(bucket) or region
            _open(spark, bucket, identity, region, self._folder, self.label)
            self._connected.add(bucket)


_opened: dict[str, str] = {}
"""By bucket with which settings it is open. Hadoop keeps one file system for each bucket as long as
the JVM lives, with the credentials that it has fetched: those without an expiry it never fetches
again."""
_opening = threading.Lock()
_kept_in: Path | None = None
"""The folder of the profiles where a driver has one job after another: that of a job is removed
while Spark still fetches credentials with its profile. None: the folder of the job."""


def keep_profiles(folder: Path) -> None:
    """Write the profiles of all later jobs into a folder."""
    global _kept_in
    _kept_in = folder


def forget() -> None:
    """Let the next job fetch the credentials of all buckets again."""
    with _opening:
        _opened.update(dict.fromkeys(_opened, ""))


def _open(
    spark: SparkSession,
    bucket: str,
    identity: DestinationSpec,
    region: str,
    folder: Path,
    label: str,
) -> None:
    """Give Spark the settings of a bucket, unless it has it open with them. Thread-safe."""
    context = spark.sparkContext
    wanted = json.dumps([context.applicationId, region, str(folder), to_json(identity)])
    with _opening:
        if _opened.get(bucket) == wanted:
            return
        conf = context._jsc.hadoopConfiguration()
        profile = _profile(identity, folder, label)
        for name, value in s3a_settings(identity, region, profile).items():
            conf.set(f"fs.s3a.bucket.{bucket}.{name}", value)
        if bucket in _opened:
            java: Any = context._jvm
            hadoop = java.org.apache.hadoop.fs
            hadoop.FileSystem.get(hadoop.Path(f"s3a://{bucket}/").toUri(), conf).close()
        _opened[bucket] = wanted


def _profile(identity: DestinationSpec, folder: Path, label: str) -> Path:
    """Write the profile that Spark's credentials come from: a command, and no secret."""
    folder.mkdir(mode=0o700, exist_ok=True)
    text = json.dumps(to_json(identity))
    known = next((file for file in folder.glob("*.json") if file.read_text("utf-8") == text), None)
    if known is None:
        known = folder / f"{len(list(folder.glob('*.json')))}.json"
        known.write_text(text, encoding="utf-8")
    profile = known.with_suffix(".profile")
    command = credential_process(known, label)
    profile.write_text(f"[{_PROFILE}]\ncredential_process = {command}\n", encoding="utf-8")
    return profile


def s3a_settings(identity: DestinationSpec, region: str, profile: Path) -> dict[str, str]:
    """Return S3A's settings for one bucket, without `fs.s3a.bucket.NAME.` before their names."""
    endpoint = identity.endpoints.s3
    path_style = identity.addressing_style == "PATH" or (
        identity.addressing_style == "AUTO" and endpoint is not None
    )
    settings = {
        "aws.credentials.provider": _PROVIDER,
        "auth.profile.file": str(profile),
        "auth.profile.name": _PROFILE,
        "endpoint.region": region,
        "path.style.access": str(path_style).lower(),
    }
    if endpoint is not None:
        settings["endpoint"] = endpoint
        settings["connection.ssl.enabled"] = str(endpoint.startswith("https:")).lower()
    return settings


def credential_process(identity: Path, label: str) -> str:
    """Return the shell command of a profile's `credential_process`.

    A profile takes ` #` and ` ;` for the beginning of a comment, quoted or not.
    """
    packages = str(Path(lakeload_jobs.__path__[0]).parent)
    words = [sys.executable, "-P", "-m", _MODULE, str(identity), label]
    command = f"PYTHONPATH={shlex.quote(packages)} " + " ".join(map(shlex.quote, words))
    return command.replace(" #", " '\\#'").replace(" ;", " '\\;'")
