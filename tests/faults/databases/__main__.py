"""`python -m tests.faults.databases`."""

import sys

from tests.faults.databases.campaign import main

sys.exit(main())
