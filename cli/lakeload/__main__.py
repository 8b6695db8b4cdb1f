"""`lakeload`, and `python -m lakeload`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while Python imports it is no error of lakeload's."""
    try:
        from lakeload.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
