"""An optimistic batch for a book that differs in one thing: it fails, and nothing of it is done."""

import asyncio
from typing import Any

import pytest
from tests.book.sub_users import CHANGES, COUNTS
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run

from merchant_wallet.base.currencies import KFB
from merchant_wallet.book import store
from merchant_wallet.book.commands import Submission, UserToMerchant
from merchant_wallet.book.connection import StatementFailed
from merchant_wallet.book.writer import Writer

DIFFERENCES = {
    "nonce": "insert into nonce select merchant_id, '{nonce}', (select max(day) from nonce) from book",
    "nonce of yesterday": (
        "insert into nonce select merchant_id, '{nonce}', (select max(day) - 1 from nonce) from book"
    ),
    "order id": "update entry set mc_order_id = '{order}' where mc_order_id = 'o1'",
    **CHANGES,
    **COUNTS,
    "sub-user's balance": "update account set balance = balance + 1 where kind = 'subuser'",
    "merchant's balance": (
        "update account set balance = balance + 1 where kind = 'merchant' and currency = 'KFB'"
    ),
    "account missing": "delete from account where kind = 'merchant' and currency = 'KFB'",
    "clock": "update book set last_ms = last_ms + 3600000",
    "range": "update book set id_range = id_range + 1",
    "counter": "update book set id_counter = id_counter + 1",
    "next range": "update book set next_range = 77",
    "count": "update book set entry_count = entry_count + 1",
    "hash": "update book set head_hash = sha256('x')",
    "settings": "update book set settings_version = settings_version + 1",
    "withdrawn day": "update book set withdrawn_day = withdrawn_day + 1",
    "withdrawn": "update book set withdrawn_units = withdrawn_units + 1",
}
CONFLICT = "22P02"
"""The SQLSTATE of a sentence that is cast to a number."""

TOTALS = (
    "select (select count(*) from nonce), (select count(*) from entry), (select count(*) from posting),"
    " (select array_agg(a::text order by a::text) from account a), (select array_agg(b::text) from book b)"
)


def _debit(number: int, fee_rate_e8: int = 0) -> Submission:
    return Submission(UserToMerchant(f"o{number}", ALICE, KFB, COIN, fee_rate_e8, False), nonce=f"n{number}")


async def _remembering(url: str, fee_rate_e8: int) -> tuple[Shop, Writer]:
    shop = await open_shop(url)
    writer = Writer(url, connections=1)
    await shop.ask(writer, shop.credit("x", 100 * COIN))
    for number in (1, 2):
        await writer.submit(shop.merchant_id, _debit(number, fee_rate_e8))
    assert writer.optimistic_count > 0
    return shop, writer


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("difference", DIFFERENCES)
def test_any_difference_fails_the_batch_and_nothing_of_it_is_done(
    database_url: str, difference: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Any] = []
    commit = store.commit_optimistic

    async def scenario() -> None:
        shop, writer = await _remembering(database_url, 0)
        optimistic = writer.optimistic_count
        await shop.rows(DIFFERENCES[difference].format(nonce="n9", order="o9"))
        before = await shop.rows(TOTALS)

        async def watched(*parts: Any) -> None:
            try:
                await commit(*parts)
            except StatementFailed as failure:
                failed.append((failure.sqlstate, await shop.rows(TOTALS) == before))
                raise

        monkeypatch.setattr(store, "commit_optimistic", watched)
        futures = [writer.submit(shop.merchant_id, _debit(number)) for number in range(9, 9 + size)]
        # Some differences violate the book's rules. A batch that reads first reports them in its own way.
        await asyncio.gather(*futures, return_exceptions=True)
        assert writer.optimistic_count == optimistic
        await writer.close()

    run(scenario())
    assert failed[0] == (CONFLICT, True)


@pytest.mark.parametrize("fee_rate_e8", [0, 10**6])
@pytest.mark.parametrize("size", [1, 3])
def test_an_optimistic_batch_writes_what_it_judged(database_url: str, size: int, fee_rate_e8: int) -> None:
    async def scenario() -> None:
        shop, writer = await _remembering(database_url, fee_rate_e8)
        optimistic = writer.optimistic_count
        futures = [writer.submit(shop.merchant_id, _debit(n, fee_rate_e8)) for n in range(9, 9 + size)]
        for future in futures:
            await future
        await shop.ask(writer, shop.debit("too much", 10**6 * COIN))
        assert writer.optimistic_count == optimistic + 2
        await shop.ask(writer, shop.debit("o9"))
        assert writer.optimistic_count == optimistic + 2
        await writer.close()
        await shop.verify()
        assert await shop.alice_units() == (100 - 2 - size) * COIN

    run(scenario())
