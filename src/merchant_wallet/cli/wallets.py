"""`wallets`: the hot wallets that pay withdrawals, what stops them, and an operator's decisions about
them.
"""

from typing import TYPE_CHECKING, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.options import (
    AuditReasonOption,
    ChainArgument,
    DataOption,
    JsonOption,
    ProposalReasonOption,
    StopReasonOption,
    keep_former_name,
)
from merchant_wallet.cli.second_person import describe_lone_change, print_proposed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.hot_wallet.store import WalletShown

app = typer.Typer(help="Look at the hot wallets, stop them and let them go on.", no_args_is_help=True)

WALLET_COLUMNS: Final = terminal.Table(
    "chainType",
    "address",
    "funds",
    "promised",
    "openOrders",
    "nextSequence",
    "checkedMs",
    "frozenMs",
    "frozenCause",
)
STOP_COLUMNS: Final = terminal.Table("chainType", "actor", "cause", "sinceMs")
WAITING_COLUMNS: Final = terminal.Table("merchantId", "orderId", "chainType", "obstacle", "cause", "sinceMs")
MAX_WAITING: Final = 100


@app.command("list")
def list_all(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show every hot wallet, who stopped payouts and why, and the withdrawals that wait.

    \b
    Example:
      merchant-wallet wallets list
    """
    document = run(data, _read)
    if as_json:
        terminal.print_document(document)
        return
    terminal.print_table(WALLET_COLUMNS, document["wallets"])
    if document["stops"]:
        terminal.print_table(STOP_COLUMNS, document["stops"], follows=True)
    if document["waiting"]:
        terminal.print_table(WAITING_COLUMNS, document["waiting"], follows=True)


@app.command()
def stop(
    chain: ChainArgument, reason: StopReasonOption, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Sign nothing new on a chain. What was signed before is still sent.

    A repeated command changes nothing, and shows your first reason and its time.

    \b
    Example:
      merchant-wallet wallets stop ERC20 --reason "the node shows odd balances"
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.withdrawals import acts

        is_new = await acts.stop_chain(session.conn, session.author(), chain, reason)
        return {**await _read(session), "repeated": not is_new}

    document = run(data, act)
    terminal.print_list(document, "stops", STOP_COLUMNS, as_json)
    terminal.note_repeated(document, f"You had stopped payouts on {chain}")


@app.command()
def resume(
    chain: ChainArgument,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume a chain's payouts, when you have seen that wallet, books and chain agree.

    This removes every stop, also those of others, and resumes a frozen wallet. Outside the sandbox it is only
    proposed: give a --reason, and another person accepts it. Frozen orders stay frozen; see `withdrawals
    resume`.

    \b
    Examples:
      merchant-wallet wallets resume ERC20
      merchant-wallet wallets resume TRC20 --reason "the node was replaced, balances agree"
    """

    async def act(session: Session) -> "tuple[dict[str, Any], ProposedChange | None]":
        from merchant_wallet.approvals.changes import ChangeRefused
        from merchant_wallet.hot_wallet import stops
        from merchant_wallet.withdrawals import acts

        async with session.conn.transaction():
            before, after = await stops.read_stopped(session.conn, chain), acts.describe_resumed()
            if before["stoppedBy"] is None:
                return {**await _read(session), "repeated": True}, None
            subject = acts.format_subject(chain)
            proposed = await propose(session, acts.THAW, subject, (before, after), reason)
            if proposed is None:
                author = session.author(describe_lone_change(session, reason))
                try:
                    await acts.resume_chain(session.conn, author, chain, before)
                except ChangeRefused as refused:
                    raise Failure(str(refused)) from None
        return {**await _read(session), "repeated": False}, proposed

    document, proposed = run(data, act)
    if proposed is not None:
        print_proposed(proposed, as_json)
        return
    terminal.print_list(document, "wallets", WALLET_COLUMNS, as_json)
    if document["repeated"]:
        terminal.note(f"Payouts on {chain} are neither frozen nor stopped: nothing was changed.")


keep_former_name(app, "freeze", "stop", stop)
keep_former_name(app, "thaw", "resume", resume)


@app.command()
def take(
    chain: ChainArgument, reason: AuditReasonOption, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Make the wallet of the key here the chain's hot wallet, when you know that it is yours.

    Only a keystore without a seed needs this: nothing shows whose its keys are. With the seed of this
    database the workers take the wallet themselves. The wallet stays an address of yours for ever.

    \b
    Example:
      merchant-wallet wallets take ERC20 --reason "the key that was imported from the safe today"
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.base.config import ConfigError
        from merchant_wallet.chains.signer import SignerAway
        from merchant_wallet.cli.second_person import describe_reason
        from merchant_wallet.hot_wallet.store import WalletMoved, open_wallet
        from merchant_wallet.processes.key_checks import find_key_faults
        from merchant_wallet.processes.signers import open_signer

        if session.settings.sandbox:
            raise Failure("The sandbox has no keys.")
        try:
            signer = open_signer(session.settings)
            wallets, faults = await signer.wallets(), await find_key_faults(session.conn, signer)
        except (ConfigError, SignerAway) as error:
            raise Failure(str(error), CANNOT_RUN) from None
        if chain not in wallets:
            raise Failure(f"The signer has no key for {chain}.")
        if faults:
            raise Failure(" ".join(faults))
        author = session.author(describe_reason(reason))
        try:
            await open_wallet(session.conn, chain, wallets[chain], now_ms(), author=author)
        except WalletMoved as moved:
            raise Failure(f"Not taken: {moved}.") from None
        return await _read(session)

    terminal.print_list(run(data, act), "wallets", WALLET_COLUMNS, as_json)


async def _read(session: Session) -> dict[str, Any]:
    from merchant_wallet.hot_wallet.stops import list_stops
    from merchant_wallet.hot_wallet.store import list_wallets
    from merchant_wallet.withdrawals.payouts import list_blocked

    stops = [
        {"chainType": stop.chain, "actor": stop.actor, "cause": stop.cause, "sinceMs": stop.since_ms}
        for stop in await list_stops(session.conn)
    ]
    waiting = [
        {
            "merchantId": order.merchant_id,
            "orderId": order.order_id,
            "chainType": order.chain,
            "obstacle": order.kind,
            "cause": order.cause,
            "sinceMs": order.since_ms,
        }
        for order in await list_blocked(session.conn, limit=MAX_WAITING)
    ]
    wallets = [_describe(wallet) for wallet in await list_wallets(session.conn)]
    return {"wallets": wallets, "stops": stops, "waiting": waiting}


def _describe(wallet: "WalletShown") -> dict[str, Any]:
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.money import format_units

    funds = None if wallet.funds_units is None else format_units(wallet.funds_units)
    return {
        "chainType": wallet.chain,
        "address": format_address(wallet.chain, wallet.address),
        "funds": funds,
        "promised": format_units(wallet.open_units),
        "openOrders": wallet.open_orders,
        "nextSequence": wallet.next_nonce,
        "checkedMs": wallet.checked_ms,
        "frozenMs": wallet.frozen_ms,
        "frozenCause": wallet.frozen_cause,
    }


async def read_payout(session: Session, merchant_id: int, order_id: int) -> dict[str, Any]:
    """What the payer knows of an order and everything it signed for it, for `withdrawals show`."""
    from merchant_wallet.withdrawals.acts import list_resumptions
    from merchant_wallet.withdrawals.payouts import read_signed, show_payout

    resumptions = [
        {"frozenMs": one.frozen_ms, "cause": one.cause, "resumedMs": one.at_ms, "resumedBy": one.actor}
        for one in await list_resumptions(session.conn, merchant_id, order_id)
    ]
    shown = await show_payout(session.conn, merchant_id, order_id)
    attempts = [
        {
            "attemptNo": stored.attempt_no,
            "txHash": stored.signed.tx_hash,
            "signedMs": stored.signed_ms,
            "broadcastMs": stored.broadcast_ms,
        }
        for stored in await read_signed(session.conn, merchant_id, order_id)
    ]
    return {
        "sequence": shown and shown.nonce,
        "obstacle": shown and shown.obstacle_kind,
        "obstacleCause": shown and shown.obstacle_cause,
        "obstacleSinceMs": shown and shown.obstacle_ms,
        "givenUpCause": shown and shown.given_up_cause,
        "frozenMs": shown and shown.frozen_ms,
        "frozenCause": shown and shown.frozen_cause,
        "attempts": attempts,
        "resumptions": resumptions,
    }
