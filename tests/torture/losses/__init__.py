"""The losses of a server among the writes that it has confirmed: by its settings, and by how the client had them
confirmed.

Each row is one set of servers, one fault and one way to confirm. In each round clients send and ack; then the fault
comes; then everything that is left is compared with what had been confirmed (run.py). A send is lost if it was
confirmed and is not there, and an ack is undone if it was confirmed and its message is there again.
`python -m tests.torture.losses --faults 500` prints one table (`make losses`); tests/short/test_losses.py does a few
faults of each row.
"""

import sys
from pathlib import Path

# The Python client, from its sources.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "clients/python/src"))
