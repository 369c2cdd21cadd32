"""`python -m dqueue.program` is `dq-worker`."""

import sys

from dqueue.program import main

sys.exit(main())
