"""BEP20, the third chain: off unless its nodes are configured, and then like the other chains.

Its token has 18 decimals. Deposits are rounded down to the ledger's 6 decimals; payouts are exact.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from devnet.chains import HOT_KEY, EvmSide, open_side
from devnet.evm_node import COIN as ETHER
from devnet.evm_node import EvmDevnet
from devnet.tron_network import address_of
from tests.deposits.conftest import COIN, MINIMUM, DepositScene, InScene, address
from tests.deposits.conftest import in_scene as in_scene
from tests.journeys.conftest import RunPlatform, Shop
from tests.journeys.orders import ERC20_ADDRESS, withdrawal
from tests.processes.test_payout_workers import PASSPHRASE, QUICK_COST, opened
from tests.waits import wait_until
from tests.withdrawals.conftest import InShop
from tests.withdrawals.conftest import Shop as PayingShop
from tests.withdrawals.conftest import in_shop as in_shop
from typer.testing import CliRunner

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.chains import BEP20, CHAINS, ERC20
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.cli.program import app
from merchant_wallet.custody.balances import CustodyReader
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.processes.nodes import open_chain_readers
from merchant_wallet.processes.reconciliation import Reconciler
from merchant_wallet.processes.signers import find_keys_folder

CREATE = "createMerchantWithdrawOrder"
UNKNOWN = "XRP20"
BASE_UNITS = 10**12
ALMOST_A_UNIT = BASE_UNITS - 1
RECIPIENT = bytes(range(1, 21))


@pytest.fixture
def side() -> Iterator[EvmSide]:
    """A second EVM node, with its own chain id and a token of 18 decimals."""
    with EvmDevnet(chain_id=31356) as node:
        yield open_side(BEP20, node)


def open_reader(side: EvmSide) -> EvmChain:
    """The chain, as a service with the devnet's settings reads it."""
    reader = open_chain_readers(load_settings({"WALLET_SANDBOX": "false", **side.settings}))[BEP20]
    assert isinstance(reader, EvmChain)
    return reader


def send(side: EvmSide, recipient: bytes, units: int, remainder: int = 0) -> str:
    """Pay from the token issuer's wallet in a block of its own. Returns the transaction hash."""
    tx_hash = side.send(recipient, units, remainder)
    side.node.mine()
    return tx_hash


def test_deposits_are_rounded_down_and_books_agree_with_the_chain_to_the_unit(
    in_scene: InScene, side: EvmSide
) -> None:
    async def scenario(scene: DepositScene) -> None:
        reader = open_reader(side)
        assert await reader.check_setup() == []
        watcher = Watcher(
            scene.connect,
            scene.connect,
            BEP20,
            reader,
            minimum_units=MINIMUM,
            clock=scene.clock,
            check=reader.check_chain,
        )
        reconciler = Reconciler(
            scene.connect, lambda _: {BEP20: CustodyReader(reader, keeps_past=True)}, clock=scene.clock
        )
        scene.closing.push_async_callback(watcher.close)
        scene.closing.push_async_callback(reconciler.close)
        await scene.catch_up(watcher)
        ulla = address("ulla")
        first = send(side, ulla, 5 * COIN, ALMOST_A_UNIT)
        second = send(side, ulla, 7 * COIN, 2)
        too_small = send(side, ulla, 0, ALMOST_A_UNIT)
        await scene.catch_up(watcher)
        assert await scene.status_of(first) == "seen"
        side.node.mine(3)
        await scene.catch_up(watcher)
        assert await scene.crediting_worker().credit_due() == 2
        assert (await scene.status_of(second), await scene.status_of(too_small)) == ("credited", "nothing")
        assert await scene.balances() == {"chain:BEP20:USDT": -12 * COIN, "ulla": 12 * COIN}
        assert side.token.balance(ulla) == 12 * COIN * BASE_UNITS + 2 * ALMOST_A_UNIT + 2
        # The remainders add up to two units, which belong to nobody.
        (compared,) = (await reconciler.reconcile())["chains"]
        assert (compared["sound"], compared["unexplained"], compared["difference"]) == (True, "0", "0.000002")
        assert [(line["kind"], line["effect"]) for line in compared["lines"]] == [("remainder", "0.000002")]
        (again,) = (await reconciler.reconcile())["chains"]
        assert again["lines"] == compared["lines"]
        await scene.expect_sound()

    in_scene(scenario)


