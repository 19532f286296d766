"""`sweep`: what lies at deposit addresses, what it would cost to move it to the hot wallet, and moving it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.options import OR_CHAINS, AuditReasonOption, Chain, DataOption, JsonOption
from merchant_wallet.cli.session import Session, find_actor, run

if TYPE_CHECKING:
    from merchant_wallet.chains.sweeps import Sweeper
    from merchant_wallet.custody.sweeps.plan import PlannedSweep, SweepPolicy
    from merchant_wallet.custody.sweeps.store import SweepShown
    from merchant_wallet.custody.sweeps.worker import SweepWorker

app = typer.Typer(
    help="Bring deposits to the hot wallet, for less than a set share of them.", no_args_is_help=True
)

ChainOption = Annotated[
    Chain | None,
    typer.Option("--chain", metavar="CHAIN", help=f"Only {OR_CHAINS}.", show_default=False),
]

PLAN_COLUMNS: Final = terminal.Table(
    "chainType",
    "address",
    "merchantId",
    "balance",
    "fuel",
    "fuelFee",
    "tokenFee",
    "cost",
    "costUsdt",
    "costPercent",
    "verdict",
    "why",
    spare=("fuelFee", "tokenFee", "fuel", "cost"),
)
SWEEP_COLUMNS: Final = terminal.Table(
    "sweepId",
    "chainType",
    "address",
    "amount",
    "step",
    "fuel",
    "fuelFee",
    "tokenFee",
    "tokenTxHash",
    "why",
    spare=("fuelFee", "tokenFee", "fuel"),
)
NOTHING_IN_SANDBOX: Final = "There is nothing to sweep: the sandbox's chains hold no real deposits."
GOES_ON: Final = "What is under way goes on with the workers, or with the next `merchant-wallet sweep run`."
INTERVAL_S: Final = 3.0
MAX_SHOWN: Final = 2000
WHY: Final = {
    "small": "less than WALLET_SWEEP_MINIMUM",
    "dear": "costs more than WALLET_SWEEP_SHARE, or than the chain's fee cap",
    "later": "others come first, see WALLET_SWEEP_AT_ONCE",
    "unpriced": "the coin's price is not set",
}
VERDICT_NAMES: Final = {"blocked": "hindered"}
STEP_NAMES: Final = {"top_up": "fuel"}
"""Verdicts and steps that are printed under the names they have always had."""


@app.command()
def plan(
    chain: ChainOption = None,
    again: Annotated[bool, typer.Option("--again", help="As if nothing had failed before.")] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what lies at deposit addresses, what moving it may cost at most, and whether it is worth it.

    Costs are in the chain's own coin and in USDT, at the price that you have set. Nothing is sent.

    \b
    Example:
      merchant-wallet sweep plan
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.processes.sweeps import open_reading_sweepers

        if session.settings.sandbox:
            return {"addresses": [], "note": NOTHING_IN_SANDBOX}
        chosen = _chosen(session, chain)
        sweepers = await open_reading_sweepers(session.settings, session.conn, chosen)
        if not sweepers:
            raise Failure("No hot wallet is known yet: workers make theirs known when they begin to pay.")
        addresses = []
        for name, sweeper in sweepers.items():
            try:
                planned_sweeps = await _make_plan(session, name, sweeper, again=again, min_units=1)
                addresses += [_describe(one) for one in planned_sweeps]
            finally:
                await sweeper.close()
        return {"addresses": addresses}

    document = run(data, act)
    if "note" in document and not as_json:
        typer.echo(document["note"])
        return
    terminal.print_list(document, "addresses", PLAN_COLUMNS, as_json)


@app.command("run")
def run_all(
    chain: ChainOption = None,
    again: Annotated[bool, typer.Option("--again", help="Also where the last try failed.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Take each sweep as far as it goes now, and don't wait.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move what is worth it to the hot wallet, and finish earlier sweeps.

    This needs the keystore or the signer, as `work` does. You may stop it at any time and run it again, also
    twice at once: nothing is moved or paid for twice.

    \b
    Example:
      merchant-wallet sweep run
    """

    async def act(session: Session) -> dict[str, Any]:
        if session.settings.sandbox:
            return {"sweeps": [], "note": NOTHING_IN_SANDBOX}
        return await _sweep(session, chain, again=again, once=once)

    document = run(data, act)
    if "note" in document and not as_json:
        typer.echo(document["note"])
        return
    terminal.print_list(document, "sweeps", SWEEP_COLUMNS, as_json)
    if any(sweep["step"] == "failed" for sweep in document["sweeps"]):
        raise typer.Exit(REFUSED)


