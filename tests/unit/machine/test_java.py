"""Finding Java without starting it, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.machine.java import find_java, install_command, read_java
from lakeload_jobs.contract.errors import MachineNotReady

DEBIAN = 'ID=debian\nVERSION_ID="{}"\n'


def java(home: Path, version: str | None, says: str = "") -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    if version:
        (home / "release").write_text(f'IMPLEMENTOR="Acme"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    chosen = java(tmp_path / "chosen", "21.0.2")
    other = java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}, ())
    assert (found.home, found.version, found.vendor) == (chosen, "21.0.2", "Acme")


def test_an_unusable_java_home_is_passed_over_for_the_path(tmp_path: Path) -> None:
    old = java(tmp_path / "old", "1.8.0_412")
    good = java(tmp_path / "good", "17.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")}, ())
    assert found.home == good


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = java(tmp_path / "jvm", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, ()).home == home


def test_java_in_usual_places_is_found_last(tmp_path: Path) -> None:
    java(tmp_path / "jvm" / "java-11", "11.0.9")
    good = java(tmp_path / "jvm" / "java-17", "17.0.9")
    assert find_java({"PATH": ""}, (f"{tmp_path}/jvm/*",)).home == good


def test_java_home_without_a_release_file_is_run_for_its_version(tmp_path: Path) -> None:
    found = read_java(java(tmp_path / "jre", None, says='openjdk version "17.0.4" 2022-07-19'))
    assert found is not None
    assert found.major == 17


def test_program_without_a_version_is_not_java(tmp_path: Path) -> None:
    assert read_java(java(tmp_path / "stub", None, says="Unable to locate a Java Runtime")) is None


def test_without_any_java_the_message_is_the_command_to_install_it() -> None:
    with pytest.raises(MachineNotReady) as lacks:
        find_java({"PATH": ""}, ())
    assert "no Java was found" in lacks.value.message
    assert lacks.value.hint


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.20", "24", "25.0.3"])
def test_too_old_and_too_new_are_named(tmp_path: Path, version: str) -> None:
    home = java(tmp_path / "jvm", version)
    with pytest.raises(MachineNotReady) as lacks:
        find_java({"JAVA_HOME": str(home), "PATH": ""}, ())
    assert f"Java {version} in `{home}`" in lacks.value.message


@pytest.mark.parametrize(
    ("platform", "os_release", "words"),
    [
        ("linux", DEBIAN.format(12), "apt-get install -y openjdk-17-jre-headless"),
        ("linux", DEBIAN.format(13), "apt-get install -y openjdk-21-jre-headless"),
        ("linux", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "openjdk-17-jre-headless"),
        ("linux", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', "openjdk-17-jre-headless"),
        ("linux", 'ID="amzn"\nID_LIKE="fedora"\n', "java-21-amazon-corretto-headless"),
        ("linux", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "java-21-openjdk-headless"),
        ("linux", "ID=alpine\n", "apk add bash openjdk17-jre-headless"),
        ("linux", "ID=arch\n", "jre17-openjdk-headless"),
        ("linux", 'ID=opensuse-leap\nID_LIKE="suse opensuse"\n', "zypper"),
        ("darwin", "", "brew install openjdk@17"),
        ("linux", "", "https://adoptium.net"),
    ],
)
def test_java_install_command_matches_the_system(
    platform: str, os_release: str, words: str
) -> None:
    assert words in install_command(platform, os_release)
