"""Workers of the Python package, in threads of the test."""

import threading
from contextlib import contextmanager


@contextmanager
def running(worker):
    """Runs a worker in another thread meanwhile, and gives the list of its exceptions."""
    failed = []

    def run():
        try:
            worker.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield failed
    finally:
        worker.stop()
        thread.join(20)
    assert not thread.is_alive()
