"""`python -m lakeload` is `lakeload`."""

from lakeload.app import main

if __name__ == "__main__":
    main()
