"""`python -m gradwright` is the command `gradwright`."""

import sys

from gradwright.doctor.command.cli import main

if __name__ == "__main__":
    sys.exit(main())
