"""The script that an AppCDS archive is made with: one argument, the path of spec.json."""

import sys

from lakeload_jobs.installed_pyspark import use_installed_pyspark

use_installed_pyspark()

from lakeload_jobs.jobs.appcds import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
