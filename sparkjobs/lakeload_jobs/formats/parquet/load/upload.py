"""Bytes in, parts of a multipart upload out, with a bounded number of buffers in flight."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore

from lakeload_jobs.storage.objects import Objects, Part

MIN_PART_BYTES = 8 << 20
"""S3 wants at least 5 MiB a part; a little more halves the requests and stays small in memory."""
MAX_PARTS = 10_000


def part_bytes(target_file_size: int) -> int:
    """Return the part size with which a file of the target size (plus what the encoder still
    holds when it is passed, at most as much again) stays within S3's 10,000 parts."""
    return max(MIN_PART_BYTES, -(-2 * target_file_size // MAX_PARTS))


class UploadPool:
    """Threads that send parts; at most `parallelism` parts of this process are in memory."""

    def __init__(self, parallelism: int) -> None:
        self._threads = ThreadPoolExecutor(parallelism, thread_name_prefix="upload")
        self._slots = BoundedSemaphore(parallelism)

    def send(
        self, objects: Objects, key: str, upload_id: str, number: int, body: bytes
    ) -> Future[Part]:
        """Start sending a part; waits while all slots are taken."""
        self._slots.acquire()
        future = self._threads.submit(objects.upload_part, key, upload_id, number, body)
        future.add_done_callback(lambda _: self._slots.release())
        return future

    def close(self) -> None:
        """Wait for the parts under way and end the threads."""
        self._threads.shutdown(wait=True)


class PartWriter:
    """What an encoder writes to: collects bytes and sends each full part.

    `write` raises what an earlier part failed with. `finish` sends the rest and returns all parts.
    """

    def __init__(
        self, objects: Objects, pool: UploadPool, key: str, upload_id: str, *, size_of_part: int
    ) -> None:
        self.key = key
        self.upload_id = upload_id
        self.size = 0
        self._objects = objects
        self._pool = pool
        self._size_of_part = size_of_part
        self._buffer = bytearray()
        self._sent: list[Future[Part]] = []

    def write(self, data: bytes) -> int:
        """Take bytes from the encoder."""
        self._buffer += data
        self.size += len(data)
        while len(self._buffer) >= self._size_of_part:
            self._send(self._size_of_part)
        return len(data)

    def finish(self) -> tuple[Part, ...]:
        """Send what is left, wait for every part and return them in order."""
        if self._buffer or not self._sent:
            self._send(len(self._buffer))
        return tuple(future.result() for future in self._sent)

    def wait(self) -> None:
        """Wait until nothing is under way: an abort would otherwise race with a late part."""
        for future in self._sent:
            future.exception()

    def _send(self, length: int) -> None:
        for future in self._sent:
            if future.done() and (error := future.exception()):
                raise error
        body = bytes(memoryview(self._buffer)[:length])
        del self._buffer[:length]
        number = len(self._sent) + 1
        self._sent.append(self._pool.send(self._objects, self.key, self.upload_id, number, body))
