"""Addresses that no withdrawal may go to."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.docs.test_field_tables import merchant

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.operations.withdrawals import CREATE
from merchant_wallet.base.codes import ADDRESS_UNUSABLE, CHAIN_UNSUPPORTED, Refused
from merchant_wallet.withdrawals.forbidden import ForbiddenAddresses
from merchant_wallet.withdrawals.hot_wallet_store import open_wallet

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

TOKEN, WALLET, OTHER = (bytes([number]) * 20 for number in (1, 2, 3))


def test_hot_wallets_are_forbidden_as_soon_as_they_are_read(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        forbidden = ForbiddenAddresses({TOKEN}, shop.connect)
        await forbidden.refresh()
        assert [address in forbidden for address in (TOKEN, WALLET, OTHER)] == [True, False, False]
        await open_wallet(shop.connection, "ERC20", WALLET)
        await forbidden.refresh()
        assert [address in forbidden for address in (TOKEN, WALLET, OTHER)] == [True, True, False]
        stop = asyncio.Event()
        stop.set()
        await forbidden.run(stop)

    in_shop(scenario)


def test_what_was_read_last_stays_while_the_database_is_away(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        forbidden = ForbiddenAddresses({TOKEN}, shop.connect)
        await open_wallet(shop.connection, "ERC20", WALLET)
        await forbidden.refresh()
        await shop.rows(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where pid <> pg_backend_pid() and datname = current_database()"
            " and backend_type = 'client backend'"
        )
        stop = asyncio.Event()
        running = asyncio.create_task(forbidden.run(stop))
        for _ in range(100):
            await asyncio.sleep(0)
            assert WALLET in forbidden
        stop.set()
        await running

    in_shop(scenario)


FIELDS = {
    "mcOrderId": "1",
    "chainType": "ERC20",
    "currency": "USDT",
    "amount": "12",
    "address": "0x" + WALLET.hex(),
    "notifyUrl": "https://example.com/n",
}


@pytest.mark.parametrize(
    ("forbidden", "chains", "code"),
    [
        (frozenset({WALLET}), ("ERC20", "TRC20"), ADDRESS_UNUSABLE),
        (frozenset({OTHER}), ("TRC20",), CHAIN_UNSUPPORTED),
    ],
)
def test_an_order_to_a_forbidden_address_or_on_a_chain_without_a_node_is_refused(
    forbidden: frozenset[bytes], chains: tuple[str, ...], code: int
) -> None:
    context = OperationContext(False, 1, None, forbidden, lambda merchant_id, user_id: "", chains)
    with pytest.raises(Refused) as refused:
        CREATE.prepare(merchant(), dict(FIELDS), context)
    assert refused.value.refusal.code == code
    CREATE.prepare(merchant(), dict(FIELDS), context._replace(forbidden_addresses=(), chains=("ERC20",)))