@app.command("list")
def list_all(
    chain: ChainOption = None,
    only_open: Annotated[bool, typer.Option("--open", help="Only those under way.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MAX_SHOWN, help="At most so many.")] = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List sweeps, newest first: their progress, their costs and their transactions.

    \b
    Example:
      merchant-wallet sweep list --open
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.custody.sweeps import store

        sweeps = await store.list_sweeps(session.conn, chain=chain, only_open=only_open, limit=limit)
        return {"sweeps": [_describe_sweep(sweep) for sweep in sweeps]}

    terminal.print_list(run(data, act), "sweeps", SWEEP_COLUMNS, as_json)


@app.command()
def end(
    sweep_id: Annotated[int, typer.Argument(metavar="SWEEP", help="Its sweepId.")],
    reason: AuditReasonOption,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a sweep that can't go on. What is at its address stays there, for a later `sweep run --again`.

    A sweep whose transaction is signed and may still count is not ended. Workers end most sweeps that can't
    go on themselves, after ten minutes.

    \b
    Example:
      merchant-wallet sweep end 17 --reason "the token's issuer has blocked the address"
    """

    async def act(session: Session) -> dict[str, Any]:
        return {"sweeps": [_describe_sweep(await end_by_hand(session, sweep_id, reason))]}

    terminal.print_list(run(data, act), "sweeps", SWEEP_COLUMNS, as_json)


async def end_by_hand(session: Session, sweep_id: int, reason: str) -> "SweepShown":
    """End a sweep, also one that carries a rescue out. Raises Failure."""
    from merchant_wallet.cli.second_person import describe_reason
    from merchant_wallet.custody.sweeps import store
    from merchant_wallet.custody.sweeps.manual_end import NotEnded, end_sweep
    from merchant_wallet.processes.sweeps import open_reading_sweepers

    sweepers = await open_reading_sweepers(session.settings, session.conn)
    try:
        author = session.author(describe_reason(reason))
        await end_sweep(session.conn, author, sweepers, sweep_id, actor=author.actor, reason=reason)
    except NotEnded as error:
        raise Failure(f"Sweep {sweep_id} was not ended: {error}.") from None
    finally:
        for sweeper in sweepers.values():
            await sweeper.close()
    [shown] = await store.list_sweeps(session.conn, sweep_id=sweep_id)
    return shown


async def _sweep(session: Session, chain: str | None, *, again: bool, once: bool) -> dict[str, Any]:
    from merchant_wallet.audit.rollback.evidence import list_evidence
    from merchant_wallet.base import db
    from merchant_wallet.custody.sweeps import store
    from merchant_wallet.observability import logs
    from merchant_wallet.processes.key_checks import find_sweep_faults
    from merchant_wallet.processes.signers import open_signer
    from merchant_wallet.processes.sweeps import enter_wallets, open_sweep_worker

    if evidence := await list_evidence(session.conn):
        raise Failure(f"The database was rolled back, nothing is swept: {evidence[0].cause}.")
    chosen = _chosen(session, chain)
    # Log lines must not mix with the answer.
    logs.set_up("warning", session.settings.log_format)
    signer = open_signer(session.settings)
    if faults := await find_sweep_faults(session.conn, signer, chosen):
        raise Failure(f"Nothing is swept. {' '.join(faults)}")
    worker = await open_sweep_worker(session.settings, partial(db.connect, session.url), signer)
    try:
        sweepers = {name: worker.sweepers[name] for name in chosen if name in worker.sweepers}
        if not sweepers:
            raise Failure("No chain is set up here that could be swept.")
        await _insist_on_sound(sweepers)
        if faults := await enter_wallets(session.conn, sweepers):
            raise Failure(f"Nothing is swept. {' '.join(faults)}")
        watched: set[int] = set()
        for name, sweeper in sweepers.items():
            watched |= {sweep.sweep_id for sweep in await store.list_open(session.conn, name)}
            watched |= set(await _open(session, worker, name, sweeper, again))
        if await _follow(session, worker, watched, once=once):
            terminal.note(GOES_ON)
        shown = await store.list_sweeps(session.conn, limit=MAX_SHOWN)
    finally:
        await worker.close()
    return {"sweeps": [_describe_sweep(one) for one in shown if one.sweep_id in watched]}


async def _insist_on_sound(sweepers: Mapping[str, "Sweeper"]) -> None:
    wrong = [sentence for sweeper in sweepers.values() for sentence in await sweeper.check_setup()]
    if wrong:
        raise Failure("Chains and settings do not fit, nothing is swept. " + " ".join(wrong))


async def _open(
    session: Session, worker: "SweepWorker", chain: str, sweeper: "Sweeper", again: bool
) -> list[int]:
    from merchant_wallet.approvals.acts import kinds
    from merchant_wallet.custody.sweeps.plan import SWEEP, describe_request, describe_run
    from merchant_wallet.processes.sweeps import make_sweep_policy

    policy = make_sweep_policy(session.settings, chain, sweeper)
    if policy.coin_price_units is None:
        terminal.note(f"Nothing new is swept on {chain}: set WALLET_{chain}_COIN_PRICE.")
        return []
    planned_sweeps = await _make_plan(session, chain, sweeper, again=again, min_units=policy.minimum_units)
    if not any(planned.verdict == SWEEP for planned in planned_sweeps):
        return []
    # Each sweep commits by itself, so the record of what will begin is written first.
    action, subject, asked = kinds.RUN_SWEEPS, kinds.format_chain(chain), describe_request(chain, again=again)
    await session.author().record(session.conn, f"{action}.asked", subject, after=asked)
    opened = await worker.open(chain, planned_sweeps, policy, find_actor())
    run_facts = describe_run(opened, again=again)
    await session.author().afterwards.record(session.conn, action, subject, after=run_facts)
    return opened


async def _follow(session: Session, worker: "SweepWorker", watched: set[int], *, once: bool) -> int:
    """Continue until none of the watched sweeps is open. Returns how many still are.

    Their successors are watched too.
    """
    from merchant_wallet.custody.sweeps import store
    from merchant_wallet.custody.sweeps.worker import SweepsFailed

    progress = terminal.Progress()
    try:
        while True:
            try:
                await worker.follow(with_unsigned=True)
            except SweepsFailed as left:
                terminal.note(f"{left}; they are tried again.")
            shown = await store.list_sweeps(session.conn, limit=MAX_SHOWN)
            watched |= store.find_successors(watched, shown)
            still_open = [
                one.sweep_id
                for chain in worker.sweepers
                for one in await store.list_open(session.conn, chain)
            ]
            under_way = len(watched.intersection(still_open))
            if once or not under_way:
                return under_way
            progress.show(f"{len(watched) - under_way} of {len(watched)} swept")
            await asyncio.sleep(INTERVAL_S)
    finally:
        progress.end()


async def _make_plan(
    session: Session, chain: str, sweeper: "Sweeper", *, again: bool, min_units: int
) -> "list[PlannedSweep]":
    from merchant_wallet.custody.sweeps import store
    from merchant_wallet.custody.sweeps.plan import make_plan
    from merchant_wallet.custody.sweeps.survey import survey
    from merchant_wallet.processes.sweeps import make_sweep_policy

    policy: SweepPolicy = make_sweep_policy(session.settings, chain, sweeper)
    progress = terminal.Progress()
    async with session.connect_all() as databases:
        candidates = await survey(
            databases,
            chain,
            sweeper,
            minimum_units=policy.minimum_units,
            min_units=max(1, min_units),
            report=lambda done, total: progress.show(f"{chain}: {done} of {total} addresses looked at"),
        )
    progress.end()
    under_way = await store.count_open(session.conn, chain)
    return make_plan(candidates, policy, under_way=under_way, again=again)


def _chosen(session: Session, chain: str | None) -> tuple[str, ...]:
    """The chains to sweep on. Raises Failure if the given one has no node."""
    if chain is None:
        return session.settings.shown_chains
    if chain not in session.settings.open_chains:
        raise Failure(f"{chain} has no node in the settings: set WALLET_{chain}_RPC.")
    return (chain,)


def _describe(planned: "PlannedSweep") -> dict[str, Any]:
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.money import format_rate, format_units

    candidate, is_priced = planned.candidate, planned.cost_units is not None
    coin = _coin_of(candidate.chain)
    has_cost = planned.token_fee > 0
    return {
        "chainType": candidate.chain,
        "address": format_address(candidate.chain, candidate.address),
        "merchantId": candidate.merchant_id,
        "balance": format_units(candidate.balance_units),
        "fuel": coin(planned.top_up) if has_cost else None,
        "fuelFee": coin(planned.top_up_fee) if has_cost else None,
        "tokenFee": coin(planned.token_fee) if has_cost else None,
        "cost": coin(planned.cost) if has_cost else None,
        "costUsdt": format_units(planned.cost_units or 0) if is_priced else None,
        "share": format_rate(planned.share_e8 or 0) if is_priced else None,
        "costPercent": format_rate((planned.share_e8 or 0) * 100) if is_priced else None,
        "verdict": VERDICT_NAMES.get(planned.verdict, planned.verdict),
        "why": candidate.blocked_by or candidate.failed_cause or WHY.get(planned.verdict),
    }


def _describe_sweep(sweep: "SweepShown") -> dict[str, Any]:
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.money import format_units

    coin = _coin_of(sweep.chain)
    return {
        "sweepId": sweep.sweep_id,
        "chainType": sweep.chain,
        "address": format_address(sweep.chain, sweep.address),
        "merchantId": sweep.merchant_id,
        "amount": format_units(sweep.amount_units),
        "coinPrice": format_units(sweep.coin_price_units),
        "step": STEP_NAMES.get(sweep.step, sweep.step),
        "fuel": coin(sweep.top_up),
        "fuelFee": None if sweep.top_up_fee is None else coin(sweep.top_up_fee),
        "fuelTxHash": sweep.top_up_tx_hash,
        "tokenFee": None if sweep.token_fee is None else coin(sweep.token_fee),
        "tokenTxHash": sweep.token_tx_hash,
        "continues": sweep.continues,
        "why": sweep.cause or sweep.obstacle,
        "waitsSinceMs": sweep.stalled_ms,
        "actor": sweep.actor,
        "openedMs": sweep.opened_ms,
        "endedMs": sweep.ended_ms,
    }


def _coin_of(chain: str) -> Any:
    """How amounts of a chain's own coin are written."""
    from merchant_wallet.base.chains import CHAINS
    from merchant_wallet.base.setting_types import show_coins

    return show_coins(CHAINS[chain].coin_decimals)
