"""What a transfer to the cold wallet keeps of the hot wallet that pays orders."""

from typing import TYPE_CHECKING

import pytest
from tests.withdrawals.test_outdated_figures import COIN, RECIPIENT, WALLET, hold, note_funds

from merchant_wallet.chains.protocol import SignedTransfer
from merchant_wallet.custody.cold import store as cold
from merchant_wallet.custody.cold import wallets
from merchant_wallet.custody.cold.limits import SIGNER, TO_COLD
from merchant_wallet.hot_wallet.funds import Reservation, Shortage, Wanted
from merchant_wallet.hot_wallet.store import WalletMoved, open_wallet
from merchant_wallet.withdrawals.reservations import reserve

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

OTHER, COLD = bytes(range(80, 100)), bytes(range(100, 120))


async def sign_for_cold(shop: "Shop", amount_units: int) -> cold.ColdTransfer:
    """A signed transfer of the hot wallet to the cold one."""
    await wallets.set_current(shop.connection, "TRC20", COLD, shop.clock.now_ms)
    new = cold.NewTransfer("TRC20", TO_COLD, SIGNER, WALLET, COLD, amount_units, None, None, "ann")
    number = await cold.open_transfer(shop.connection, new, shop.clock.now_ms)
    assert number is not None
    opened = await cold.read_transfer(shop.connection, number)
    assert opened is not None
    wanted = Wanted("TRC20", WALLET, False, amount_units, COLD)
    moved = await cold.reserve(shop.connection, opened, wanted, shop.clock.now_ms)
    assert isinstance(moved, cold.ColdTransfer)
    signed = SignedTransfer(b"signed", "its hash")
    await cold.store_signed(shop.connection, moved, signed, attempt_no=1, now_ms=shop.clock.now_ms)
    return moved


def test_a_transfer_to_the_cold_wallet_counts_until_the_balance_was_asked_for_after_its_end(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        await open_wallet(shop.connection, "TRC20", WALLET, 1)
        await note_funds(shop, 20 * COIN, ended=0)
        moved, held = await sign_for_cold(shop, 11 * COIN), await hold(shop)
        wanted = Wanted("TRC20", WALLET, False, 10 * COIN, RECIPIENT)

        async def ask() -> object:
            return await reserve(shop.connection, held, wanted, shop.clock.now_ms)

        assert await ask() == Shortage(9 * COIN, settled=True)
        await cold.end(shop.connection, moved, cold.DONE, shop.clock.now_ms)
        assert await ask() == Shortage(9 * COIN, settled=False)
        await note_funds(shop, 9 * COIN, ended=1)
        assert await ask() == Shortage(9 * COIN, settled=True)
        await note_funds(shop, 10 * COIN, ended=1)
        assert await ask() == Reservation(WALLET, None)

    in_shop(scenario)


def test_another_hot_wallet_waits_for_the_end_of_a_transfer_to_the_cold_one(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        await open_wallet(shop.connection, "TRC20", WALLET, 1)
        await note_funds(shop, 20 * COIN, ended=0)
        moved = await sign_for_cold(shop, 11 * COIN)
        with pytest.raises(WalletMoved, match="bring the old one back"):
            await open_wallet(shop.connection, "TRC20", OTHER, 1)
        await cold.end(shop.connection, moved, cold.DONE, shop.clock.now_ms)
        await open_wallet(shop.connection, "TRC20", OTHER, 1)
        assert await shop.rows("select address, funds from hot_wallet") == [(OTHER, None)]

    in_shop(scenario)
