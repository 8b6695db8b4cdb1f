"""What a fetch that failed says: what was asked of whom, what came back, and the ways out."""

from __future__ import annotations

import ssl
import urllib.error
from pathlib import Path

from lakeload.machine.jars.download import proxy_of
from lakeload.machine.jars.pins import Jar
from lakeload.machine.jars.repository import REPOSITORY_VARIABLE, Repository
from lakeload_jobs.contract.errors import MachineLacks


def unreachable(
    error: Exception, url: str, repository: Repository, jar: Jar, folder: Path
) -> MachineLacks:
    """Say what a repository, or the way to it, answered."""
    proxy = proxy_of(url)
    through = f" through the proxy `{proxy}`" if proxy else ""
    what = f"fetching `{url}`{through} failed: {_reason(error)}"
    code = error.code if isinstance(error, urllib.error.HTTPError) else 0
    if code in (401, 403, 407):
        login = "its login was refused" if repository.login else "it may want a login"
        hint = (
            f"the repository is named by {repository.named_by}, and {login}: give one in the URL "
            f"of {REPOSITORY_VARIABLE} or as a <server> of Maven's settings.xml"
        )
        return MachineLacks(what, hint=f"{hint}. {ways_out(jar, folder)}")
    if code == 404:
        hint = f"is {repository.named_by} the base URL of a repository that has {jar.coordinates}? "
        return MachineLacks(what, hint=hint + ways_out(jar, folder))
    return MachineLacks(what, hint=ways_out(jar, folder, proxy=proxy))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, OSError):
        return reason.strerror or str(reason) or type(reason).__name__
    return str(reason) or type(reason).__name__


def ways_out(jar: Jar, folder: Path, *, proxy: str | None = None) -> str:
    """The three ways to have a jar after all."""
    network = "check the proxy" if proxy else "set HTTPS_PROXY where a proxy is needed"
    return (
        f"1. {network}; 2. name another repository in {REPOSITORY_VARIABLE} or as a mirror in "
        f"Maven's settings.xml; 3. bring `{jar.file_name}` ({jar.coordinates}) and the others it "
        f"goes with from a machine that has them, with `lakeload jars fetch --from DIR`, or put "
        f"them into `{folder}`"
    )
