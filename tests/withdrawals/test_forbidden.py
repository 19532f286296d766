"""Addresses that no withdrawal may go to: no order to them is accepted, and none that is open is signed."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.docs.test_field_tables import merchant
from tests.waits import eventually
from tests.withdrawals.conftest import ERC20_ADDRESS, MERCHANT_ID

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.operations.withdrawals import CREATE
from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address, parse_address
from merchant_wallet.base.codes import ADDRESS_UNUSABLE, CHAIN_UNSUPPORTED, Refused
from merchant_wallet.book.outcomes import FUNDS_LOST, Withdrawal
from merchant_wallet.chains.protocol import Transfer
from merchant_wallet.custody.cold import wallets as cold_wallets
from merchant_wallet.custody.cold.two_person_changes import ColdRefused, set_address
from merchant_wallet.hot_wallet.store import WalletMoved, open_wallet
from merchant_wallet.merchants import own_addresses
from merchant_wallet.merchants.addresses import write_issued
from merchant_wallet.merchants.own_addresses import Own
from merchant_wallet.withdrawals.own_wallets import OwnWallets

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

TOKEN, WALLET, OTHER, COLD, DEPOSIT, STRANGER = (bytes([number]) * 20 for number in range(1, 7))


async def end(own_wallets: OwnWallets) -> None:
    stop = asyncio.Event()
    stop.set()
    await own_wallets.run(stop)


def test_hot_wallets_are_forbidden_as_soon_as_they_are_read(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        own_wallets = OwnWallets(shop.connect)
        await own_wallets.refresh()
        assert [address in own_wallets for address in (WALLET, OTHER)] == [False, False]
        await open_wallet(shop.connection, "ERC20", WALLET, 1)
        await own_wallets.refresh()
        assert [address in own_wallets for address in (WALLET, OTHER)] == [True, False]
        await end(own_wallets)

    in_shop(scenario)


def test_a_former_wallet_is_forbidden_for_ever_and_a_deposit_address_is_not(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        for wallet in (WALLET, OTHER):
            await open_wallet(shop.connection, "ERC20", wallet, shop.clock())
            # Who opens it again changes nothing.
            await open_wallet(shop.connection, "ERC20", wallet, shop.clock())
        for cold in (COLD, None):
            await cold_wallets.set_current(shop.connection, "ERC20", cold, 1)
        await write_issued(shop.connection, MERCHANT_ID, [DEPOSIT])
        own_wallets = OwnWallets(shop.connect)
        await own_wallets.refresh()
        await end(own_wallets)
        wallets = (WALLET, OTHER, COLD, DEPOSIT, STRANGER)
        assert [address in own_wallets for address in wallets] == [True, True, True, False, False]
        kinds = [await own_addresses.find(shop.connection, address) for address in wallets]
        assert kinds == [Own.HOT, Own.HOT, Own.COLD, Own.DEPOSIT, None]
        for other, kind in ((COLD, Own.COLD), (DEPOSIT, Own.DEPOSIT)):
            with pytest.raises(WalletMoved, match=f"a {kind} of the platform: use another key"):
                await open_wallet(shop.connection, "ERC20", other, shop.clock())
        # The audit log says which wallet paid from when on.
        first, second = (format_address("ERC20", wallet) for wallet in (WALLET, OTHER))
        assert await shop.rows(
            "select actor, subject, before, after from audit_entry where action = 'wallet.take'"
            " order by audit_no"
        ) == [
            ("worker", "chain ERC20", None, {"address": first}),
            ("worker", "chain ERC20", {"address": first}, {"address": second}),
        ]

    in_shop(scenario)


@pytest.mark.parametrize("kind", [Own.HOT, Own.COLD])
def test_an_open_order_to_an_address_that_becomes_ours_is_refunded_unsigned(
    in_shop: "InShop", kind: Own
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        recipient = parse_address("ERC20", ERC20_ADDRESS)
        before = await shop.balances()
        order = await shop.order()
        if kind is Own.COLD:
            await cold_wallets.set_current(shop.connection, "ERC20", recipient, 1)
        else:
            for wallet in (recipient, chain.wallet):
                await open_wallet(shop.connection, "ERC20", wallet, 1)
        assert await shop.pay(shop.payer(chain), order) == 6
        assert chain.built == []
        assert await shop.balances() == before
        [(cause,)] = await shop.rows("select given_up_cause from payout")
        assert cause == f"the recipient is a {kind} of the platform"

    in_shop(scenario)


def test_a_wallet_that_becomes_ours_right_before_the_reservation_gets_nothing(in_shop: "InShop") -> None:
    """The payer has looked. Then the address is ours. The reservation looks again."""

    async def scenario(shop: "Shop") -> None:
        chain, recipient = shop.scripted(), parse_address("ERC20", ERC20_ADDRESS)

        async def check_payable(_: Transfer) -> None:
            await cold_wallets.set_current(shop.connection, "ERC20", recipient, 1)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "check_payable", check_payable)
            order = await shop.order()
            assert await shop.pay(shop.payer(chain), order) == 6
        assert chain.built == []
        assert await shop.rows("select count(*) from payout_reservation") == [(0,)]

    in_shop(scenario)


def test_a_reservation_waits_for_a_registration_under_way_and_then_reserves_nothing(
    in_shop: "InShop",
) -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        waits = (
            "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        await open_wallet(shop.connection, "ERC20", chain.wallet, shop.clock())
        order, payer = await shop.order(), shop.payer(chain)
        author, none = Author("ann", "test", shop.clock()), {"coldWallet": None}
        change = none, {"coldWallet": ERC20_ADDRESS}
        async with await shop.connect() as beside:

            async def is_blocked() -> bool:
                return await (await beside.execute(waits)).fetchone() is not None

            async with shop.connection.transaction():
                await set_address(shop.connection, author, "ERC20", change, {"ERC20": TOKEN})
                turning = asyncio.create_task(shop.turn(payer))
                await eventually(is_blocked)
            await turning
        assert await shop.pay(payer, order) == 6
        assert chain.built == []
        # The other way round: what is reserved is not registered.
        other = await shop.order(address="0x" + OTHER.hex())
        await shop.turn(payer)
        assert [one.payout_id for one in chain.built] == [other.order_id]
        later = none, {"coldWallet": format_address("ERC20", OTHER)}
        with pytest.raises(ColdRefused, match="An order to that address is open"):
            await set_address(shop.connection, author, "ERC20", later, {"ERC20": TOKEN})

    in_shop(scenario)


def test_what_was_read_last_stays_while_the_database_is_away(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        own_wallets = OwnWallets(shop.connect)
        await open_wallet(shop.connection, "ERC20", WALLET, 1)
        await own_wallets.refresh()
        await shop.rows(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where pid <> pg_backend_pid() and datname = current_database()"
            " and backend_type = 'client backend'"
        )
        stop = asyncio.Event()
        running = asyncio.create_task(own_wallets.run(stop))
        for _ in range(100):
            await asyncio.sleep(0)
            assert WALLET in own_wallets
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
    context = OperationContext(False, 1, None, forbidden, (), lambda merchant_id, user_id: "", chains)
    with pytest.raises(Refused) as refused:
        CREATE.prepare(merchant(), dict(FIELDS), context)
    assert refused.value.refusal.code == code
    CREATE.prepare(
        merchant(), dict(FIELDS), context._replace(forbidden_addresses=frozenset(), chains=("ERC20",))
    )


def test_an_accepted_order_is_answered_again_after_its_address_has_become_ours(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        own_wallets = OwnWallets(shop.connect)
        context = OperationContext(
            False, 1, None, frozenset({TOKEN}), own_wallets, lambda merchant_id, user_id: ""
        )

        async def send(mc_order_id: str) -> object:
            return await shop.ask(CREATE.prepare(merchant(), {**FIELDS, "mcOrderId": mc_order_id}, context))

        accepted = await send("1")
        assert isinstance(accepted, Withdrawal)
        await open_wallet(shop.connection, "ERC20", WALLET, 1)
        await own_wallets.refresh()
        await end(own_wallets)
        assert await send("1") == accepted
        assert await send("2") == FUNDS_LOST

    in_shop(scenario)
