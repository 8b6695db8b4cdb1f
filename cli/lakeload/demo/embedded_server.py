"""The emulator's process: `python -m lakeload.demo.embedded_server`, ended with its parent."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 3.0


def end_with_parent() -> None:
    """Stop this process when its standard input closes.

    The parent holds the other end of the pipe, so the kernel closes it however the parent ends,
    kill -9 included, on every system; PR_SET_PDEATHSIG is Linux only and follows a thread.
    """

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(0)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()


def run() -> None:
    """Serve until the parent ends or SIGTERM arrives."""
    end_with_parent()
    runpy.run_module("ministack", run_name="__main__")


if __name__ == "__main__":
    run()
