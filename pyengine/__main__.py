"""``python -m pyengine``: the command line."""

import sys

from pyengine.cli import main

if __name__ == "__main__":
    sys.exit(main())
