"""Starts Firefox for Playwright: `python -m tests.browser.firefox_relay PROGRAM ARGUMENTS…`.

Playwright drives Debian's Firefox over WebDriver BiDi. It always sends a command that the extended-support
release does not know yet, and gives up. So this program stands between them and answers that command itself.
The theme is a preference of the browser instead (`conftest.FIREFOX_PREFERENCES`).
"""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from functools import partial
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

UNKNOWN: Final = "emulation.setMediaFeaturesOverride"
LISTENING: Final = re.compile(rb"(WebDriver BiDi listening on )(ws://\S+)")


async def relay(client: ServerConnection, firefox_url: str) -> None:
    """Pass messages on in both directions until one side ends."""
    path = client.request.path if client.request else ""
    async with connect(firefox_url + path, max_size=None, compression=None) as firefox:
        ways = [asyncio.ensure_future(_ask(client, firefox)), asyncio.ensure_future(_answer(firefox, client))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()


async def _ask(client: ServerConnection, firefox: ClientConnection) -> None:
    async for message in client:
        command: dict[str, Any] = json.loads(message)
        if command.get("method") == UNKNOWN:
            await client.send(json.dumps({"type": "success", "id": command["id"], "result": {}}))
        else:
            await firefox.send(message)


async def _answer(firefox: ClientConnection, client: ServerConnection) -> None:
    async for message in firefox:
        await client.send(message)


async def run(words: list[str]) -> int:
    """Run Firefox, and say where the relay listens instead of it."""
    process: Process = await asyncio.create_subprocess_exec(*words, stdout=PIPE, stderr=STDOUT)
    assert process.stdout is not None
    async for line in process.stdout:
        found = LISTENING.search(line)
        if found is None:
            sys.stderr.buffer.write(line)
            continue
        server = await serve(
            partial(relay, firefox_url=found[2].decode()), "127.0.0.1", 0, max_size=None, compression=None
        )
        port = server.sockets[0].getsockname()[1]
        print(f"WebDriver BiDi listening on ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
    return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(sys.argv[1:])))
