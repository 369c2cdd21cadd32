"""`python -m dq_server ...` is `dq ...`."""

import os
import sys

from dq_server import program

os.execv(program(), ["dq", *sys.argv[1:]])
