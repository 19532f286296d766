"""What workers do when people ask for it, on development chains: compare, read again, plan and run sweeps."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from devnet.chains import HOT_KEY, run_devnet
from tests.processes.test_payout_workers import PASSPHRASE, QUICK_COST, opened
from tests.roles import as_web, as_worker

from merchant_wallet.approvals.acts import asked, causes, kinds
from merchant_wallet.approvals.acts.worker import ActWorker
from merchant_wallet.audit.records import Author
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.chains.keys.keystore import SEED, store_key
from merchant_wallet.processes.act_performers import make_performers
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.signers import find_keys_folder
from merchant_wallet.processes.worker import make_readers

Before = Callable[[int], Awaitable[None]]
"""What happens to an act before its worker has it."""


async def carry_out(
    url: str, environment: dict[str, str], kind: str, *, before: Before | None = None, **arguments: Any
) -> asked.AskedAct:
    """A page asks and a worker carries out, each with its own role."""
    chain = arguments["chain"]
    async with await db.connect(as_web(url)) as web:
        subject, author = kinds.format_chain(chain), Author("operator:ann", "192.0.2.1", now_ms())
        act = (await asked.ask(web, kind, subject, arguments, author=author)).act
        if before is not None:
            await before(act.act_no)
        base = make_base(load_settings(environment), as_worker(url))
        connect = partial(db.connect, base.url)
        worker = ActWorker(connect, make_performers(base, connect, make_readers))
        await worker.begin_waiting()
        await worker.finish_under_way()
        await worker.close()
        found = await asked.show(web, act.act_no)
    assert found is not None
    return found


async def die_with_opened_sweeps(url: str, act_no: int) -> None:
    """A worker opened a sweep, which has ended since, and died. Another person opened one, too."""
    async with await db.connect(url) as conn:
        await conn.execute(
            "update asked_act set state = 'running', fence = 1, worker = 'dead', begun_ms = asked_ms,"
            " claimed_until_ms = asked_ms where act_no = %s",
            [act_no],
        )
        await conn.execute(
            "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
            " values (1001, 'Shop', 'mk', 'USDT', 0)"
        )
        for address, opener in ((b"A" * 20, "operator:ann"), (b"B" * 20, "operator:bob")):
            await conn.execute(
                "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet,"
                " amount, coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms,"
                " step, ended_ms, cause) select 'ERC20', %s, 1001, 0, 0, 0, %s, 70000000, 1, 0, 0, 1, 1, %s,"
                " asked_ms, 'dropped', asked_ms, 'no coin' from asked_act where act_no = %s",
                [address, b"H" * 20, opener, act_no],
            )


async def list_runs(url: str) -> list[Any]:
    """What the audit log has of the newest run."""
    async with await db.connect(url) as conn:
        rows = await conn.execute(
            "select after->'sweepIds', (select array_agg(sweep_id) from sweep where actor = 'operator:ann')"
            " from audit_entry where action = 'sweep.run' order by audit_no desc limit 1"
        )
        return list(await rows.fetchone() or ())


def test_what_people_ask_for_is_done_on_real_chains(database_url: str, tmp_path: Path) -> None:
    async def scenario(environment: dict[str, str]) -> None:
        ask = partial(carry_out, database_url, environment)
        plan = await ask(kinds.PLAN_SWEEPS, chain="TRC20")
        assert (plan.state, plan.cause) == ("failed", causes.NO_WALLET)
        async with opened(database_url, environment) as payouts:
            await asyncio.wait_for(payouts.checked.wait(), 60)
        for chain in ("ERC20", "TRC20"):
            plan = await ask(kinds.PLAN_SWEEPS, chain=chain)
            assert (plan.state, plan.result and plan.result["addresses"]) == ("done", 0), plan.cause
            run = await ask(kinds.RUN_SWEEPS, chain=chain)
            assert (run.state, run.result and run.result["opened"]) == ("done", 0), run.cause
            compared = await ask(kinds.RECONCILE, chain=chain)
            assert compared.state == "done"
            assert compared.result is not None
            assert [one["chainType"] for one in compared.result["chains"]] == [chain]
        died = partial(die_with_opened_sweeps, database_url)
        run = await ask(kinds.RUN_SWEEPS, chain="ERC20", before=died)
        assert (run.state, run.result and run.result["opened"]) == ("done", 1), run.cause
        logged, opened_by_ann = await list_runs(database_url)
        assert logged == opened_by_ann != [], "the log has what the worker opened that died"
        unpriced = {name: value for name, value in environment.items() if not name.endswith("COIN_PRICE")}
        run = await carry_out(database_url, unpriced, kinds.RUN_SWEEPS, chain="ERC20")
        assert (run.state, run.cause) == ("failed", causes.NO_PRICE)
        missing = await ask(kinds.RESCAN, chain="ERC20", firstBlock=10**9)
        assert (missing.state, missing.cause) == ("failed", causes.NO_BLOCK)
        early = await ask(kinds.RESCAN, chain="ERC20", firstBlock=1, lastBlock=2)
        assert (early.state, early.cause) == ("failed", causes.NOT_READ_SO_FAR)

    with run_devnet() as devnet:
        environment = {
            **devnet.settings,
            "WALLET_DATA": str(tmp_path),
            "WALLET_MASTER_KEY": "11" * 32,
            "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
            "WALLET_ERC20_COIN_PRICE": "3000",
            "WALLET_TRC20_COIN_PRICE": "0.25",
        }
        folder = find_keys_folder(load_settings(environment))
        for name in ("ERC20", "TRC20", SEED):
            store_key(folder, name, HOT_KEY.secret, PASSPHRASE, cost=QUICK_COST)
        asyncio.run(scenario(environment))
