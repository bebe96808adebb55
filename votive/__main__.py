"""`python -m votive`."""

import sys

from .cli import main

sys.exit(main())
