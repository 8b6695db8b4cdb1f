"""Where jars are fetched from when nobody says."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lakeload.machine.jars.download import Login
from lakeload.machine.jars.repository import (
    REPOSITORY_VARIABLE,
    choose_repository,
    read_settings,
    spark_repository,
)
from lakeload.machine.spark import find_spark
from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady

RESOLVER = "org/apache/ivy/plugins/resolver/IBiblioResolver.class"


def spark_with_ivy(home: Path, content: bytes) -> Path:
    (home / "jars").mkdir(parents=True)
    with zipfile.ZipFile(home / "jars" / "ivy-9.9.9.jar", "w") as jar:
        jar.writestr(RESOLVER, content)
    return home


def settings(home: Path, content: str) -> Path:
    """Write Maven's settings file below `home`."""
    path = home / ".m2" / "settings.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    namespace = "http://maven.apache.org/SETTINGS/1.2.0"
    path.write_text(f'<settings xmlns="{namespace}">{content}</settings>', encoding="utf-8")
    return path


def mirror(of: str, url: str = "https://nexus.example.com/maven/", name: str = "corp") -> str:
    return (
        f"<mirrors><mirror><id>{name}</id><url>{url}</url><mirrorOf>{of}</mirrorOf></mirror>"
        "</mirrors>"
    )


SERVER = (
    "<servers><server><id>corp</id><username>${env.NEXUS_USER}</username>"
    "<password>${env.NEXUS_PASSWORD}</password></server></servers>"
)


def test_the_order_is_option_pipeline_environment_mirror(tmp_path: Path) -> None:
    settings(tmp_path, mirror("*"))
    home = {"HOME": str(tmp_path)}
    variable = {**home, REPOSITORY_VARIABLE: "https://variable.example.com/maven/"}
    conf = "https://conf.example.com/maven,https://second.example.com"
    option = "https://option.example.com/maven"

    found = [
        choose_repository(variable, option=option, conf=conf),
        choose_repository(variable, conf=conf),
        choose_repository(variable),
        choose_repository(home),
    ]

    assert [repository.url for repository in found] == [
        "https://option.example.com/maven",
        "https://conf.example.com/maven",
        "https://variable.example.com/maven",
        "https://nexus.example.com/maven",
    ]
    assert [repository.named_by for repository in found] == [
        "--repository",
        "spark.jars.repositories",
        REPOSITORY_VARIABLE,
        f"the mirror `corp` of `{tmp_path}/.m2/settings.xml`",
    ]


@pytest.mark.parametrize(
    "given", ["user:canary@mirror", "ftp://me:canary@host/x", "https:///canary", "http://[canary"]
)
def test_a_setting_that_is_no_url_is_refused_without_being_shown(given: str) -> None:
    with pytest.raises(InvalidInput, match="not a URL") as caught:
        choose_repository({REPOSITORY_VARIABLE: given})
    assert "canary" not in str(caught.value) + (caught.value.hint or "")


def test_maven_repository_default_is_that_of_spark() -> None:
    found = choose_repository({}).url
    assert found == spark_repository(find_spark({}).home)
    assert found.startswith("https://")
    assert found.endswith("/maven2")


@pytest.mark.parametrize(
    ("of", "stands_in"),
    [
        ("central", True),
        ("*", True),
        ("external:*", True),
        ("snapshots,central", True),
        ("snapshots, external:*", True),
        ("*,!central", False),
        ("!central,*", False),
        ("*,central,!central", True),
        ("snapshots", False),
        ("external:http:*", False),
    ],
)
def test_maven_mirror_is_used_where_its_pattern_matches(
    tmp_path: Path, of: str, stands_in: bool
) -> None:
    settings(tmp_path, mirror(of))
    found = choose_repository({"HOME": str(tmp_path)})
    assert (found.url == "https://nexus.example.com/maven") is stands_in


def test_maven_mirror_by_id_overrides_an_earlier_pattern(tmp_path: Path) -> None:
    both = mirror("*").removesuffix("</mirrors>") + mirror(
        "central", "https://exact.example.com", "exact"
    ).removeprefix("<mirrors>")
    settings(tmp_path, both)
    assert choose_repository({"HOME": str(tmp_path)}).url == "https://exact.example.com"


