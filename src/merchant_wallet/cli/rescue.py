"""`rescue`: look for money that came in the wrong form, and have it moved to an address of the owner's."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import (
    AuditReasonOption,
    ChainArgument,
    DataOption,
    JsonOption,
    LimitOption,
    ProposalReasonOption,
)
from merchant_wallet.cli.second_person import describe_lone_change, print_changed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.custody.rescues.store import KeyOwner, RescueShown

app = typer.Typer(
    help="Find other tokens and coins at deposit addresses, and move them to the owner.", no_args_is_help=True
)

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The rescue's number.")]

COLUMNS: Final = terminal.Table(
    "rescueNo",
    "chainType",
    "address",
    "token",
    "amount",
    "arrived",
    "to",
    "step",
    "txHash",
    "why",
    spare=("arrived", "txHash", "token"),
)
SEEN_COLUMNS: Final = terminal.Table("chainType", "state", "sentence")
NOWHERE: Final = (
    "No chain of the settings has it. An EVM address is the same on every EVM chain, with the same key: "
    "whoever has the seed can move what lies there. A TRON address has another key. Ask the sender for the "
    "chain; docs/chains.md says what can be done."
)


@app.command()
def look(
    what: Annotated[str, typer.Argument(metavar="HASH|ADDRESS", help="A transaction or a deposit address.")],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a transaction moved, or what an address holds: which token or coin, how much, and whose it is.

    The chains of the settings are read. What a token says of itself is shown, and not trusted.

    \b
    Example:
      merchant-wallet rescue look 0x7f3a…
    """

    async def act(session: Session) -> dict[str, Any]:
        return await _look(session, what)

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
        return
    rows = [row for one in document["chains"] for row in _list_rows(one)]
    terminal.print_list({"seen": rows}, "seen", SEEN_COLUMNS, False)
    if not document["found"]:
        terminal.note(NOWHERE)


@app.command("propose")
def propose_rescue(
    chain: ChainArgument,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The deposit address.")],
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The contract, or the coin: ETH, TRX.")],
    to: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="An address of the owner's.")],
    amount: Annotated[
        str, typer.Option("--amount", metavar="UNITS|all", help="A whole number of smallest units.")
    ] = "all",
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose to move another token, or coin, from a deposit address. Another person must accept it.

    The signer must know where it goes: name the address in its WALLET_CHAIN_RESCUE_ADDRESSES, or use a cold
    wallet. Gas is sent from the hot wallet first. It counts as a cost of the network.

    \b
    Example:
      merchant-wallet rescue propose ERC20 0x742d… 0xa0b8… --to 0x9f8e… --reason "USDC of player-7"
    """

    async def act(session: Session) -> Any:
        return await _propose(session, (chain, address, token, amount, to), reason)

    document, proposed = run(data, act)
    print_changed(document if proposed is None else proposed, as_json)


@app.command("list")
def list_all(limit: LimitOption = 50, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List rescues, newest first: how far they are, what arrived, and what they cost.

    \b
    Example:
      merchant-wallet rescue list
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.custody.rescues import store

        found = await store.list_rescues(session.conn, limit=limit)
        return {"rescues": [describe_rescue(one) for one in found]}

    terminal.print_list(run(data, act), "rescues", COLUMNS, as_json)


@app.command()
def show(number: NumberArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show one rescue. If it can't go on, end it with `rescue end`.

    \b
    Example:
      merchant-wallet rescue show 3
    """

    async def act(session: Session) -> dict[str, Any]:
        return describe_rescue(await _find(session, number))

    terminal.print_answer(run(data, act), as_json)


