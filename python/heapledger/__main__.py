"""python -m heapledger: the same as the command heapledger."""

import sys

from heapledger.command import main

if __name__ == "__main__":
    sys.exit(main())