def test_a_mirror_has_the_login_of_its_server_by_reference(tmp_path: Path) -> None:
    settings(tmp_path, SERVER + mirror("*", "https://${env.NEXUS_HOST}/maven"))
    environment = {
        "HOME": str(tmp_path),
        "NEXUS_HOST": "nexus.example.com",
        "NEXUS_USER": "me",
        "NEXUS_PASSWORD": "canary",
    }

    found = choose_repository(environment)

    assert found.url == "https://nexus.example.com/maven"
    assert found.login == Login("me", "canary")
    assert "canary" not in repr(found)
    del environment["NEXUS_PASSWORD"]
    with pytest.raises(InvalidInput, match="`NEXUS_PASSWORD`, which is not set"):
        choose_repository(environment)


def test_a_repository_that_is_named_has_the_login_of_the_mirror_with_its_url(
    tmp_path: Path,
) -> None:
    settings(tmp_path, SERVER + mirror("*"))
    environment = {"HOME": str(tmp_path), "NEXUS_USER": "me", "NEXUS_PASSWORD": "pw"}

    same = choose_repository(environment, option="https://nexus.example.com/maven")
    other = choose_repository(environment, option="https://nexus.example.com/other")

    assert (same.login, other.login) == (Login("me", "pw"), None)


def test_maven_login_in_an_option_must_be_a_reference() -> None:
    environment = {"REPO_USER": "me", "REPO_PASSWORD": "p%40ss"}
    found = choose_repository(
        environment, option="https://${REPO_USER}:${REPO_PASSWORD}@repo.example.com/maven"
    )
    assert (found.url, found.login) == ("https://repo.example.com/maven", Login("me", "p@ss"))

    with pytest.raises(InvalidInput, match="every user of this machine can read") as caught:
        choose_repository({}, option="https://me:canary@repo.example.com/maven")
    assert "canary" not in str(caught.value) + (caught.value.hint or "")
    with pytest.raises(InvalidInput, match="`REPO_USER` is not set"):
        choose_repository({}, option="https://${REPO_USER}@repo.example.com/maven")


def test_a_password_that_maven_encrypted_is_no_login(tmp_path: Path) -> None:
    server = "<servers><server><id>corp</id><password>{canary=}</password></server></servers>"
    settings(tmp_path, server + mirror("*"))
    with pytest.raises(InvalidInput, match=r"`corp` in .* is encrypted by Maven") as caught:
        choose_repository({"HOME": str(tmp_path)})
    assert "canary" not in str(caught.value) + (caught.value.hint or "")


def test_maven_mirror_that_blocks_is_respected(tmp_path: Path) -> None:
    settings(tmp_path, mirror("*").replace("</mirror>", "<blocked>true</blocked></mirror>", 1))
    with pytest.raises(MachineNotReady, match=r"`corp` of .* blocks"):
        choose_repository({"HOME": str(tmp_path)})


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = settings(tmp_path, "<mirrors>")
    with pytest.raises(InvalidInput, match=f"`{path}` cannot be read"):
        choose_repository({"HOME": str(tmp_path)})


def test_settings_may_move_the_local_repository(tmp_path: Path) -> None:
    settings(tmp_path, "<localRepository>${user.home}/jars</localRepository>")
    found = read_settings({"HOME": str(tmp_path)})
    assert found.local_repository == tmp_path / "jars"


def test_a_spark_built_for_another_repository_brings_it_along(tmp_path: Path) -> None:
    constants = b"\x01\x00\x22https://jars.example.com/maven2/\x01\x00\x05other"
    assert (
        spark_repository(spark_with_ivy(tmp_path, constants)) == "https://jars.example.com/maven2"
    )


def test_spark_without_a_repository_requires_the_setting(tmp_path: Path) -> None:
    with pytest.raises(MachineNotReady, match="does not name a Maven repository") as caught:
        spark_repository(spark_with_ivy(tmp_path, b"nothing"))
    assert REPOSITORY_VARIABLE in (caught.value.hint or "")
