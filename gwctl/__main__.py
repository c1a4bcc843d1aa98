"""`python -m gwctl` is `gwctl`."""

import sys

from gwctl.app import main

sys.exit(main())
