"""python -m heapledger: the same as the command heapledger."""

import sys

from heapledger.command import main

sys.exit(main())
