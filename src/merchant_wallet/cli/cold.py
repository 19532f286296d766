"""`cold`: how much may stay hot, the cold wallets, and transfers between the two."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.cold_output import (
    CHAIN_COLUMNS,
    TRANSFER_COLUMNS,
    describe_transfer,
    list_chains,
)
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.lookalikes import list_lookalikes, note_lookalikes
from merchant_wallet.cli.options import (
    AmountArgument,
    ChainArgument,
    DataOption,
    JsonOption,
    LimitOption,
    ProposalReasonOption,
    read_amount,
)
from merchant_wallet.cli.second_person import describe_lone_change, print_changed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.custody.cold.store import ColdTransfer
    from merchant_wallet.custody.cold.two_person_changes import WantedTransfer

app = typer.Typer(help="Keep money cold: limits, cold wallets and transfers.", no_args_is_help=True)

MAX_SIGNED_CHARS: Final = 20_000

TransferArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The transfer's number.")]
Done = tuple[dict[str, Any], "ProposedChange | None"]


@app.command()
def show(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show each chain's limits, what its hot and cold wallets hold, and what should move.

    \b
    Example:
      merchant-wallet cold show
    """

    async def act(session: Session) -> dict[str, Any]:
        return {"chains": await list_chains(session)}

    terminal.print_list(run(data, act), "chains", CHAIN_COLUMNS, as_json)


