"""Jars are fetched when they are missing, and count only with the content that is pinned."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakeload.machine.jars import Jar, features_of, fetch, is_intact, pinned
from lakeload.machine.maven import REPOSITORY_VARIABLE
from lakeload_jobs.contract.errors import InvalidInput, MachineLacks
from lakeload_jobs.contract.spec import FilesInput

CONTENT = b"PK jar " * 1000
JAR = Jar("org.example", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest())


class Repository:
    """A Maven repository of one jar on a loopback port, which counts what it is asked for."""

    def __init__(self) -> None:
        self.content = {f"/maven/{JAR.path}": CONTENT}
        self.asked: list[str] = []
        self.users: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.users.append(self.headers.get("Authorization", ""))
                body = outer.content.get(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        port = self.server.server_port
        self.environment = {REPOSITORY_VARIABLE: f"http://127.0.0.1:{port}/maven/"}


@pytest.fixture
def repository() -> Iterator[Repository]:
    made = Repository()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_a_missing_jar_is_fetched_once(repository: Repository, tmp_path: Path) -> None:
    said: list[str] = []

    first = fetch([JAR], tmp_path / "jars", repository.environment, notify=said.append)
    again = fetch([JAR], tmp_path / "jars", repository.environment, notify=said.append)

    assert first == again == (tmp_path / "jars" / "thing-1.2.jar",)
    assert first[0].read_bytes() == CONTENT
    assert len(repository.asked) == len(said) == 1


def test_without_anything_missing_no_network_is_needed(tmp_path: Path) -> None:
    (tmp_path / JAR.file_name).write_bytes(CONTENT)
    nowhere = {REPOSITORY_VARIABLE: "http://127.0.0.1:9/maven"}

    assert fetch([JAR], tmp_path, nowhere) == (tmp_path / JAR.file_name,)


def test_a_damaged_jar_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / JAR.file_name).write_bytes(CONTENT[:-1])
    assert not is_intact(JAR, tmp_path)

    fetch([JAR], tmp_path, repository.environment)

    assert is_intact(JAR, tmp_path)


def test_other_content_than_the_pinned_is_refused(repository: Repository, tmp_path: Path) -> None:
    other = dataclasses.replace(JAR, sha256="0" * 64)

    with pytest.raises(MachineLacks, match=f"has the SHA-256 {JAR.sha256}"):
        fetch([other], tmp_path, repository.environment)

    assert list(tmp_path.iterdir()) == []


def test_a_jar_that_cannot_be_had_says_what_to_put_where(
    repository: Repository, tmp_path: Path
) -> None:
    missing = dataclasses.replace(JAR, version="9")
    with pytest.raises(MachineLacks, match=r"thing-9\.jar` failed: HTTP 404") as caught:
        fetch([missing], tmp_path, repository.environment)
    assert "put `thing-9.jar` (org.example:thing:9" in (caught.value.hint or "")
    assert str(tmp_path) in (caught.value.hint or "")

    with pytest.raises(MachineLacks, match="Connection refused") as caught:
        fetch([JAR], tmp_path, {REPOSITORY_VARIABLE: "http://me:canary@127.0.0.1:9/maven"})
    assert "canary" not in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_repository_may_ask_for_a_user(repository: Repository, tmp_path: Path) -> None:
    url = repository.environment[REPOSITORY_VARIABLE].replace("//", "//me:p%40ss@")

    fetch([JAR], tmp_path, {REPOSITORY_VARIABLE: url})

    assert repository.users == ["Basic " + b64encode(b"me:p@ss").decode()]


def test_several_at_once_leave_one_whole_file(repository: Repository, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fetch([JAR], tmp_path, repository.environment), range(8)))

    assert set(found) == {(tmp_path / JAR.file_name,)}
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [CONTENT]


def test_a_cache_that_cannot_be_written_to_is_named(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(MachineLacks, match=r"into `.*/cache/jars` failed") as caught:
        fetch([JAR], tmp_path / "cache" / "jars", repository.environment)

    assert "LAKELOAD_CACHE_DIR" in (caught.value.hint or "")


def test_a_repository_is_a_url(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=REPOSITORY_VARIABLE):
        fetch([JAR], tmp_path, {REPOSITORY_VARIABLE: "repo.example.com"})


def test_every_pinned_jar_has_coordinates_and_a_checksum() -> None:
    jars = pinned("s3", "avro")

    assert len({jar.file_name for jar in jars}) == len(jars) > 30
    for jar in jars:
        assert len(jar.sha256) == 64
        assert jar.path.endswith(f"/{jar.artifact}/{jar.version}/{jar.file_name}")


def test_jars_are_needed_for_s3_and_avro_alone() -> None:
    local = FilesInput("CSV", ("/data/*.csv",), {})
    s3 = FilesInput("CSV", ("/data/a.csv", "s3://bucket/b.csv"), {})
    avro = FilesInput("AVRO", ("/data/a.avro",), {})

    assert features_of([local]) == ()
    assert features_of([local, avro, s3, s3]) == ("avro", "s3")
