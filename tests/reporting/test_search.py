"""One search for every name of a transaction."""

import pytest
from tests.reporting.conftest import ReportingScene, evm_of

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.reporting import callbacks, entries, merchants
from merchant_wallet.reporting.callbacks import CallbackFilter
from merchant_wallet.reporting.entries import EntryFilter
from merchant_wallet.reporting.search import search

pytestmark = pytest.mark.anyio

HASH = "ab" * 32


async def sign_payout(scene: ReportingScene, shop: int, order_id: int, tx_hash: str) -> None:
    """What the payer stores before it sends a transfer."""
    for statement in (
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, signed_no)"
        " values (%(m)s, %(o)s, 'TRC20', 1, 'payer', 0, 1)",
        "insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms,"
        " recipient) values (%(m)s, %(o)s, 'TRC20', %(w)s, 1, 0, %(w)s)",
        "insert into payout_signed (merchant_id, order_id, attempt_no, raw, tx_hash, built_at_block,"
        " signed_ms) values (%(m)s, %(o)s, 1, 'raw', %(h)s, 0, 0)",
    ):
        await scene.conn.execute(statement.encode(), {"m": shop, "o": order_id, "w": bytes(20), "h": tx_hash})


async def kinds(scene: ReportingScene, word: str, merchant_id: int | None = None) -> list[tuple[str, int]]:
    return [(hit.kind, hit.merchant_id) for hit in await search(scene.conn, scene.cells, word, merchant_id)]


async def test_every_kind_of_name_leads_to_what_it_names(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    alice = await scene.register(shop, "alice")
    order = await scene.order(shop)
    await scene.cancel(shop, order)
    await sign_payout(scene, shop, order.order_id, HASH)
    await scene.add_deposit(shop, "0x" + "cd" * 32, chain="ERC20")
    event = (await callbacks.list_callbacks(scene.cells, CallbackFilter())).rows[0].event_id
    cancel = (await entries.list_entries(scene.conn, shop, EntryFilter(kinds=("cancel",)))).rows[0]
    (merchant,) = await merchants.find_merchants(scene.conn, "Shop")
    both = [("order", shop), ("entry", shop)]
    expected = {
        str(shop): [("merchant", shop)],
        merchant.app_key: [("merchant", shop)],
        "sho": [("merchant", shop)],
        "alice": [("sub-user", shop)],
        # A sub-user has the id of the entry that registered it.
        str(alice.user_id): [("sub-user", shop), ("entry", shop)],
        to_eip55(evm_of(1)): [("sub-user", shop)],
        str(order.order_id): both,
        order.mc_order_id: both,
        str(cancel.entry_id): [("entry", shop)],
        HASH: [("order", shop)],
        "0x" + HASH.upper(): [("order", shop)],
        "CD" * 32: [("deposit", shop)],
        "0x" + "cd" * 32: [("deposit", shop)],
        event: [("callback", shop)],
    }
    for word, hits in expected.items():
        assert await kinds(scene, f" {word} ") == hits, word
        assert await kinds(scene, word, shop) == hits, word


async def test_a_merchant_finds_nothing_of_another(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    alice = await scene.register(shop, "alice")
    order = await scene.order(shop)
    await scene.cancel(shop, order)
    await sign_payout(scene, shop, order.order_id, HASH)
    await scene.add_deposit(shop, "cd" * 32)
    event = (await callbacks.list_callbacks(scene.cells, CallbackFilter())).rows[0].event_id
    words = (
        str(shop),
        "Shop",
        "alice",
        alice.user_id,
        order.order_id,
        order.mc_order_id,
        HASH,
        "cd" * 32,
        event,
    )
    for word in words:
        assert await kinds(scene, str(word)) != []
        assert await kinds(scene, str(word), stall) == []


async def test_what_two_shops_call_the_same_is_found_in_both(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    for merchant_id in (shop, stall):
        await scene.register(merchant_id, "alice")
    assert await kinds(scene, "alice") == [("sub-user", shop), ("sub-user", stall)]


@pytest.mark.parametrize(
    "word", ["", " ", "\0", "x" * 129, "9" * 40, "0x", "%", "'; drop table entry", "0x" + "zz" * 32]
)
async def test_a_word_that_names_nothing_finds_nothing(scene: ReportingScene, word: str) -> None:
    await scene.open_shop("Shop")
    assert await search(scene.conn, scene.cells, word) == []
