"""`lakeload maintain --register-glue-optimizers`: AWS Glue does the work from then on."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.maintain import MaintainSpec

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument
    from lakeload.launch.maintain import Maintained
    from lakeload_jobs.contract.spec import TableSpec

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/.+", re.ASCII)
_DAY = 24 * 3600


def register(
    document: PipelineDocument, tables: Sequence[TableSpec], role: str | None, wanted: MaintainSpec
) -> Maintained:
    """Register the optimizers, or without `apply` say which. Raises `InvalidInput`, `AwsError`."""
    if role is None or not _ROLE.fullmatch(role):
        given = f"`--optimizer-role {role}` is no ARN of a role" if role else "there is no role"
        raise InvalidInput(
            f"`--register-glue-optimizers`: {given}, and Glue acts in one of your own",
            hint="give `--optimizer-role arn:aws:iam::ACCOUNT:role/NAME`: one that "
            "glue.amazonaws.com may assume and that may read and write the tables",
        )
    from lakeload.documents.spec import destination_spec
    from lakeload.formats.iceberg.glue_optimizers import register_optimizers
    from lakeload.formats.tables import open_session
    from lakeload.launch.maintain import maintained
    from lakeload_jobs.formats.iceberg.glue_optimizers import (
        ORPHAN_DAYS,
        SNAPSHOT_DAYS,
        GlueOptimizers,
        OptimizerSettings,
    )

    destination = destination_spec(document.destination)
    age = wanted.older_than
    settings = OptimizerSettings(
        role,
        snapshot_days=SNAPSHOT_DAYS if age is None else max(1, math.ceil(age / _DAY)),
        retain_last=wanted.retain_last or 1,
        orphan_days=max(ORPHAN_DAYS, math.ceil(wanted.orphans_older_than / _DAY)),
    )
    glue = GlueOptimizers(open_session(destination, "maintain"), destination)
    return maintained(register_optimizers(glue, tables, settings, apply=wanted.apply))
