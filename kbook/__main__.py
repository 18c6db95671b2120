"""`python -m kbook`."""

import sys

from kbook.cli import main

sys.exit(main())
