"""The bus of a cluster with a switch: the nodes talk to each other through proxies, which can cut them off.

Every node has an address of its own on this machine, from which it connects to the others, so a proxy knows who is
calling. Clients and the replication do not go through it.
"""

import asyncio
import threading


class Bus:
    """The proxies of a cluster, in a thread."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._nodes = 0
        self._cut: set[str] = set()
        self._pumps: set = set()

    def node(self, port: int) -> dict:
        """Opens the proxy of a new node with this port. Returns its part of the configuration."""
        self._nodes += 1
        own = f"127.0.1.{self._nodes}"
        bus = self._call(self._open(own, port + 10_000))
        return {
            "bind": f"127.0.0.1 {own}",
            "bind-source-addr": own,
            # The node knows 127.0.0.1 only as its own machine.
            "protected-mode": "no",
            "cluster-announce-ip": "127.0.0.1",
            "cluster-announce-bus-port": bus,
        }

    def cut_off(self, conf: dict) -> None:
        """Separates a node from all others, until `heal`."""
        self._cut.add(conf["bind-source-addr"])
        self._call(self._drop())

    def heal(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        self._cut = {f"127.0.1.{n + 1}" for n in range(self._nodes)}
        self._call(self._drop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _open(self, own: str, behind: int) -> int:
        """Opens a proxy, and returns its port."""

        async def connected(reader, writer):
            pair = frozenset((writer.get_extra_info("peername")[0], own))
            if pair & self._cut:
                writer.close()
                return
            try:
                # The node listens on its second address, too; this one is free of proxies.
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", behind)
            except OSError:
                writer.close()
                return
            ends = (pair, writer, far_writer)
            self._pumps.add(ends)
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
            self._pumps.discard(ends)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    async def _drop(self) -> None:
        for pair, *writers in list(self._pumps):
            if pair & self._cut:
                for writer in writers:
                    writer.close()


async def _pump(reader, writer) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
