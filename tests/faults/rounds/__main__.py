"""`python -m tests.faults.rounds`."""

import sys

from tests.faults.rounds.campaign import main

sys.exit(main())
