"""The payout workers: they pay on real chains once these pass the checks, with every part configured."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from devnet.chains import HOT_KEY, run_devnet
from tests.roles import as_worker
from tests.withdrawals.conftest import InShop, Shop
from tests.withdrawals.conftest import in_shop as in_shop

from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError, load_settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import WorkerConnection, run_workers
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.chains.transport import Admission
from merchant_wallet.hot_wallet.store import list_wallets
from merchant_wallet.processes.base import make_base, make_writer
from merchant_wallet.processes.payout_workers import PayoutWorkers, enter_wallets, open_payout_workers
from merchant_wallet.processes.signers import find_keys_folder

PASSPHRASE = "a passphrase of the tests"
QUICK_COST = 1 << 12


def test_nothing_is_paid_before_the_chains_fit_the_settings(in_shop: InShop) -> None:
    async def scenario(shop: Shop) -> None:
        order, chain, stop = await shop.order(), shop.scripted(), asyncio.Event()
        asked: list[int] = []

        async def check() -> list[str]:
            asked.append(len(chain.built))
            return ["the chain id is 5, the setting says 1"] if len(asked) < 3 else []

        async def end(_: bytes) -> None:
            stop.set()

        chain.on_broadcast = end
        workers = PayoutWorkers(shop.payer(chain), shop.gaps({}), check)
        await run_workers([workers.run, partial(workers.keep_fit, check_interval_s=0)], stop)
        assert asked == [0, 0, 0]
        assert [payout.payout_id for payout in chain.built] == [order.order_id]

    in_shop(scenario)


def test_a_worker_that_is_stopped_while_the_chains_do_not_fit_ends_without_paying(in_shop: InShop) -> None:
    async def scenario(shop: Shop) -> None:
        await shop.order()
        chain, stop = shop.scripted(), asyncio.Event()

        async def check() -> list[str]:
            stop.set()
            return ["there is no contract at the token's address"]

        workers = PayoutWorkers(shop.payer(chain), shop.gaps({}), check)
        await run_workers([workers.run, workers.keep_fit], stop)
        assert (chain.built, workers.checked.is_set()) == ([], False)

    in_shop(scenario)


def test_nodes_are_checked_again_where_only_an_apart_cell_is_paid(in_shop: InShop) -> None:
    """Such a process never runs the workers of home."""

    async def scenario(shop: Shop) -> None:
        stop, found = asyncio.Event(), [Admission(["away"], False), Admission([], True)]
        wrong: list[list[str]] = []

        async def admit_nodes() -> dict[str, Admission]:
            wrong.append(workers.wrong)
            if len(found) == 1:
                stop.set()
            return {"ERC20": found.pop(0)}

        workers = PayoutWorkers(shop.payer(shop.scripted()), shop.gaps({}), admit_nodes=admit_nodes)
        await workers.keep_fit(stop, admit_interval_s=0)
        assert workers.checked.is_set()
        assert wrong == [[], ["away"]]
        assert workers.wrong == []

    in_shop(scenario)


@asynccontextmanager
async def opened(url: str, environment: dict[str, str]) -> AsyncIterator[PayoutWorkers]:
    """The payout workers, as the worker side makes them from its environment, while it keeps them fit."""
    base = make_base(load_settings(environment), as_worker(url))
    connect, writer = partial(db.connect, base.url), make_writer(base, connections=2)
    await writer.open()
    worker_connection = WorkerConnection(connect)
    async with AsyncExitStack() as closing:
        closing.push_async_callback(writer.close)
        closing.push_async_callback(worker_connection.close)
        payout_workers = await open_payout_workers(base, connect, writer, worker_connection)
        closing.push_async_callback(payout_workers.close)
        stop = asyncio.Event()
        keeping = asyncio.create_task(payout_workers.keep_fit(stop, check_interval_s=0.1))
        yield payout_workers
        stop.set()
        await keeping


def test_settings_and_a_keystore_are_all_it_takes_to_pay_on_both_chains(
    in_shop: InShop, database_url: str, tmp_path: Path
) -> None:
    with run_devnet() as devnet:
        environment = {
            **devnet.settings,
            "WALLET_DATA": str(tmp_path),
            "WALLET_MASTER_KEY": "11" * 32,
            "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
        }
        folder = find_keys_folder(load_settings(environment))
        for name in ("ERC20", "TRC20", SEED):
            store_key(folder, name, HOT_KEY.secret, PASSPHRASE, cost=QUICK_COST)

        async def scenario(shop: Shop) -> None:
            shop.clock.now_ms = now_ms()
            await ensure_nonce_partitions(shop.connection, now_ms() // DAY_MS)
            erc20, trc20 = await shop.order(), await shop.order(address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC")
            stop = asyncio.Event()
            async with opened(shop.url, environment) as payout_workers:
                working = asyncio.create_task(payout_workers.run(stop))
                await _make_blocks_until_paid(shop, devnet, erc20, trc20)
                stop.set()
                await working
            assert [wallet.chain for wallet in await list_wallets(shop.connection)] == ["ERC20", "TRC20"]
            assert await shop.rows("select count(*) from payout_signed") == [(2,)]

        in_shop(scenario)


def test_the_wallets_that_pay_are_known_before_the_first_order(in_shop: InShop) -> None:
    async def scenario(shop: Shop) -> None:
        chain = shop.scripted()
        await enter_wallets(shop.connection, {"ERC20": chain})
        assert [(each.chain, each.address) for each in await list_wallets(shop.connection)] == [
            ("ERC20", chain.wallet)
        ]
        # A worker with another key replaces the wallet only once nothing of the old one is open.
        await shop.order()
        payer = shop.payer(chain)
        await payer.start_due()
        await payer.finish()
        other = shop.scripted()
        other.wallet = bytes(19) + b"\x07"
        await enter_wallets(shop.connection, {"ERC20": other})
        assert [each.address for each in await list_wallets(shop.connection)] == [chain.wallet]
        await payer.close()

    in_shop(scenario)


async def _make_blocks_until_paid(shop: Shop, devnet: Any, *orders: Any) -> None:
    async with asyncio.timeout(120):
        while {await shop.status(order) for order in orders} != {2}:
            await asyncio.to_thread(devnet.evm.mine)
            await asyncio.to_thread(devnet.tron.mine)
            await asyncio.sleep(0.5)


def test_a_chain_without_a_key_is_refused(database_url: str, tmp_path: Path) -> None:
    environment = {
        "WALLET_SANDBOX": "false",
        "WALLET_ERC20_RPC": "http://127.0.0.1:1",
        "WALLET_DATA": str(tmp_path),
        "WALLET_MASTER_KEY": "11" * 32,
        "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
    }
    store_key(
        find_keys_folder(load_settings(environment)), "TRC20", HOT_KEY.secret, PASSPHRASE, cost=QUICK_COST
    )

    async def scenario() -> None:
        async with opened(database_url, environment):
            pass

    with pytest.raises(ConfigError, match="no key for ERC20"):
        asyncio.run(scenario())
