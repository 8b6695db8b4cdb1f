"""pyiceberg's files, read and written as `LakeFiles`.

pyiceberg's own S3 takes keys that never renew, and sends no encryption headers.
"""

from __future__ import annotations

import io

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from lakeload_jobs.aws import AwsError, aws_call
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles, bucket_and_key


class PyIcebergFiles(FileIO):
    """The files of one `LakeFiles`, each small enough for memory. Raises `AwsError` everywhere."""

    def __init__(self, lake: LakeFiles) -> None:
        super().__init__({})
        self._lake = lake

    def new_input(self, location: str) -> InputFile:
        """Return a file to read."""
        return _Input(self._lake, location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to write."""
        return _Output(self._lake, location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file; a missing one is no error."""
        self._lake.delete(location if isinstance(location, str) else location.location)


class _Input(InputFile):
    def __init__(self, files: LakeFiles, location: str) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        bucket, key = bucket_and_key(self.location)
        with aws_call(f"reading `{self.location}`"):
            client = self._files.client(self.location)
            return int(client.head_object(Bucket=bucket, Key=key)["ContentLength"])

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except AwsError as error:
            if error.status != 404:
                raise
            return False

    def open(self, seekable: bool = True) -> InputStream:
        return io.BytesIO(self._files.read(self.location))


class _Output(OutputFile):
    def __init__(self, files: LakeFiles, location: str) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return _Input(self._files, self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        # Iceberg names its files by UUID: asking first whether one exists would only need a
        # permission more.
        return _Stream(self._files, self.location)


class _Stream(io.BytesIO):
    """Collects, and writes when it is closed; nothing is written after an error."""

    def __init__(self, files: LakeFiles, location: str) -> None:
        super().__init__()
        self._files = files
        self._location = location
        self._failed = False

    def __exit__(self, *exception: object) -> None:
        self._failed = exception[0] is not None
        self.close()

    def close(self) -> None:
        # Manifests are closed, and metadata files are left.
        if not self.closed and not self._failed:
            self._files.write(self._location, self.getvalue())
        super().close()
