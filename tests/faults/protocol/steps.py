"""The requests of a writer, for a fault to strike one of them."""

from __future__ import annotations

from collections.abc import Sequence

Step = tuple[str, str, Sequence[int]]
"""Operation, key, and which of them may be struck; none: one for each file."""
Steps = tuple[Step, ...]

COMPLETION: Step = ("CompleteMultipartUpload", "*", ())
STS_STEP: Step = ("AssumeRole", "*", (1,))

S3_STEPS: Steps = (
    ("GetObject", "*checkpoint.json", (1,)),
    ("ListObjectsV2", "*", (1,)),
    ("PutObject", "*/log/0*.json", (1,)),
    ("PutObject", "*.end", (1,)),
    ("PutObject", "*checkpoint.json", (1,)),
    ("CreateMultipartUpload", "*", ()),
    ("UploadPart", "*", ()),
    COMPLETION,
)
"""What every job sends; the first four also one without rows."""

MENDING_STEPS: Steps = (
    ("GetObject", "*/log/0*.json", (1, 2)),
    ("PutObject", "*.end", (2,)),
    ("ListObjectsV2", "*", (2, 3)),
    ("AbortMultipartUpload", "*", (1, 2, 3)),
    ("HeadObject", "*", (1, 2)),
    ("DeleteObject", "*", (1, 2)),
    ("PutObject", "*.clean", (1,)),
    ("GetObject", "*.end", (1,)),
)
"""What is only sent to mend what others left, or to give way."""

STAGING_STEPS: Steps = (
    ("CreateMultipartUpload", "*", ()),
    ("UploadPart", "*", ()),
    ("PutObject", "*/log/0*.json", (1,)),
)
"""Where a writer that stands still is in the way of those who clean up."""

PUBLISHING_STEPS: Steps = (
    ("PutObject", "*/log/0*.json", (1,)),
    COMPLETION,
    COMPLETION,
)
"""Where a writer dies that leaves uploads which must not be lost."""

GLUE_STEPS: Steps = (
    ("GetTable", "*", (1,)),
    ("GetTable", "*", (1,)),
    ("GetTable", "*", (2,)),
    ("BatchCreatePartition", "*", (1,)),
    ("BatchCreatePartition", "*", (1,)),
    ("BatchUpdatePartition", "*", (1,)),
    ("BatchUpdatePartition", "*", (1,)),
    ("UpdateTable", "*", (1,)),
    ("UpdateTable", "*", (1,)),
    ("CreateTable", "*", (1,)),
    ("GetDatabase", "*", (1,)),
    ("CreateDatabase", "*", (1,)),
    ("GetPartition", "*", (1,)),
    ("PutObject", "*.cat", (1,)),
)
"""What is sent most often is drawn most often; some only by a first load or with a new column
or field."""

STATUSES = ((500, "InternalError"), (503, "SlowDown"), (503, "ServiceUnavailable"))
