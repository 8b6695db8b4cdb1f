"""The script that an AppCDS archive is made with: one argument, the path of spec.json."""

import sys

from lakeload_jobs.jobs.appcds import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
