"""`python -m jobsight` and the zipapp start here."""

import sys

from jobsight.cli.main import main

sys.exit(main())
