"""Batches and groups without a writer: read, judged and committed on a connection of the test's own."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from merchant_wallet.base.clock import now_ms
from merchant_wallet.book import store
from merchant_wallet.book.batch import Batch, Mode, PendingCommand
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.connection import PipelineConnection
from merchant_wallet.book.drafts import read_drafts
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft


@asynccontextmanager
async def open_connection(url: str) -> AsyncIterator[PipelineConnection]:
    """A connection as the writer has it. An open transaction is rolled back at the end."""
    connection = await PipelineConnection.open(url, store.STATEMENTS)
    try:
        yield connection
    finally:
        await connection.close()


def make_batch(merchant_id: int, *asked: Command | Submission, mode: Mode = Mode.READ) -> Batch:
    """A batch of these commands. It has not been read yet."""
    loop = asyncio.get_running_loop()
    submissions = [one if isinstance(one, Submission) else Submission(one) for one in asked]
    batch = Batch(merchant_id, [PendingCommand(each, loop.create_future()) for each in submissions])
    batch.mode = mode
    batch.read_again()
    return batch


async def read_draft(url: str, merchant_id: int, *asked: Command) -> Draft:
    """The draft for a batch of these commands, before it is judged."""
    async with open_connection(url) as connection:
        batch = make_batch(merchant_id, *asked)
        await read_drafts(connection, [batch], now_ms())
        return batch.judged


async def judge(connection: PipelineConnection, batches: Sequence[Batch], at_ms: int | None = None) -> None:
    """Read the batches and apply the rules."""
    await read_drafts(connection, batches, now_ms() if at_ms is None else at_ms)
    for batch in batches:
        batch.outcomes = apply_batch(batch.judged, batch.submissions)


async def commit(connection: PipelineConnection, batches: Sequence[Batch]) -> frozenset[int]:
    """Commit judged batches under a new group id. Returns the merchants whose batch was committed."""
    return await store.commit_group(connection, batches, uuid.uuid4().hex)
