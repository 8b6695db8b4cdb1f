"""Jars are fetched when they are missing, go on where they broke off, and count when they fit."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakeload.machine.cache import DAYS
from lakeload.machine.jars.fetch import Listener, Origin, fetch
from lakeload.machine.jars.pins import Jar, is_intact, pinned
from lakeload.machine.jars.repository import REPOSITORY_VARIABLE
from lakeload_jobs.contract.errors import LakeloadError, MachineNotReady
from tests.servers.maven_repository import MavenRepository, serving

CONTENT = bytes(range(256)) * 2000
JAR = Jar("org.example", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
NOWHERE = {REPOSITORY_VARIABLE: "http://127.0.0.1:9/maven"}
NO_PAUSE = (0.0, 0.0, 0.0)


UNHEARD = Listener()


class Heard(Listener):
    """A listener that remembers."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, ...]] = []
        self.bytes: list[int] = []
        self.ended: list[str] = []
        self.said: list[str] = []

    def begin(self, jars: Sequence[Jar], where: str) -> None:
        self.begun.append((where, *(jar.file_name for jar in jars)))

    def at(self, jar: Jar, done: int) -> None:
        self.bytes.append(done)

    def end(self, jar: Jar, how: str) -> None:
        self.ended.append(how)

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def repository(maven_repository: MavenRepository) -> MavenRepository:
    maven_repository.content[JAR.path] = CONTENT
    return maven_repository


def get(repository: MavenRepository, folder: Path, heard: Listener = UNHEARD) -> tuple[Path, ...]:
    environment = {REPOSITORY_VARIABLE: repository.url}
    return fetch([JAR], folder, environment, listener=heard, pauses=NO_PAUSE)


def refused(repository: MavenRepository, folder: Path) -> LakeloadError:
    with pytest.raises(LakeloadError) as caught:
        get(repository, folder)
    return caught.value


def test_a_missing_jar_is_fetched_once(repository: MavenRepository, tmp_path: Path) -> None:
    heard = Heard()

    first = get(repository, tmp_path / "jars", heard)
    again = get(repository, tmp_path / "jars", heard)

    assert first == again == (tmp_path / "jars" / "thing-1.2.jar",)
    assert first[0].read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["thing-1.2.jar"]
    assert repository.paths() == [f"/maven/{JAR.path}"]
    assert heard.begun == [(repository.url, "thing-1.2.jar")]
    assert heard.bytes[-1] == len(CONTENT)
    assert heard.bytes == sorted(heard.bytes)
    assert heard.ended == ["downloaded"]