@app.command("list")
def list_all(limit: LimitOption = 50, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List transfers between hot and cold wallets, newest first.

    \b
    Example:
      merchant-wallet cold list
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.custody.cold import store

        found = await store.list_transfers(session.conn, limit=limit)
        return {"transfers": [describe_transfer(one) for one in found]}

    terminal.print_list(run(data, act), "transfers", TRANSFER_COLUMNS, as_json)


@app.command()
def wallet(
    chain: ChainArgument,
    address: Annotated[str, typer.Argument(metavar="ADDRESS|none", help="none retires the present one.")],
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a chain's cold wallet. Another person must accept it.

    The signer must know the address too: name it in the signer's WALLET_CHAIN_COLD_ADDRESSES.

    \b
    Example:
      merchant-wallet cold wallet ERC20 0x742d… --reason "the wallet in the safe"
    """

    async def act(session: Session) -> Done:
        from functools import partial

        from merchant_wallet.custody.cold import two_person_changes as changes
        from merchant_wallet.reporting import orders
        from merchant_wallet.reporting.lookalikes import NewAddress

        tokens = {code: settings.token for code, settings in session.settings.chains.items()}
        text = None if address == "none" else address
        async with session.reach() as cells:
            count_orders = partial(orders.count_to, cells)
            after = await changes.describe_address(session.conn, chain, text, tokens[chain], count_orders)
        before = await changes.read_address(session.conn, chain)
        document, proposed = await _change(
            session,
            (changes.ADDRESS, chain),
            (before, after),
            reason,
            lambda author: changes.set_address(session.conn, author, chain, (before, after), tokens),
        )
        new = [] if text is None else [NewAddress(None, text)]
        return {**document, "lookalikes": await list_lookalikes(session, new)}, proposed

    document, proposed = _run(data, act)
    alike = document["lookalikes"]
    print_changed(document if proposed is None else proposed, as_json, lookalikes=alike)
    note_lookalikes(alike)


@app.command()
def limits(
    chain: ChainArgument,
    most: Annotated[str, typer.Option("--most", metavar="AMOUNT", help="At most so much is hot.")],
    target: Annotated[str, typer.Option("--target", metavar="AMOUNT", help="Transfers bring it there.")],
    refill_below: Annotated[str, typer.Option("--refill-below", metavar="AMOUNT", help="Then refill.")],
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set how much may stay hot on a chain. Another person must accept it.

    \b
    Example:
      merchant-wallet cold limits ERC20 --most 50000 --target 30000 --refill-below 10000 --reason "a week"
    """
    units = [read_amount(text) for text in (refill_below, target, most)]

    async def act(session: Session) -> Done:
        from merchant_wallet.custody.cold import two_person_changes as changes
        from merchant_wallet.custody.cold.limits import Limits

        after = changes.describe_limits(Limits(*units))
        before = await changes.read_limits(session.conn, chain)
        return await _change(
            session,
            (changes.LIMITS, chain),
            (before, after),
            reason,
            lambda author: changes.set_limits(session.conn, author, chain, (before, after)),
        )

    _print(_run(data, act), as_json)


@app.command()
def move(
    direction: Annotated[
        Literal["to-cold", "to-hot"], typer.Argument(metavar="to-cold|to-hot", show_default=False)
    ],
    chain: ChainArgument,
    amount: AmountArgument,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Build it, to be signed on another machine.")
    ] = False,
    tx_hash: Annotated[
        str | None, typer.Option("--tx", metavar="HASH", help="It was made elsewhere: record it.")
    ] = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose a transfer between hot and cold wallet. It begins when another person accepts it.

    Without --elsewhere and --tx the workers' signer signs it; that is only possible to the cold wallet.

    \b
    Examples:
      merchant-wallet cold move to-cold ERC20 20000 --reason "above the limit"
      merchant-wallet cold move to-hot TRC20 15000 --elsewhere --reason "refill"
      merchant-wallet cold move to-hot TRC20 15000 --tx 7f3a… --reason "made with the hardware wallet"
    """
    from merchant_wallet.custody.cold.limits import (
        ELSEWHERE,
        RECORDED,
        SIGNER,
        TO_COLD,
        TO_HOT,
        Direction,
        Way,
    )
    from merchant_wallet.custody.cold.two_person_changes import WantedTransfer

    if elsewhere and tx_hash:
        raise Failure("Give --elsewhere or --tx, not both.")
    way: Way = RECORDED if tx_hash else ELSEWHERE if elsewhere else SIGNER
    towards: Direction = TO_COLD if direction == "to-cold" else TO_HOT
    wanted = WantedTransfer(towards, way, read_amount(amount), tx_hash)

    async def act(session: Session) -> Done:
        return await _begin(session, chain, wanted, reason)

    _print(_run(data, act), as_json)


@app.command()
def unsigned(number: TransferArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Print what must be signed elsewhere. With --json it is the file for the offline signer.

    \b
    Example:
      merchant-wallet cold unsigned 3 --json > to-sign.json
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.custody.cold.signatures import describe_unsigned

        one = await _find(session, number)
        if not one.waits_for_signature:
            raise Failure(f"Transfer {number} does not wait for a signature: it is {one.step}.")
        return describe_unsigned(one)

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
        return
    terminal.print_answer({name: text for name, text in document.items() if name != "transaction"}, False)


@app.command()
def signed(
    number: TransferArgument,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The signer's answer. Default: standard input."),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring back a signature that was made elsewhere. It is checked, and the workers send the transaction.

    \b
    Example:
      merchant-wallet cold signed 3 --file signed.json
    """
    try:
        text = file.read_text("utf-8") if file else sys.stdin.read(MAX_SIGNED_CHARS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"The answer can't be read: {error}.") from None

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.chains.protocol import Blocked
        from merchant_wallet.custody.cold import acts
        from merchant_wallet.custody.cold.signatures import SignatureRefused, read_answer

        one = await _find(session, number)
        try:
            made = read_answer(one, text)
        except SignatureRefused as refused:
            raise Failure(str(refused)) from None
        try:
            is_taken = await acts.take_signature(session.conn, session.author(), one, made)
        except Blocked as blocked:
            raise Failure(f"Nothing may leave the hot wallet now: {blocked}.") from None
        if not is_taken:
            raise Failure(f"Transfer {number} does not wait for a signature any more.")
        return describe_transfer(await _find(session, number))

    terminal.print_answer(run(data, act), as_json)


@app.command()
def drop(number: TransferArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Give a transfer up, as long as nothing of it can have left the hot wallet.

    The workers ask the chain first. What somebody has signed and sent elsewhere counts all the same.

    \b
    Example:
      merchant-wallet cold drop 3
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.custody.cold import acts

        one = await _find(session, number)
        if not await acts.drop(session.conn, session.author(), one):
            raise Failure(f"Transfer {number} can't be given up: it is {one.step}.")
        return describe_transfer(await _find(session, number))

    terminal.print_answer(run(data, act), as_json)


async def _begin(session: Session, chain: str, wanted: "WantedTransfer", reason: str | None) -> Done:
    from merchant_wallet.custody.cold import two_person_changes as changes

    before = await changes.read_wallets(session.conn, chain)
    after = changes.describe_transfer(chain, wanted, before, is_sandbox=session.settings.sandbox)
    return await _change(
        session,
        (changes.TRANSFER, chain),
        (before, after),
        reason,
        lambda author: changes.begin_transfer(session.conn, author, chain, (before, after)),
        may_be_alone=False,
    )


async def _change(
    session: Session,
    what: tuple[str, str],
    facts: tuple[Any, Any],
    reason: str | None,
    apply: Any,
    *,
    may_be_alone: bool = True,
) -> Done:
    """Propose a change, or make it if one person is enough. `what` is the kind and the chain."""
    from merchant_wallet.custody.cold.two_person_changes import format_subject

    kind, subject = what[0], format_subject(what[1])
    async with session.conn.transaction():
        proposed = await propose(session, kind, subject, facts, reason, may_be_alone=may_be_alone)
        if proposed is None:
            await apply(session.author(describe_lone_change(session, reason)))
    return {"chainType": what[1], **facts[1]}, proposed


def _run(data: Path | None, act: Any) -> Done:
    from merchant_wallet.custody.cold.two_person_changes import ColdRefused

    try:
        done: Done = run(data, act)
    except ColdRefused as refused:
        raise Failure(str(refused)) from None
    return done


def _print(done: Done, as_json: bool) -> None:
    document, proposed = done
    print_changed(document if proposed is None else proposed, as_json)


async def _find(session: Session, number: int) -> "ColdTransfer":
    from merchant_wallet.custody.cold import store

    found = await store.read_transfer(session.conn, number)
    if found is None:
        raise Failure(f"There is no transfer {number}.")
    return found
