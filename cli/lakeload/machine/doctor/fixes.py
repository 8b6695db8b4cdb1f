"""The commands that mend things, for each system. Pure; `machine.local.java` has Java's own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path


def export(name: str, value: str | Path) -> str:
    """Return the shell line that sets a variable."""
    return f"export {name}={shlex.quote(str(value))}"


def make_writable(folder: Path) -> str:
    """Return the line that makes a folder and gives it to this user."""
    quoted = shlex.quote(str(folder))
    return f'sudo mkdir -p {quoted} && sudo chown "$(id -u)" {quoted}'


def family(os_release: str) -> set[str]:
    """Return what /etc/os-release calls this system and those it is like."""
    values = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    return {values.get("ID", ""), *values.get("ID_LIKE", "").split()} - {""}


def set_clock(platform: str, os_release: str) -> str:
    """Return the command that sets this machine's clock by the network, once and from now on."""
    if platform == "darwin":
        return "sudo sntp -sS time.apple.com"
    names = family(os_release)
    if names & {"debian", "ubuntu"}:
        return "sudo apt-get install -y chrony && sudo chronyc makestep"
    if names & {"fedora", "rhel", "centos", "amzn"}:
        install = "sudo dnf install -y chrony && sudo systemctl enable --now chronyd"
        return f"{install} && sudo chronyc makestep"
    if "alpine" in names:
        return "apk add chrony && chronyd -q 'pool pool.ntp.org iburst'"
    return "sudo timedatectl set-ntp true"


def python_command(platform: str, os_release: str) -> str:
    """Return the command that installs a Python which lakeload runs on."""
    if platform == "darwin":
        return "brew install python@3.13"
    names = family(os_release)
    if names & {"debian", "ubuntu"}:
        return "sudo apt-get update && sudo apt-get install -y python3 python3-venv"
    if names & {"fedora", "rhel", "centos", "amzn"}:
        return "sudo dnf install -y python3.12"
    if "alpine" in names:
        return "apk add python3"
    return "install Python 3.11 to 3.14 from https://www.python.org/downloads/"


def install_bash(platform: str, os_release: str) -> str:
    """Return the command that installs bash, which Spark's scripts are written for."""
    if platform == "darwin":
        return "brew install bash"
    names = family(os_release)
    if "alpine" in names:
        return "apk add bash"
    if names & {"fedora", "rhel", "centos", "amzn"}:
        return "sudo dnf install -y bash"
    return "sudo apt-get update && sudo apt-get install -y bash"
