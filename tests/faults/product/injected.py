"""Requests that fail, hang or lose their answers, once or twice, while several tables load."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.faults.product.case import JOB, Case
from tests.faults.product.syncs import Told, run_untroubled
from tests.faults.product.world import World
from tests.servers.fault_proxy import (
    Action,
    answer,
    delay,
    drop_answer,
    drop_request,
    truncate,
)

AT_ONCE = 10
"""Faults, each with a table of its own, in one sync."""

_ACTIONS: dict[str, Action] = {
    "500": answer(500, "InternalError"),
    "503": answer(503, "ServiceUnavailable"),
    "slow-down": answer(503, "SlowDown"),
    "lost-answer": drop_answer,
    "lost-request": drop_request,
    "delay": delay(3),
    "truncated": truncate(20),
}
_CHECKPOINT = "*/log/checkpoint.json"
_REQUESTS = (
    ("GetObject", _CHECKPOINT),
    ("ListObjectsV2", "*"),
    ("CreateMultipartUpload", "*"),
    ("UploadPart", "*"),
    ("PutObject", "*/log/0*.json"),
    ("CompleteMultipartUpload", "*"),
    ("PutObject", "*/log/*.end"),
    ("PutObject", _CHECKPOINT),
)
_GLUE_REQUESTS = (
    ("GetTable", "*"),
    ("CreateTable", "*"),
    ("BatchCreatePartition", "*"),
    ("PutObject", "*/log/*.cat"),
)
_GLUE_ACTIONS: dict[str, Action] = {
    "500": answer(500, "InternalServiceException"),
    "throttled": answer(400, "ThrottlingException"),
    "lost-answer": drop_answer,
    "lost-request": drop_request,
}
Fault = tuple[str, str, str, Action]
"""Name, operation, key, action."""


def injected_faults(world: World, count: int) -> list[Case]:
    """Return syncs of ten tables that hold `count` different faults between them."""
    faults = _drawn(world, count)
    groups: list[list[Fault]] = [[] for _ in range(0, len(faults), AT_ONCE)]
    # Those of STS concern a whole sync: two of them would be more than its retries are for.
    for number, fault in enumerate(sorted(faults, key=lambda fault: fault[1] != "AssumeRole")):
        groups[number % len(groups)].append(fault)
    return [_case(number, group) for number, group in enumerate(groups)]


def _drawn(world: World, count: int) -> list[Fault]:
    """Draw from every (request, fault), those of STS and Glue always among them."""
    requests = list(_REQUESTS)
    always: list[Fault] = [
        (f"sts-{name}", "AssumeRole", "*", _ACTIONS[name])
        for name in ("500", "503", "lost-answer", "truncated")
    ]
    if world.glue:
        always += [
            (f"{operation}-{name}", operation, key, action)
            for (operation, key), (name, action) in product(_GLUE_REQUESTS, _GLUE_ACTIONS.items())
        ]
    drawn: list[Fault] = [
        (f"{operation}-{name}", operation, key, action)
        for (operation, key), (name, action) in product(requests, _ACTIONS.items())
    ]
    world.random.shuffle(drawn)
    found = (always + drawn)[:count]
    world.random.shuffle(found)
    return found


def _case(number: int, faults: Sequence[Fault]) -> Case:
    tables = tuple(f"injected_{number:02d}_{table}" for table in range(len(faults)))

    def trouble(world: World, case: Case) -> list[Told]:
        folder = world.write(case.name, case.tables)
        rules = []
        for table, (_, operation, key, action) in zip(case.tables, faults, strict=True):
            times = world.random.randint(1, 2)
            whole = operation == "AssumeRole"
            about = () if whole else (table,)
            rules.append(world.on(operation, action, tables=about, key=key, times=times))
        told = run_untroubled(world, folder, JOB)
        world.off(*rules)
        for table, (name, _, key, _), rule in zip(case.tables, faults, rules, strict=True):
            status = told.tables.get(table, {}).get("status")
            # One or two faults are what retries are for.
            if status != "LOADED":
                error = told.tables.get(table, {}).get("error") or told.document.get("error")
                case.findings.problems.append(f"{table}: {name} of {key} made it {status}: {error}")
            if not rule.hits:
                case.findings.problems.append(f"{table}: {name} of {key} never came")
        return [told]

    # The first load of a table writes no checkpoint.
    before = tuple(
        table
        for table, (_, operation, key, _) in zip(tables, faults, strict=True)
        if (operation, key) == ("PutObject", _CHECKPOINT)
    )
    name = f"injected-{number:02d}"
    return Case("fault injected", name, tables, trouble, len(faults), before=before)
