"""The control groups this process is in: a limit of any of them, or of one above, holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Group:
    """The folder of a group. `unified`: of version 2, with one hierarchy for all controllers."""

    folder: Path
    unified: bool


def groups_of(controller: str, cgroups: Path, proc: Path) -> list[Group]:
    """Return the groups that limit this process by `controller` (`memory`, `cpu`), up to the root.

    Inside a container the path may not exist below the mount; the root's files then hold the
    limits. Where there are no groups, none.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    groups = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        unified = controllers == ""
        if unified or controller in controllers.split(","):
            root = cgroups if unified else cgroups / controller
            parts = [part for part in path.split("/") if part]
            groups += [
                Group(root.joinpath(*parts[:depth]), unified) for depth in range(len(parts), -1, -1)
            ]
    return groups