@app.command()
def end(
    number: NumberArgument, reason: AuditReasonOption, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """End a rescue that can't go on, or that failed and was looked at. What is at its address stays there.

    One whose transaction is signed and may still count is not ended. Workers end most rescues that can't go
    on themselves, after ten minutes. Those wait in the inbox until a person ends them or proposes them again.

    \b
    Example:
      merchant-wallet rescue end 3 --reason "the token is worth nothing"
    """

    async def act(session: Session) -> dict[str, Any]:
        await _end(session, await _find(session, number), reason)
        return describe_rescue(await _find(session, number))

    terminal.print_answer(run(data, act), as_json)


def describe_rescue(one: "RescueShown") -> dict[str, Any]:
    """A rescue as a document. Amounts are smallest units, the fee is coin."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.chains import CHAINS, COINS
    from merchant_wallet.base.setting_types import show_coins

    def show_units(amount: int | None) -> str | None:
        return None if amount is None else str(amount)

    show_fee = show_coins(CHAINS[one.chain].coin_decimals)
    return {
        "rescueNo": one.rescue_no,
        "chainType": one.chain,
        "address": format_address(one.chain, one.address),
        "merchantId": one.merchant_id,
        "token": COINS[one.chain] if one.contract is None else format_address(one.chain, one.contract),
        "amount": show_units(one.rescued or one.asked) or "all",
        "arrived": show_units(one.arrived),
        "to": format_address(one.chain, one.recipient),
        "step": one.step,
        "sweepId": one.sweep_id,
        "txHash": one.tx_hash,
        "fee": None if one.fee is None else show_fee(one.fee),
        "why": one.cause or one.obstacle,
        "actor": one.actor,
        "proposalNo": one.proposal_no,
        "openedMs": one.opened_ms,
        "endedMs": one.ended_ms,
        "endedBy": one.ended_by,
    }


async def _find(session: Session, number: int) -> "RescueShown":
    from merchant_wallet.custody.rescues import store

    found = await store.list_rescues(session.conn, rescue_no=number)
    if not found:
        raise Failure(f"There is no rescue {number}.")
    return found[0]


async def _end(session: Session, one: "RescueShown", reason: str) -> None:
    from merchant_wallet.cli.second_person import describe_reason
    from merchant_wallet.cli.sweep import end_by_hand
    from merchant_wallet.custody.rescues import acts

    if one.sweep_id is not None:
        await end_by_hand(session, one.sweep_id, reason)
    elif not await acts.end(session.conn, session.author(describe_reason(reason)), one, reason):
        raise Failure(
            f"Rescue {one.rescue_no} was not ended: it has ended before, a worker took it further, or the"
            " database was rolled back."
        )


async def _find_owner(session: Session, merchant_id: int, address: bytes) -> "KeyOwner | None":
    from merchant_wallet.custody.rescues import store

    async with session.cell(merchant_id) as cell:
        return await store.find_owner(cell, merchant_id, address)


async def _look(session: Session, text: str) -> dict[str, Any]:
    from functools import partial

    from merchant_wallet.custody.rescues.sightings import NotAsked, Sightings
    from merchant_wallet.custody.rescues.two_person_changes import RescueRefusal
    from merchant_wallet.processes.nodes import open_chain_readers

    if session.settings.sandbox:
        raise Failure(str(RescueRefusal.SANDBOX.value))
    readers = open_chain_readers(session.settings)
    tokens = {code: settings.token for code, settings in session.settings.chains.items()}
    try:
        return await Sightings(session.conn, readers, tokens, partial(_find_owner, session)).look(text)
    except NotAsked as refused:
        raise Failure(str(refused)) from None
    finally:
        for reader in readers.values():
            await reader.close()


def _list_rows(one: dict[str, Any]) -> list[dict[str, Any]]:
    from merchant_wallet.custody.rescues.sightings import describe_moved

    sentences = [describe_moved(moved) for moved in one["moved"]] or [
        one["why"] or "nothing of a token or coin"
    ]
    return [{"chainType": one["chainType"], "state": one["state"], "sentence": each} for each in sentences]


async def _propose(session: Session, typed: tuple[str, str, str, str, str], reason: str | None) -> Any:
    from functools import partial

    from merchant_wallet.custody.rescues import two_person_changes as changes

    chain, address, token, amount, to = typed
    wanted = changes.WantedRescue(chain, address, token, amount, to)
    settings = session.settings
    tokens = {code: settings.chains[code].token for code in settings.open_chains}
    sandbox = settings.sandbox
    try:
        place, after = await changes.describe(
            session.conn, wanted, tokens, partial(_find_owner, session), sandbox=sandbox
        )
        async with session.conn.transaction():
            before = await changes.read_before(session.conn, chain, place)
            subject = changes.format_subject(chain, place)
            proposed = await propose(
                session, changes.TRANSFER, subject, (before, after), reason, may_be_alone=False
            )
            number = None
            if proposed is None:
                author = session.author(describe_lone_change(session, reason))
                number = await changes.begin(session.conn, author, (before, after), tokens, sandbox=sandbox)
    except changes.RescueRefused as refused:
        raise Failure(str(refused)) from None
    return {**after, "rescueNo": number}, proposed
