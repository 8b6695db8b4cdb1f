"""Signs of life of a process that stays: a health file, and notifications of systemd.

https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lakeload_jobs.contract.errors import InvalidInput

_SECONDS = 1.0
"""The least time between two signs of life."""


class Liveness:
    """Touches `health_file`, and notifies systemd where that has started the process."""

    def __init__(
        self,
        environment: Mapping[str, str],
        health_file: Path | None = None,
        on_alive: Callable[[], None] = lambda: None,
    ) -> None:
        """Raise `InvalidInput` for a health file that cannot be written. `on_alive` is called with
        each sign of life."""
        self._on_alive = on_alive
        self._socket = environment.get("NOTIFY_SOCKET", "")
        self._health_file = health_file
        self._next = 0.0
        try:
            self._touch()
        except OSError as error:
            raise InvalidInput(
                f"the health file `{health_file}` cannot be written: {error.strerror}",
                hint="give `--health-file` a path in a folder that you can write to",
            ) from error

    def ready(self) -> None:
        """Notify systemd that the service is ready."""
        self._notify("READY=1")

    def alive(self, status: str = "") -> None:
        """Touch the file and notify systemd, at most once a second; a `status` always."""
        now = time.monotonic()
        if now < self._next and not status:
            return
        self._next = now + _SECONDS
        # A full disk ends no load: whoever watches sees that the file gets old.
        with contextlib.suppress(OSError):
            self._touch()
        self._on_alive()
        self._notify("\n".join(["WATCHDOG=1", *([f"STATUS={status}"] if status else [])]))

    def stopping(self) -> None:
        """Notify systemd that the process ends, and remove the health file."""
        self._notify("STOPPING=1")
        if self._health_file is not None:
            with contextlib.suppress(OSError):
                self._health_file.unlink(missing_ok=True)

    def _touch(self) -> None:
        if self._health_file is not None:
            self._health_file.touch()

    def _notify(self, message: str) -> None:
        if not self._socket:
            return
        # An abstract name begins with a zero byte, which a variable cannot hold.
        address = f"\0{self._socket[1:]}" if self._socket.startswith("@") else self._socket
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.settimeout(1)
            end.sendto(message.encode(), address)
