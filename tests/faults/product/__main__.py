"""`python -m tests.faults.product`."""

import sys

from tests.faults.product.campaign import main

sys.exit(main())
