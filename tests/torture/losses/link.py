"""A network link between two machines, which has a delay and can fail."""

import asyncio
import threading


class Link:
    """Passes on the data of its port, `delay` seconds later. Data on its way at the cut is lost.

    It has a thread of its own. `aim` says to whom connections are passed from then on.
    """

    def __init__(self, delay: float = 0.0):
        self.delay, self.target, self.silent = delay, None, False
        self._open: set = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._server = self._do(asyncio.start_server(self._meet, "127.0.0.1", 0, backlog=2_000))
        self.port = self._server.sockets[0].getsockname()[1]

    def aim(self, port: int) -> None:
        """From now on new connections lead to this port."""
        self.target, self.silent = port, False

    def hush(self) -> None:
        """From now on no data is passed on. Both ends keep their connections and receive no data."""
        self.silent = True

    def cut(self) -> None:
        """Breaks all connections, with the data that is on its way. New ones are refused until it is aimed again."""
        self.target = None
        self._do(self._abort())

    def close(self) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _abort(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _end(self) -> None:
        self._server.close()
        await self._abort()
        # Each task ends because its connection is broken.
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=5)

    async def _meet(self, reader, writer) -> None:
        try:
            if self.target is None:
                raise ConnectionRefusedError
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return writer.transport.abort()
        ends = {writer, far_writer}
        self._open |= ends
        ways = [asyncio.ensure_future(self._pass(*way)) for way in ((reader, far_writer), (far_reader, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in ends:
            end.transport.abort()
        self._open -= ends

    async def _pass(self, source, sink) -> None:
        """One direction: a separate task passes on the data, each part when it is due."""
        under_way: asyncio.Queue = asyncio.Queue()
        giving = asyncio.ensure_future(self._give(under_way, sink))
        try:
            while data := await source.read(1 << 16):
                under_way.put_nowait((self._loop.time() + self.delay, data))
        except OSError:
            pass
        finally:
            giving.cancel()

    async def _give(self, under_way, sink) -> None:
        while True:
            due, data = await under_way.get()
            if self.delay:
                await asyncio.sleep(due - self._loop.time())
            if not self.silent and not sink.is_closing():
                sink.write(data)
