"""`python -m bench.iceberg`."""

import sys

from bench.iceberg.run import main

sys.exit(main())
