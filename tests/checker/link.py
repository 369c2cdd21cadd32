"""A client's connection that distinguishes three ends of a call: answered, refused, and unknown."""

import time

from tests.harness.wire import Error, Wire

# Errors of a server that cannot answer at the moment: another one may be able to.
_ELSEWHERE = ("READONLY", "LOADING", "MASTERDOWN", "UNBLOCKED", "CLUSTERDOWN")


class Refused(Exception):
    """An error was answered, or nothing was sent: the call has changed nothing."""


class Unknown(Exception):
    """Sent, and never answered."""


class Link:
    """One connection at a time to one of several servers, over RESP2, without any retries of its own."""

    def __init__(self, ports, timeout=8.0):
        self.ports, self.at, self.timeout = list(ports), 0, timeout
        self.wire = None

    def call(self, *args):
        """The reply. Raises Refused or Unknown."""
        for _ in range(8):
            reply = self._once(self._wire(), args)
            if not isinstance(reply, Error):
                return reply
            if reply.startswith("MOVED"):
                self._go(int(reply.rsplit(":", 1)[1]))
            elif reply.startswith("ASK "):
                reply = self._ask(int(reply.rsplit(":", 1)[1]), args)
                if not isinstance(reply, Error):
                    return reply
                time.sleep(0.01)
            elif reply.startswith("TRYAGAIN"):
                time.sleep(0.01)
            else:
                if reply.startswith(_ELSEWHERE):
                    self._next()
                raise Refused(str(reply))
        raise Refused("sent from one server to another")

    def drop(self) -> None:
        """Closes the connection, as a client that dies does."""
        if self.wire is not None:
            self.wire.close()
            self.wire = None

    def _wire(self) -> Wire:
        if self.wire is None:
            port = self.ports[self.at]
            try:
                self.wire = Wire(port, protocol=2, timeout=self.timeout)
            except OSError as error:
                self._next()
                raise Refused(f"no connection to {port}: {error}") from error
        return self.wire

    def _once(self, wire, args):
        try:
            return wire.call(*args)
        except OSError as error:
            # Closed before anything was sent or after it was done: the socket does not report it.
            self.drop()
            raise Unknown(str(error)) from error

    def _ask(self, port, args):
        try:
            with Wire(port, protocol=2, timeout=self.timeout) as wire:
                wire.call("ASKING")
                return wire.call(*args)
        except OSError as error:
            raise Unknown(str(error)) from error

    def _go(self, port) -> None:
        self.drop()
        if port not in self.ports:
            self.ports.append(port)
        self.at = self.ports.index(port)

    def _next(self) -> None:
        self.drop()
        self.at = (self.at + 1) % len(self.ports)
        time.sleep(0.02)