def test_fetch_removes_unused_jars_of_other_versions(
    repository: MavenRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Jar("org.example", "thing", "1.1", "", 0)
    pinned_here = pinned("avro")[0]
    for jar in (other, pinned_here):
        (tmp_path / jar.file_name).write_text("old")
        os.utime(tmp_path / jar.file_name, (0, 0))
    heard = Heard()
    get(repository, tmp_path, heard)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {JAR.file_name, pinned_here.file_name}
    assert heard.said == [f"`thing-1.1.jar` was not used for {DAYS} days: removed"]
    marked: list[Path] = []
    monkeypatch.setattr("lakeload.machine.jars.fetch.mark_used", marked.append)
    assert get(repository, tmp_path) == tuple(marked)


def test_fetch_with_a_complete_cache_sends_no_request(tmp_path: Path) -> None:
    (tmp_path / JAR.file_name).write_bytes(CONTENT)

    assert fetch([JAR], tmp_path, NOWHERE) == (tmp_path / JAR.file_name,)


def test_fetch_resumes_a_broken_download(repository: MavenRepository, tmp_path: Path) -> None:
    repository.break_off = [100_000, 50_000, 0]

    get(repository, tmp_path)

    assert is_intact(JAR, tmp_path)
    assert [request.range for request in repository.asked] == [
        "",
        "bytes=100000-",
        "bytes=150000-",
        "bytes=150000-",
    ]
    assert sum(request.sent for request in repository.asked) == len(CONTENT)


def test_fetch_resumes_a_partial_file_of_an_earlier_run(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.break_off = [300_000] + [0] * 9
    assert "ended after 300,000 of 512,000 bytes" in refused(repository, tmp_path).message
    repository.break_off.clear()
    repository.asked.clear()

    get(repository, tmp_path)

    assert is_intact(JAR, tmp_path)
    assert [(request.range, request.sent) for request in repository.asked] == [
        ("bytes=300000-", 212_000)
    ]


def test_a_repository_without_ranges_is_read_from_the_start(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.ranges = False
    repository.break_off = [100_000]

    get(repository, tmp_path)

    assert is_intact(JAR, tmp_path)


def test_fetch_resumes_a_body_of_unknown_length(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.announces_length = False
    repository.break_off = [100_000]

    get(repository, tmp_path)

    assert is_intact(JAR, tmp_path)


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_fetch_discards_a_partial_file_of_other_content(
    repository: MavenRepository, tmp_path: Path, left: bytes
) -> None:
    (tmp_path / f".{JAR.file_name}.part").write_bytes(left)

    get(repository, tmp_path)

    assert is_intact(JAR, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [JAR.file_name]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_fetch_retries_a_busy_repository(
    repository: MavenRepository, tmp_path: Path, status: int
) -> None:
    repository.statuses = [status, status]
    get(repository, tmp_path)
    assert is_intact(JAR, tmp_path)

    (tmp_path / JAR.file_name).unlink()
    repository.asked.clear()
    repository.statuses = [status] * 9
    assert f"HTTP {status}" in refused(repository, tmp_path).message
    assert len(repository.asked) == 1 + len(NO_PAUSE)


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "it may need a login"), (403, "it may need a login"), (404, "org.example:thing:1.2")],
)
def test_fetch_denied_is_not_retried_and_has_a_hint(
    repository: MavenRepository, tmp_path: Path, status: int, advice: str
) -> None:
    repository.statuses = [status] * 9

    error = refused(repository, tmp_path)

    assert isinstance(error, MachineNotReady)
    assert f"fetching `{repository.url}/{JAR.path}` failed: HTTP {status}" in error.message
    hint = error.hint or ""
    assert advice in hint
    assert REPOSITORY_VARIABLE in hint
    assert "settings.xml" in hint
    assert "--from DIR" in hint
    assert str(tmp_path) in hint
    assert len(repository.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_fetch_with_a_wrong_checksum_is_rejected_and_kept_aside(
    repository: MavenRepository, tmp_path: Path
) -> None:
    page = b"<html>please log in</html>"
    repository.content[JAR.path] = page

    error = refused(repository, tmp_path)

    assert f"has the SHA-256 {hashlib.sha256(page).hexdigest()}" in error.message
    assert JAR.sha256 in error.message
    aside = tmp_path / f"{JAR.file_name}.broken"
    assert str(aside) in (error.hint or "")
    assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == [(aside, page)]


def test_fetch_restarts_where_the_repository_has_fewer_bytes(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.content[JAR.path] = b"short"
    (tmp_path / f".{JAR.file_name}.part").write_bytes(b"x" * 1000)

    error = refused(repository, tmp_path)

    assert f"has the SHA-256 {hashlib.sha256(b'short').hexdigest()}" in error.message


def test_fetch_gives_up_after_repeated_range_failures(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.break_off = [1000] * 20
    repository.statuses = [0, 416] * 10

    assert "HTTP 416" in refused(repository, tmp_path).message
    assert len(repository.asked) == 4


def test_fetch_stops_at_the_pinned_size(repository: MavenRepository, tmp_path: Path) -> None:
    repository.content[JAR.path] = b"x" * (64 << 20)

    assert "has the SHA-256" in refused(repository, tmp_path).message

    assert (tmp_path / f"{JAR.file_name}.broken").stat().st_size < 2 * len(CONTENT)


def test_fetch_replaces_a_broken_jar_and_keeps_it_aside(
    repository: MavenRepository, tmp_path: Path
) -> None:
    (tmp_path / JAR.file_name).write_bytes(b"broken")
    heard = Heard()

    get(repository, tmp_path, heard)

    assert is_intact(JAR, tmp_path)
    assert (tmp_path / f"{JAR.file_name}.broken").read_bytes() == b"broken"
    (said,) = heard.said
    assert hashlib.sha256(b"broken").hexdigest() in said
    assert JAR.sha256 in said


def test_fetch_without_a_replacement_keeps_a_broken_jar(tmp_path: Path) -> None:
    (tmp_path / JAR.file_name).write_bytes(b"broken")
    with pytest.raises(MachineNotReady):
        fetch([JAR], tmp_path, NOWHERE)
    assert [path.name for path in tmp_path.iterdir()] == [JAR.file_name]


def test_the_login_of_a_url_is_sent_and_shown_nowhere(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.login = "Basic " + b64encode(b"me:p@canary").decode()
    url = repository.url.replace("//", "//me:p%40canary@")
    heard = Heard()
    fetch([JAR], tmp_path, {REPOSITORY_VARIABLE: url}, listener=heard)
    assert is_intact(JAR, tmp_path)
    assert "canary" not in repr([*heard.begun, tuple(heard.said + heard.ended)])

    other = dataclasses.replace(JAR, version="9")
    with pytest.raises(MachineNotReady) as caught:
        fetch([other], tmp_path, {REPOSITORY_VARIABLE: url.replace("canary", "canary2")})
    assert "its login was rejected" in (caught.value.hint or "")
    assert "canary" not in caught.value.message + (caught.value.hint or "")


def test_redirect_to_another_host_drops_the_login(
    repository: MavenRepository, tmp_path: Path
) -> None:
    with serving(MavenRepository(redirect_to=repository.url.removesuffix("/maven"))) as first:
        environment = {REPOSITORY_VARIABLE: first.url.replace("//", "//me:secret@")}
        fetch([JAR], tmp_path, environment)

    assert is_intact(JAR, tmp_path)
    assert [request.login for request in repository.asked] == [""]
    assert first.asked[0].login.startswith("Basic ")


def test_a_redirect_within_one_host_keeps_the_login(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.login = "Basic " + b64encode(b"me:secret").decode()
    repository.content[f"mirror/maven/{JAR.path}"] = CONTENT
    # The first request is sent to another path of the same server, which is then asked.
    repository.redirect_to = f"{repository.url}/mirror"
    follow = repository.url.replace("//", "//me:secret@")

    class Once(list[object]):
        def append(self, item: object) -> None:
            super().append(item)
            if len(self) == 2:
                repository.redirect_to = ""

    repository.asked = Once()  # type: ignore[assignment]
    fetch([JAR], tmp_path, {REPOSITORY_VARIABLE: follow})

    assert is_intact(JAR, tmp_path)
    assert {request.login for request in repository.asked} == {repository.login}


def test_fetch_without_a_network_names_host_proxy_and_alternatives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MachineNotReady, match="Connection refused") as caught:
        fetch([JAR], tmp_path, NOWHERE)
    assert f"fetching `http://127.0.0.1:9/maven/{JAR.path}`" in caught.value.message
    for way in ("1. set HTTPS_PROXY", f"2. name another repository in {REPOSITORY_VARIABLE}", "3."):
        assert way in (caught.value.hint or "")

    monkeypatch.setenv("http_proxy", "http://me:canary@127.0.0.1:10")
    with pytest.raises(MachineNotReady) as caught:
        fetch([JAR], tmp_path, {REPOSITORY_VARIABLE: "http://repo.example.com/maven"})
    assert "through the proxy `http://127.0.0.1:10` failed" in caught.value.message
    assert "canary" not in caught.value.message
    assert "check the proxy" in (caught.value.hint or "")


def test_fetch_stops_at_the_first_unavailable_jar(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.seconds_a_chunk = 0.05
    missing = dataclasses.replace(JAR, artifact="other")

    with pytest.raises(MachineNotReady, match=r"other-1\.2\.jar` failed: HTTP 404"):
        fetch([JAR, missing], tmp_path, {REPOSITORY_VARIABLE: repository.url}, pauses=NO_PAUSE)

    assert (tmp_path / f".{JAR.file_name}.part").stat().st_size < len(CONTENT)


@pytest.mark.parametrize("place", [JAR.path, JAR.file_name, f"jars/{JAR.file_name}"])
def test_fetch_from_a_local_folder_succeeds(tmp_path: Path, place: str) -> None:
    brought = tmp_path / "brought" / place
    brought.parent.mkdir(parents=True)
    brought.write_bytes(CONTENT)
    heard = Heard()

    origin = Origin(folder=tmp_path / "brought")
    fetch([JAR], tmp_path / "jars", NOWHERE, origin=origin, listener=heard)

    assert is_intact(JAR, tmp_path / "jars")
    assert heard.ended[0].startswith("copied from")


def test_fetch_from_a_folder_without_the_jar_fails_with_its_name(tmp_path: Path) -> None:
    origin = Origin(folder=tmp_path / "brought")
    with pytest.raises(MachineNotReady, match=r"is not in `.*brought`"):
        fetch([JAR], tmp_path / "jars", {}, origin=origin)

    (tmp_path / "brought").mkdir()
    (tmp_path / "brought" / JAR.file_name).write_bytes(b"other")
    with pytest.raises(MachineNotReady, match=f"and {JAR.sha256} is expected"):
        fetch([JAR], tmp_path / "jars", {}, origin=origin)
    assert (tmp_path / "brought" / JAR.file_name).read_bytes() == b"other"


def test_a_file_repository_is_read_like_any_other(tmp_path: Path) -> None:
    jar = tmp_path / "a repo" / JAR.path
    jar.parent.mkdir(parents=True)
    jar.write_bytes(CONTENT)

    fetch([JAR], tmp_path / "jars", {REPOSITORY_VARIABLE: (tmp_path / "a repo").as_uri()})

    assert is_intact(JAR, tmp_path / "jars")


@pytest.mark.parametrize(("content", "asked"), [(CONTENT, 0), (b"x" * len(CONTENT), 1)])
def test_fetch_uses_the_maven_cache_if_the_checksum_matches(
    repository: MavenRepository, tmp_path: Path, content: bytes, asked: int
) -> None:
    local = tmp_path / "home" / ".m2" / "repository" / JAR.path
    local.parent.mkdir(parents=True)
    local.write_bytes(content)

    environment = {REPOSITORY_VARIABLE: repository.url, "HOME": str(tmp_path / "home")}
    fetch([JAR], tmp_path / "jars", environment)

    assert is_intact(JAR, tmp_path / "jars")
    assert len(repository.asked) == asked
    assert local.read_bytes() == content


def test_a_cache_that_cannot_be_written_to_is_named(
    repository: MavenRepository, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file")

    error = refused(repository, tmp_path / "cache" / "jars")

    assert f"into `{tmp_path}/cache/jars` failed" in error.message
    assert "LAKELOAD_CACHE_DIR" in (error.hint or "")
