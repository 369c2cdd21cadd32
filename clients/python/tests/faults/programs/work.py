"""The handler of all programs. It writes down what it does, and ends as it is told to."""

import ctypes
import os
import signal
import sys
import threading
import time


def note(word, id):
    with open(os.environ["FAULTS_LOG"], "a") as file:
        file.write(f"{word} {id} {os.getpid()}\n")


def work(id, seconds=0.0, how="return"):
    note("begin", id)
    time.sleep(seconds)
    ENDS[how]()
    note("end", id)


async def work_async(id, seconds=0.0, how="return"):
    import asyncio

    note("begin", id)
    await asyncio.sleep(seconds)
    ENDS[how]()
    note("end", id)


class Odd(BaseException):
    """An error that is no Exception."""


class Unprintable(Exception):
    """An error that cannot be written down."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def _raise(error):
    def end():
        raise error

    return end


def _throw_into_itself():
    # PyThreadState_SetAsyncExc raises an exception in a thread from outside, as time limits do.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(Odd))
    time.sleep(0.01)


ENDS = {
    "return": lambda: None,
    "error": _raise(LookupError("odd")),
    "unprintable": _raise(Unprintable()),
    "sys.exit": lambda: sys.exit(3),
    "SystemExit": _raise(SystemExit()),
    "KeyboardInterrupt": _raise(KeyboardInterrupt()),
    "GeneratorExit": _raise(GeneratorExit()),
    "BaseException": _raise(Odd("odd")),
    "asynchronous": _throw_into_itself,
    "StopIteration": _raise(StopIteration(1)),
    "os._exit": lambda: os._exit(7),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
}
