"""The script given to spark-submit: one argument, the path of spec.json."""

import sys

from lakeload_jobs.jobs.attempt import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
