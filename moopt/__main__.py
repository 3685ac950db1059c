"""``python -m moopt``."""

import sys

from moopt.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
