"""Resumable download of a file over HTTP, with range requests."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, BinaryIO
from urllib.parse import urlsplit

SECONDS = 30.0
"""Without a byte for so long, an answer counts as broken off."""
PAUSES = (0.5, 1.0, 2.0)
"""Seconds before each further try that follows one without a byte."""

_CHUNK = 1 << 18
_BUSY = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Login:
    """User and password of a repository; never shown."""

    user: str
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """The value of the header `Authorization`."""
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


class BrokenOff(Exception):
    """The connection ended before the file did. The message says how far it came."""


class NotWritten(Exception):
    """The file's disk took no more: its cause is the `OSError`."""


def download(
    url: str,
    login: Login | None,
    file: BinaryIO,
    size: int,
    *,
    on_bytes: Callable[[int], None],
    pauses: tuple[float, ...] = PAUSES,
) -> None:
    """Go on with `file`, which holds the first bytes of `url`, until it holds `size` or all.

    `on_bytes` gets how many bytes are there, and may raise to stop. Raises what urllib raises,
    `BrokenOff` when answers go on breaking off, `NotWritten` when the disk refuses.
    """
    tries, anew = 0, False
    while (before := _length(file)) < size:
        try:
            if _answer(url, login, file, size, on_bytes):
                return
            failure: Exception = BrokenOff(f"ended after {_length(file):,} of {size:,} bytes")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and before and not anew:
                # What is there is no beginning of what the repository has.
                file.truncate(0)
                anew = True
                continue
            if error.code not in _BUSY:
                raise
            failure = error
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            failure = error
        tries = 0 if _length(file) > before else tries + 1
        if tries > len(pauses):
            raise failure
        time.sleep(pauses[tries - 1] if tries else 0)


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for this URL, without user and password."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy is None or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return without_login(proxy)


def without_login(url: str) -> str:
    """Return the URL without user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Hands the login on to the same host alone: artifacts often lie in another store."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request that follows a redirect."""
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        login = req.unredirected_hdrs.get("Authorization")
        if following and login and urlsplit(newurl)[:2] == urlsplit(req.full_url)[:2]:
            following.add_unredirected_header("Authorization", login)
        return following


def _answer(
    url: str, login: Login | None, file: BinaryIO, size: int, on_bytes: Callable[[int], None]
) -> bool:
    """Take in one answer; True when it came to its own end."""
    offset = _length(file)
    request = urllib.request.Request(url, headers={"User-Agent": "lakeload"})  # noqa: S310
    if login:
        request.add_unredirected_header("Authorization", login.header)
    if offset:
        request.add_header("Range", f"bytes={offset}-")
    opener = urllib.request.build_opener(_SameHost)
    with opener.open(request, timeout=SECONDS) as answer:
        found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
        if not (answer.status == 206 and found and int(found[1]) == offset):
            file.truncate(0)
        announced = answer.length
        before = _length(file)
        # A byte more than there should be is enough to tell that it is another file.
        while _length(file) <= size and (piece := answer.read1(_CHUNK)):
            _write(file, piece)
            on_bytes(file.tell())
    return announced is not None and _length(file) - before >= announced


def _write(file: BinaryIO, piece: bytes) -> None:
    try:
        view = memoryview(piece)
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        raise NotWritten from error


def _length(file: BinaryIO) -> int:
    """Return the file's length, at which it then stands."""
    return file.seek(0, 2)
