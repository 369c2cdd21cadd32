"""The process that has loaded an application once and forks a worker for each line that it reads.

A worker that is killed hundreds of times would else spend most of the time on its imports.
"""

import os
import signal
import sys
from collections.abc import Callable


def serve(work: Callable[[str, int], None]) -> None:
    """Reads lines `name threads`, forks a worker for each in a process group of its own, and prints its pid.

    At the end of the input it kills those that are left.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    pids: list[int] = []
    for line in iter(sys.stdin.readline, ""):
        name, threads = line.split()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
            try:
                work(name, int(threads))
            finally:
                os._exit(0)
        pids.append(pid)
        print(pid, flush=True)
    for pid in pids:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
