"""The script given to spark-submit: one argument, the path of spec.json or of a pipe
through which the paths of specs arrive."""

import gc
import sys

from lakeload_jobs.installed_pyspark import use_installed_pyspark

use_installed_pyspark()

# Imports make no garbage: looking for it costs a twentieth of the driver's CPU in a small load.
gc.set_threshold(50_000, 20, 20)

from lakeload_jobs.jobs.attempt import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