def test_remainders_are_counted_from_the_first_deposit_on_and_beside_those_of_new_blocks(
    in_scene: InScene, side: EvmSide
) -> None:
    async def scenario(scene: DepositScene) -> None:
        reader = open_reader(side)
        watcher = Watcher(
            scene.connect, scene.connect, BEP20, reader, minimum_units=MINIMUM, clock=scene.clock
        )
        custody_reader = CustodyReader(reader, keeps_past=True)
        reconciler = Reconciler(scene.connect, lambda _: {BEP20: custody_reader}, clock=scene.clock)
        scene.closing.push_async_callback(watcher.close)
        scene.closing.push_async_callback(reconciler.close)
        await scene.catch_up(watcher)
        for blocks in (30, 3):
            send(side, address("ulla"), COIN, BASE_UNITS // 2)
            side.node.mine(blocks)
            await scene.catch_up(watcher)
            await scene.crediting_worker().credit_due()
        (compared,) = (await reconciler.reconcile())["chains"]
        assert [(line["kind"], line["effect"]) for line in compared["lines"]] == [("remainder", "0.000001")]
        send(side, address("ulla"), COIN, BASE_UNITS // 2)
        send(side, address("ulla"), COIN, BASE_UNITS // 2)
        side.node.mine(3)
        (compared,) = (await reconciler.reconcile())["chains"]
        lines = {line["kind"]: line["effect"] for line in compared["lines"]}
        assert lines == {"deposit unread": "2", "remainder": "0.000002"}
        assert compared["unexplained"] == "0"

    in_scene(scenario)


def test_a_withdrawal_is_paid_exactly_by_the_worker_with_the_key_of_its_family(
    in_shop: InShop, side: EvmSide, tmp_path: Path
) -> None:
    environment = {
        "WALLET_SANDBOX": "false",
        **side.settings,
        "WALLET_DATA": str(tmp_path),
        "WALLET_MASTER_KEY": "11" * 32,
        "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
    }
    folder = find_keys_folder(load_settings(environment))
    for name in (ERC20, SEED):
        store_key(folder, name, HOT_KEY.secret, PASSPHRASE, cost=QUICK_COST)
    wallet = address_of(HOT_KEY)
    side.node.fund(wallet, ETHER)
    send(side, wallet, 1000 * COIN, ALMOST_A_UNIT)
    side.node.mine(3)

    async def scenario(shop: PayingShop) -> None:
        shop.clock.now_ms = now_ms()
        await ensure_nonce_partitions(shop.connection, now_ms() // DAY_MS)
        order = await shop.order(12_345_670, to_eip55(RECIPIENT), chain=BEP20)
        stop = asyncio.Event()
        async with opened(shop.url, environment) as paying:
            working = asyncio.create_task(paying.run(stop))
            async with asyncio.timeout(120):
                while await shop.status(order) != 2:
                    await asyncio.to_thread(side.node.mine)
                    await asyncio.sleep(0.2)
            stop.set()
            await working
        assert side.token.balance(RECIPIENT) == order.arrival_units * BASE_UNITS
        assert (await shop.balances())["chain:BEP20:USDT"] == order.arrival_units
        [(tx_hash,)] = await shop.rows("select tx_hash from withdrawal")
        receipt = side.node.ask("eth_getTransactionReceipt", tx_hash)
        assert (receipt["status"], receipt["from"]) == ("0x1", "0x" + wallet.hex())

    in_shop(scenario)


def test_a_node_of_another_chain_or_token_is_reported(side: EvmSide) -> None:
    async def check(**changes: str) -> list[str]:
        given = {"WALLET_SANDBOX": "false", **side.settings, **changes}
        reader = open_chain_readers(load_settings(given))[BEP20]
        try:
            return await reader.check_setup()
        finally:
            await reader.close()

    [wrong] = asyncio.run(check(WALLET_BEP20_CHAIN_ID="56"))
    assert wrong.endswith("the chain id is 31356, the setting says 56")
    other = to_eip55(side.node.deploy("MockUSDT").address)
    [wrong] = asyncio.run(check(WALLET_BEP20_TOKEN=other))
    assert wrong.endswith("the token has 6 decimals and must have 18")


def test_everything_refuses_it_by_default_as_it_refuses_an_unknown_chain(shop: Shop) -> None:
    shop.fund("USDT", "100")
    told = []
    for chain in (BEP20, UNKNOWN):
        fields = withdrawal("1", chain=chain, address=ERC20_ADDRESS)
        answer = shop.client.expect(40004, CREATE, **fields)
        told.append((answer.code, answer.msg, answer.data))
    assert told[0] == told[1]
    assert told[0][1] == "chainType must be ERC20 or TRC20"
    assert shop.platform.base.settings.open_chains == ("ERC20", "TRC20")


def test_it_has_no_key_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = []
    for chain in (BEP20, UNKNOWN):
        found = CliRunner().invoke(app, ["keys", "import", chain])
        told.append((found.exit_code, found.stdout, found.stderr.replace(chain, "")))
    assert told[0] == told[1]
    assert told[0][0] == 2
    assert "'ERC20', 'TRC20'." in told[0][2]


def test_a_sandbox_that_plays_it_takes_it_wherever_a_chain_is_named(own_platform: RunPlatform) -> None:
    settings = {"sandbox_chains": ("ERC20", BEP20), "sandbox_confirm_ms": 50}
    with own_platform(working=True, **settings) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "100")
        order = shop.client.do(CREATE, **withdrawal("1", chain=BEP20, address=ERC20_ADDRESS.lower()))
        assert (order["chainType"], order["address"]) == (BEP20, ERC20_ADDRESS.lower())
        # The chain's address format decides: upper and lower case name the same address.
        again = shop.client.do(CREATE, **withdrawal("1", chain=BEP20, address=ERC20_ADDRESS))
        assert again["orderId"] == order["orderId"]
        shop.client.expect(40005, CREATE, **withdrawal("2", chain=BEP20))
        lost = to_eip55(CHAINS[BEP20].token)
        shop.client.expect(40005, CREATE, **withdrawal("2", chain=BEP20, address=lost))
        off = shop.client.expect(40004, CREATE, **withdrawal("2", chain="TRC20"))
        assert off.msg == "chainType must be ERC20 or BEP20"

        def is_paid() -> bool:
            found = shop.client.do("queryOrder", orderId=order["orderId"], mcOrderId="1")
            assert found["chainType"] == BEP20
            return bool(found["txnStatus"] == "2")

        wait_until(is_paid, "the order is paid")
        assert platform.rows("select status from callback") == [(2,)]
