"""`reconcile`: compare the books with the chains, and record what operators moved themselves."""

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.options import (
    AmountArgument,
    Chain,
    ChainArgument,
    DataOption,
    JsonOption,
    LimitOption,
    read_amount,
)
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.custody.two_person_changes import Corrects

app = typer.Typer(invoke_without_command=True, no_args_is_help=False)

CHAIN_COLUMNS: Final = terminal.Table(
    "chainType",
    "sound",
    "block",
    "books",
    "chain",
    "hotWallets",
    "unswept",
    "explained",
    "unexplained",
)
LINE_COLUMNS: Final = terminal.Table("chainType", "kind", "count", "effect", "alarming", "meaning")
MOVEMENT_COLUMNS: Final = terminal.Table(
    "chainType",
    "kind",
    "txHash",
    "logIndex",
    "block",
    "sender",
    "recipient",
    "amount",
    "orderId",
    spare=("logIndex", "block"),
)
STRAY_COLUMNS: Final = terminal.Table("chainType", "address", "holds", "should")
TREASURY_COLUMNS: Final = terminal.Table(
    "chainType",
    "no",
    "direction",
    "amount",
    "txHash",
    "reason",
    "actor",
    "recordedMs",
    "corrects",
    "correctedBy",
    spare=("recordedMs", "actor"),
)


