"""The AppCDS archive that is built after a load."""

from __future__ import annotations

import pytest

from lakeload.commands import appcds_archive


def test_ctrl_c_during_the_build_leaves_the_outcome_of_the_load_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(appcds_archive, "build_archive", stopped)

    appcds_archive.build_after_load(("iceberg",))

    assert capsys.readouterr().err == ("no AppCDS archive: stopped; the load is not affected\n")
