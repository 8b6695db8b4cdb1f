"""The connection test as text: what can be pasted stays whole, everything else fits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakeload.checks import CheckStatus
from lakeload.probes.runner import (
    ConnectionVerdict,
    Failure,
    Permission,
    Probe,
    ProbeResult,
)
from lakeload.ui import checks as check_text
from lakeload.ui import console
from lakeload_jobs.contract.spec import DestinationSpec

STATEMENT = {
    "Sid": "ListObjects",
    "Effect": "Allow",
    "Action": "s3:ListBucket",
    "Resource": ["arn:aws:s3:::lake", "arn:aws:s3:::other"],
    "Condition": {"StringLike": {"s3:prefix": "shop/*"}},
}
FAILURE = Failure(
    message="listing `s3://lake/shop/`: access denied (`AccessDenied`, HTTP 403): " + "why " * 30,
    code="AccessDenied",
    status=403,
    request_id="ABC",
    causes=("no policy allows it, " * 6, "another cause"),
    hint="allow it, " * 12,
    statement=STATEMENT,
)


def _result(failure: Failure | None) -> ProbeResult:
    probe = Probe(
        name="list",
        proves="objects can be listed, " * 5,
        action="s3:ListBucket",
        resource="arn:aws:s3:::l",
        run=lambda: "",
        explain=lambda error: (),
        also=(Permission("kms:Decrypt", "arn:aws:kms:us-east-1:123456789012:key/1"),),
    )
    return ProbeResult(
        probe, CheckStatus.FAILED if failure else CheckStatus.PASSED, 12, "", failure
    )


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    console.configure()  # a command that ran before may have left its own
    monkeypatch.setattr(console.out, "_width", 80)
    monkeypatch.setattr(console.out, "_height", 25)


@pytest.mark.parametrize("statement", [STATEMENT, {"Sid": "A", "Action": "s3:GetObject"}])
def test_a_statement_can_be_pasted_as_it_is_shown(statement: dict[str, object]) -> None:
    assert json.loads("\n".join(check_text.statement_lines(statement))) == statement


def test_failure_text_fits_and_is_complete() -> None:
    told = check_text.paragraph(_result(FAILURE), FAILURE).plain
    assert max(len(line) for line in told.splitlines()) <= 80
    for part in ("✗ list: listing", "request id: ABC", "IAM action: s3:ListBucket", "2. another"):
        assert part in told
    assert "also: kms:Decrypt on" in told


def test_a_line_for_a_pipe_begins_with_status_and_name_and_fits() -> None:
    first, *rest = check_text.line(_result(None), 8).splitlines()
    assert first.startswith("passed   list     objects can be listed,")
    assert rest[-1].endswith("12 ms")
    assert max(len(one) for one in (first, *rest)) <= 80


def test_leftovers_are_part_of_the_quiet_line() -> None:
    verdict = ConnectionVerdict((_result(FAILURE),), 1.0, ("s3://lake/_lakeload/probe/x",))
    destination = DestinationSpec("lake", "us-east-1", "shop")
    told = check_text.conclusion(verdict, destination, one_line=True).plain
    assert told == (
        "connection failed at list (AccessDenied); s3://lake/shop: 1 failed in 1.0 s; "
        "left behind: s3://lake/_lakeload/probe/x"
    )


def test_skipped_checks_are_one_line_after_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = _result(FAILURE)
    blocked = [
        replace(
            _result(None),
            probe=replace(failed.probe, name=f"check-{number}"),
            status=CheckStatus.SKIPPED,
            detail="needs `list`",
            blocked_by="list",
        )
        for number in range(25)
    ]
    with check_text.ChecksView([failed.probe, *(one.probe for one in blocked)]) as view:
        for result in (failed, *blocked):
            view.add(result)
    shown = capsys.readouterr().out.splitlines()

    assert shown[0].startswith("failed   list ")
    about = [line for line in shown if line.startswith("skipped")]
    assert about[0].startswith("skipped  25 checks were skipped, because of the failures: check-0,")
    assert len(about) == 1
    assert len(shown) < 10
