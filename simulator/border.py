"""Borders of the service: TCP proxies on loopback that can cut, delay and hold connections.

Rules:
- A border forwards bytes both ways and reads none of them.
- `cut` ends all open connections at once. New ones are accepted again.
- While `delay_s` is above 0, each piece waits so long before it goes on. A piece may so arrive after its
  sender gave up.
"""

import asyncio
from contextlib import suppress
from typing import Final

PIECE_BYTES: Final = 65_536


class Border:
    """A proxy in front of `target_port`, from `open` to `close`."""

    def __init__(self, name: str, target_port: int) -> None:
        self.name = name
        self.target_port = target_port
        self.delay_s = 0.0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._forwarding: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Accept connections on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> int:
        """Reset all open connections. Returns how many ends there were."""
        ends = list(self._open)
        for writer in ends:
            writer.transport.abort()
        return len(ends)

    async def close(self) -> None:
        """Accept no more connections and end the open ones."""
        if self._server is not None:
            self._server.close()
        self.cut()
        if self._forwarding:
            await asyncio.wait(self._forwarding)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            # Nobody listens behind the border: the caller sees a reset, as from a dead host.
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        ways = (self._forward(reader, far_writer), self._forward(far_reader, writer))
        tasks = {asyncio.create_task(way) for way in ways}
        self._forwarding |= tasks
        await asyncio.wait(tasks)
        self._forwarding -= tasks
        for end in (writer, far_writer):
            end.close()
            self._open.discard(end)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A reset of either end is what borders are for. The other end then sees the end of its connection.
        with suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if self.delay_s > 0:
                    await asyncio.sleep(self.delay_s)
                writer.write(piece)
                await writer.drain()
        writer.close()