@app.callback()
def reconcile(
    ctx: typer.Context,
    chain: Annotated[
        Chain | None,
        typer.Option("--chain", help="Only this chain; then nothing is said of all custody."),
    ] = None,
    every_address: Annotated[
        bool,
        typer.Option(
            "--every-address",
            help="Look at the balance of every address that was ever issued, not only at the next few.",
        ),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare what should be in custody with what the chains say, and explain every difference.

    Exit status 1 if a difference is unexplained or needs an operator.

    \b
    Examples:
      merchant-wallet reconcile
      merchant-wallet reconcile --chain TRC20 --json
      merchant-wallet reconcile --every-address
    """
    if ctx.invoked_subcommand is not None:
        return

    async def act(session: Session) -> dict[str, Any]:
        from functools import partial

        from merchant_wallet.base import db
        from merchant_wallet.observability import logs
        from merchant_wallet.processes.custody_readers import CustodyReaders
        from merchant_wallet.processes.reconciliation import Reconciler

        # Log lines must not mix with the answer.
        logs.set_up("error", session.settings.log_format)
        base, connect = await session.open_base(), partial(db.connect, session.url)
        custody_readers = CustodyReaders(base, connect)
        reconciler = Reconciler(connect, custody_readers.open, cells=base.cells)
        try:
            return await reconciler.reconcile(chain, surveys_all=every_address)
        except LookupError as error:
            raise Failure(f"{error}.") from error
        finally:
            await reconciler.close()
            await custody_readers.close()

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
    else:
        _print_tables(document)
    if not document["sound"]:
        raise typer.Exit(REFUSED)


def _print_tables(document: dict[str, Any]) -> None:
    compared = [each for each in document["chains"] if "cause" not in each]
    terminal.print_table(CHAIN_COLUMNS, compared)
    lines = [{"chainType": each["chainType"], **line} for each in compared for line in each["lines"]]
    if lines:
        terminal.print_table(LINE_COLUMNS, lines, follows=True)
    movements = [
        {"chainType": line["chainType"], "kind": line["kind"], **movement}
        for line in lines
        for movement in line["movements"]
    ]
    if movements:
        terminal.print_table(MOVEMENT_COLUMNS, movements, follows=True)
    strays = [{"chainType": each["chainType"], **stray} for each in compared for stray in each["addresses"]]
    if strays:
        terminal.print_table(STRAY_COLUMNS, strays, follows=True)
    custody = document["custody"]
    typer.echo()
    terminal.print_answer({name: custody[name] for name in ("held", "owed", "shortage")}, False)
    from merchant_wallet.chains.issuer import describe_successor

    for each in document["chains"]:
        if "cause" in each:
            terminal.note(f"{each['chainType']} could not be compared: {each['cause']}")
        elif each["successor"] is not None:
            terminal.note(f"{each['chainType']}: {describe_successor(each['successor'])}.")
    for currency, amount in document["imbalance"].items():
        terminal.note(
            f"The books' accounts of {currency} add up to {amount} instead of 0: see `book verify`."
        )
    terminal.note("Sound." if document["sound"] else "An operator must look.")


@app.command()
def record(
    direction: Annotated[
        Literal["IN", "OUT"],
        typer.Argument(metavar="IN|OUT", help="Into custody or out of it.", show_default=False),
    ],
    chain: ChainArgument,
    amount: AmountArgument,
    tx_hash: Annotated[str, typer.Option("--tx", metavar="HASH", help="The transaction that moved it.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept for ever.")],
    corrects: Annotated[
        str,
        typer.Option(
            "--corrects",
            metavar="NO|none",
            help="The record that this one takes back. none: it takes none back.",
            show_default=False,
        ),
    ] = "",
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record USDT that you moved yourself, into a hot wallet or out of it. No book changes.

    Record it when it is final, with everything that the transaction moved. Correct a mistake with a record of
    the same transaction and amount in the other direction that names the wrong one: --corrects and its number
    in `reconcile treasury`. Then neither explains anything, and you may record what is right. Outside the
    sandbox a record is only proposed, and another person accepts it.

    \b
    Examples:
      merchant-wallet reconcile record IN ERC20 5000 --tx 0x12… --reason "float for October"
      merchant-wallet reconcile record OUT ERC20 5000 --tx 0x12… --corrects 7 --reason "another chain"
    """
    units, name = read_amount(amount), _read_hash(chain, tx_hash)
    number = _read_corrects(corrects)
    if units == 0 or not reason.strip():
        raise Failure("AMOUNT must be more than 0, and --reason must say why.")

    async def act(session: Session) -> "tuple[dict[str, Any], ProposedChange | None]":
        from merchant_wallet.cli.second_person import describe_lone_change, propose
        from merchant_wallet.custody import two_person_changes as changes

        await _insist_on_chain(session, chain)
        new = changes.NewRecord(chain, direction, units, name, number)
        await changes.check(session.conn, new)
        facts, subject = (changes.UNRECORDED, changes.describe_record(new)), changes.format_subject(new)
        if (proposed := await propose(session, new.kind, subject, facts, reason)) is not None:
            return {}, proposed
        author = session.author(describe_lone_change(session, reason))
        recorded = await changes.record(session.conn, author, new, reason)
        movement = {"no": recorded, "direction": direction, "amount": amount, "txHash": name}
        if new.corrects is not None:
            movement["corrects"] = new.corrects
        return {"chainType": chain, **movement}, None

    from merchant_wallet.custody.two_person_changes import RecordRefusal, RecordRefused

    try:
        document, proposed = run(data, act)
    except RecordRefused as refused:
        named = refused.refusal is RecordRefusal.UNNAMED
        hint = f" Give --corrects {refused.facts['no']}, or --corrects none." if named else ""
        raise Failure(f"{refused} Nothing was changed.{hint}") from None
    from merchant_wallet.cli.second_person import print_changed

    print_changed(document if proposed is None else proposed, as_json)


@app.command()
def treasury(
    limit: LimitOption = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what operators have recorded, newest first.

    \b
    Example:
      merchant-wallet reconcile treasury
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.money import format_units
        from merchant_wallet.custody import treasury

        shown = await treasury.list_treasury(session.conn, limit)
        return {
            "treasury": [
                {
                    "chainType": each.chain,
                    "no": each.movement_no,
                    "direction": each.direction,
                    "amount": format_units(each.amount_units),
                    "txHash": each.tx_hash,
                    "reason": each.reason,
                    "actor": each.actor,
                    "recordedMs": each.recorded_ms,
                    "corrects": each.corrects,
                    "correctedBy": each.corrected_by,
                }
                for each in shown
            ]
        }

    terminal.print_list(run(data, act), "treasury", TREASURY_COLUMNS, as_json)


async def _insist_on_chain(session: Session, chain: str) -> None:
    """Raises Failure if the chain is neither in the settings nor has a hot wallet."""
    from merchant_wallet.hot_wallet.store import find_address

    if chain in session.settings.shown_chains or await find_address(session.conn, chain):
        return
    raise Failure(f"{chain} is off: it has no node in the settings, and no hot wallet is known.")


def _read_corrects(text: str) -> "Corrects":
    """The record that is corrected. Raises Failure."""
    from merchant_wallet.custody.two_person_changes import parse_corrects

    try:
        return parse_corrects(text)
    except ValueError:
        raise Failure("--corrects must be a record's number in `reconcile treasury`, or none.") from None


def _read_hash(chain: str, text: str) -> str:
    """A transaction's hash in the form of its chain. Raises Failure."""
    from merchant_wallet.base.chains import is_evm

    digits = text.lower().removeprefix("0x")
    if len(digits) != 64 or not all(digit in "0123456789abcdef" for digit in digits):
        raise Failure("--tx must be the transaction's hash, 64 hexadecimal digits.")
    return f"0x{digits}" if is_evm(chain) else digits
