"""The network cables of the drill's servers: forwarders of TCP that can be cut.

Rules: a cut link keeps its connections and accepts new ones, and carries nothing: no end of a stream, no
reset. When it is mended, what was open meanwhile ends.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Final

from tests.ports import find_port

HOST: Final = "127.0.0.1"
CHUNK_BYTES: Final = 65_536


class Link:
    """One port of this machine that leads to another port."""

    def __init__(self, target_port: int) -> None:
        self.port = find_port()
        self._target_port = target_port
        self._whole = asyncio.Event()
        self._whole.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Accept connections."""
        self._loop = asyncio.get_running_loop()
        await asyncio.start_server(self._serve, HOST, self.port)

    def cut(self) -> None:
        """Carry nothing from now on."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Carry again, on new connections."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._mend)

    def _mend(self) -> None:
        for writer in self._writers:
            writer.close()
        self._whole.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        there: asyncio.StreamWriter | None = None
        try:
            await self._whole.wait()
            with suppress(OSError):
                # The server may be down: then this connection ends as well.
                answers, there = await asyncio.open_connection(HOST, self._target_port)
                self._writers.add(there)
                ways = [self._carry(reader, there), self._carry(answers, writer)]
                tasks = {asyncio.ensure_future(way) for way in ways}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for end in filter(None, (writer, there)):
                end.close()
                self._writers.discard(end)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(CHUNK_BYTES):
            await self._whole.wait()
            sink.write(chunk)
            await sink.drain()
        # Nor does the end of a stream get through.
        await self._whole.wait()


def open_links(links: list[Link]) -> None:
    """Carry for all links in a thread of their own, until this process ends."""
    opened = threading.Event()

    async def carry() -> None:
        for link in links:
            await link.open()
        opened.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(carry()), daemon=True).start()
    opened.wait()
