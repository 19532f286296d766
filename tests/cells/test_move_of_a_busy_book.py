"""Home and the checkpoints are ahead of a copy that is being verified: payouts end all the time, and
checkpoints are written. That is no fault of the copy.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.archive_scene import write_months
from tests.book.fake_writer import MERCHANT_ID, FakeWriter
from tests.book.test_checkpoints import SIGNER
from tests.cells.book_moved import move_to
from tests.cells.layout import Layout
from tests.checkpoints import write_checkpoints
from tests.conftest import FAR

from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Settle, TakeUp
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.merchants.cells.copies import CheckpointFolder


@pytest.fixture
def book(layout: Layout) -> Iterator[FakeWriter]:
    """A book in the default cell."""
    with closing(FakeWriter(layout.url)) as made:
        write_months(made)
        made.run("update merchant set carried_version = settings_version")
        yield made


def pay_one_more(book: FakeWriter) -> None:
    """An order is made, paid and closed in home, as the payer does it."""
    order_id = book.withdraw_next()
    book.move(TakeUp(order_id), Settle(order_id, "0xfeed"))
    book.insert("payout", order_id=order_id, fence=0, claimed_until_ms=0, chain="ERC20", phase="closed")


def test_a_book_moves_while_payouts_end_and_checkpoints_are_written(
    layout: Layout, book: FakeWriter, tmp_path: Path
) -> None:
    paid: list[str] = []

    def go_on(text: str) -> None:
        if text.startswith("verifying"):
            paid.append(text)
            pay_one_more(book)
            checkpoint = threading.Thread(target=asyncio.run, args=[write_checkpoint(len(paid))])
            checkpoint.start()
            checkpoint.join()

    async def write_checkpoint(at_ms: int) -> None:
        async with await connect(layout.url) as cell:
            assert await write_checkpoints(cell, SIGNER, tmp_path, at_ms, interval_ms=0) == 1

    async def scenario() -> None:
        checkpoints = CheckpointFolder(tmp_path, SIGNER.keys)
        await move_to(layout.url, MERCHANT_ID, FAR, progress=go_on, checkpoints=checkpoints)
        async with await connect(layout.url) as home, await connect(layout.far_url) as far:
            report = await verify_book(
                home, far, MERCHANT_ID, checkpoint_dir=tmp_path, checkpoint_keys=SIGNER.keys
            )
        assert report.violation is None
        assert (report.entries, report.checkpoints) == (book.draft.entry_count, len(paid))

    pay_one_more(book)
    asyncio.run(scenario())
    assert paid
