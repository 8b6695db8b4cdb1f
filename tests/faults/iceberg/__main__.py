"""`python -m tests.faults.iceberg`."""

import sys

from tests.faults.iceberg.campaign import main

sys.exit(main())
