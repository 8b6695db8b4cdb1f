"""A cluster of Spark's own: `spark://HOST:PORT`."""

from __future__ import annotations

import re

from lakeload.runtimes.base import Runtime
from lakeload_jobs.contract.spec import RuntimeSpec

STANDALONE = Runtime(
    masters=re.compile(r"spark://[^\s/:@]+:\d{1,5}(,[^\s/:@]+:\d{1,5})*"),
    beginning="spark:",
    written="spark://HOST:PORT",
    traits=RuntimeSpec(tasks_share_driver=False),
)
