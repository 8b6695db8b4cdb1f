"""A port belongs to one process, whether or not something listens there already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.servers.free_ports import free_ports

_ASK = """\
import sys
from tests.servers import free_ports
free_ports._FIRST = int(sys.argv[1])
free_ports._LAST = free_ports._FIRST + 1
print(free_ports.free_ports(1))
"""


def _ask_for(port: int) -> subprocess.CompletedProcess[str]:
    """Ask for this port in a process of another run."""
    command = [sys.executable, "-c", _ASK, str(port)]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_port_of_a_process_is_not_given_to_another_one() -> None:
    (port,) = free_ports(1)
    assert "no 1 free ports were found" in _ask_for(port).stderr


def test_port_of_an_ended_process_is_free_again() -> None:
    (port,) = free_ports(1)
    others = (other for other in range(port + 1, port + 50) if _ask_for(other).returncode == 0)
    assert _ask_for(next(others)).returncode == 0


def test_ports_with_grpc_stay_below_those_of_outgoing_connections() -> None:
    assert max(free_ports(6, with_grpc=True)) + 10_000 < 32_768
