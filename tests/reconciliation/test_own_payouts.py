"""A payout that went to a wallet of ours has a line of its own, with its order: nothing is unexplained."""

from typing import Any

import pytest
from tests.reconciliation.conftest import (
    COIN,
    HOT,
    PAID_TO,
    SHOP,
    STRANGER,
    InReconciliation,
    ReconciliationScene,
)

from merchant_wallet.custody.cold import wallets
from merchant_wallet.hot_wallet.store import open_wallet

LINE = "payout to own wallet"


async def register(scene: ReconciliationScene) -> None:
    await wallets.set_current(scene.deposits.connection, "ERC20", PAID_TO, scene.deposits.clock())


async def find_line(scene: ReconciliationScene) -> dict[str, Any]:
    compared = await scene.compare()
    assert (compared["sound"], compared["unexplained"]) == (True, "0")
    [line] = compared["lines"]
    return dict(line)


def test_a_payout_to_an_address_that_became_a_cold_wallet_names_its_order_until_it_is_recorded(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(77 * COIN)
        await register(scene)
        assert await scene.lines() == {}
        scene.chain.put((HOT, PAID_TO, 77 * COIN), tx_hash=tx_hash)
        assert await scene.lines() == {"payout unsettled": "-77", LINE: "77"}
        await scene.settle(order_id, tx_hash)
        line = await find_line(scene)
        assert (line["kind"], line["effect"], line["alarming"]) == (LINE, "77", False)
        [named] = line["movements"]
        assert (named["txHash"], named["direction"]) == (tx_hash, "IN")
        assert (named["merchantId"], named["orderId"]) == (SHOP, order_id)
        # A theft of the same size does not hide behind it.
        scene.chain.put((PAID_TO, STRANGER, 77 * COIN))
        assert await scene.lines() == {LINE: "77", "unknown out": "-77"}
        await scene.record("IN", 77 * COIN, tx_hash)
        assert await scene.lines() == {"unknown out": "-77"}

    in_reconciliation(scenario)


@pytest.mark.parametrize("is_searched", [False, True])
def test_a_test_withdrawal_before_the_registration_is_a_line_or_counted_with_what_the_wallet_held(
    in_reconciliation: InReconciliation, is_searched: bool
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(COIN)
        scene.chain.put((HOT, PAID_TO, COIN), tx_hash=tx_hash)
        await scene.settle(order_id, tx_hash)
        if is_searched:
            assert await scene.lines() == {}
        await register(scene)
        assert await scene.lines() == ({} if is_searched else {LINE: "1"})
        assert (await scene.compare())["coldOpening"] == ("1" if is_searched else "0")

    in_reconciliation(scenario)


@pytest.mark.parametrize("is_searched", [False, True])
def test_a_test_withdrawal_to_the_next_hot_wallet_is_a_line_once_that_pays(
    in_reconciliation: InReconciliation, is_searched: bool
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        order_id, tx_hash = await scene.sign(5 * COIN)
        # A replaced transfer that never came to anything.
        await scene.deposits.rows(
            "insert into payout_signed values (%s, %s, 2, 'raw', 'replaced', 0, 0)", SHOP, order_id
        )
        await scene.deposits.rows("update payout_reservation set recipient = %s, ended_no = 1", PAID_TO)
        scene.chain.put((HOT, PAID_TO, 5 * COIN), tx_hash=tx_hash)
        await scene.settle(order_id, tx_hash)
        if is_searched:
            assert await scene.lines() == {}
        await open_wallet(scene.deposits.connection, "ERC20", PAID_TO, scene.deposits.clock())
        for _ in range(2):
            line = await find_line(scene)
            assert (line["kind"], line["effect"]) == (LINE, "5")
            [named] = line["movements"]
            assert (named["txHash"], named["orderId"]) == (tx_hash, order_id)
        await scene.record("IN", 5 * COIN, tx_hash)
        assert await scene.lines() == {}

    in_reconciliation(scenario)


def test_what_moves_between_our_wallets_for_no_order_still_needs_no_line(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        await register(scene)
        assert await scene.lines() == {}
        scene.chain.put((HOT, PAID_TO, 40 * COIN))
        await open_wallet(scene.deposits.connection, "ERC20", b"N" * 20, 2)
        scene.chain.put((HOT, b"N" * 20, 60 * COIN))
        assert await scene.lines() == {}
        compared = await scene.compare()
        assert (compared["hotWallets"], compared["coldWallets"]) == ("60", "40")

    in_reconciliation(scenario)
