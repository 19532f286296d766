"""The book's writer, as the preparations of measurements use it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer


class PreparationFailed(Exception):
    """The service refused something that the bench needs. The text says what."""


@asynccontextmanager
async def open_writer(url: str, **options: Any) -> AsyncIterator[Writer]:
    """A writer with these options, closed at the end."""
    writer = Writer(url, **options)
    await writer.open()
    try:
        yield writer
    finally:
        await writer.close()


async def ask_all(writer: Writer, asked: Iterable[tuple[int, Command]]) -> list[Outcome]:
    """Outcomes of commands, each of a merchant, submitted at once. Raises PreparationFailed for a refusal."""
    named = list(asked)
    futures = [writer.submit(merchant_id, Submission(command)) for merchant_id, command in named]
    outcomes = await asyncio.gather(*futures)
    for (merchant_id, _), outcome in zip(named, outcomes, strict=True):
        if isinstance(outcome, Refusal):
            raise PreparationFailed(f"merchant {merchant_id}: {outcome.msg}")
    return list(outcomes)


async def ask(writer: Writer, merchant_id: int, commands: Iterable[Command]) -> list[Outcome]:
    """The same for commands of one merchant."""
    return await ask_all(writer, [(merchant_id, command) for command in commands])
