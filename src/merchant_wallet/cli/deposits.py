"""`deposits`: what arrived on the chains. In the sandbox, also simulate a deposit."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.deposit_fields import describe, describe_reading, show_currencies
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.options import (
    OR_CHAINS,
    AmountArgument,
    AuditReasonOption,
    Chain,
    ChainArgument,
    DataOption,
    JsonOption,
    LimitOption,
    MerchantOption,
    SinceOption,
    UntilOption,
    read_address,
    read_amount,
    read_days,
    read_deposit_state,
)
from merchant_wallet.cli.session import Session, run
from merchant_wallet.deposits.deposit_states import State

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.reporting.deposits import DepositFilter, DepositLine

app = typer.Typer(help="Look at deposits; let one arrive in the sandbox.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table(
    "merchantId",
    "extUserId",
    "chainType",
    "txHash",
    "amount",
    "status",
    "cause",
    "confirmations",
    "credited",
    "rate",
    "seenMs",
    spare=("confirmations", "rate", "credited", "merchantId"),
)
CHAIN_COLUMNS = terminal.Table("chainType", "finalBlock", "headBlock", "movedMs", "alert")
SENDER = bytes.fromhex("00000000000000000000000000000000005a4d0e")
"""The sender of simulated deposits."""

StatusOption = Annotated[
    str | None,
    typer.Option(
        "--status",
        metavar="|".join(State),
        help="Only these. The words of the pages, such as too-little, mean the same.",
        autocompletion=lambda: list(State),
    ),
]
TransactionArgument = Annotated[
    str, typer.Argument(metavar="TX_HASH", help="The transaction, as its chain names it.")
]
PlaceOption = Annotated[
    int | None,
    typer.Option("--log-index", metavar="N", min=0, help="Which of its deposits, where several are held."),
]


@app.command("list")
def list_some(
    merchant: MerchantOption = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="EXT_USER_ID", help="Only this sub-user's (with --merchant)."),
    ] = None,
    status: StatusOption = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Only those to this address of ours.", show_default=False),
    ] = None,
    chain: Annotated[Chain | None, typer.Option(metavar="CHAIN", help="Only those on this chain.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: LimitOption = 100,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List deposits, newest first; without a merchant or a filter those that are not credited yet.

    \b
    Examples:
      merchant-wallet deposits list --merchant Shop
      merchant-wallet deposits list --merchant Shop --user alice --status seen
      merchant-wallet deposits list --status too-little
    """
    if merchant is None and user is not None:
        raise Failure("Name the merchant of the sub-user with --merchant.", CANNOT_RUN)
    from_ms, to_ms = read_days(since, until)
    recipient, state = read_address(address), read_deposit_state(status)
    is_filtered = bool(merchant or state or address or chain or since or until)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.reporting import paging
        from merchant_wallet.reporting.deposits import OPEN, DepositFilter

        number = None if merchant is None else (await session.find(merchant)).merchant_id
        statuses = (state,) if state else () if is_filtered else OPEN
        user_id = None if user is None or number is None else await _find_user(session, number, user)
        wanted = DepositFilter(number, statuses, chain, from_ms, to_ms, recipient, user_id)
        found = await _search(session, wanted, limit + 1)
        rows, last = paging.split_page(found, limit)
        lines = [describe(shown) for shown in rows]
        return {"deposits": lines, "more": last is not None, "awayCells": session.away}

    document = run(data, act)
    hidden = "Only deposits that are not credited are listed. --merchant MERCHANT shows all."
    terminal.print_list(
        document,
        "deposits",
        LIST_COLUMNS,
        as_json,
        show=show_currencies,
        hidden="" if is_filtered else hidden,
    )
    if document["more"]:
        terminal.note_more("a larger --limit shows them.")


async def _search(session: Session, wanted: "DepositFilter", limit: int) -> "list[DepositLine]":
    """The newest deposits that a filter finds in all cells, or in the merchant's."""
    from merchant_wallet.reporting.deposits import read_deposits

    if wanted.merchant_id is not None:
        async with session.cell(wanted.merchant_id) as cell:
            return await read_deposits(session.conn, cell, wanted, limit)
    async with session.reach_cells() as reached:
        found = [
            shown
            for cell in reached.connections
            for shown in await read_deposits(session.conn, cell, wanted, limit)
        ]
    reached.note_away()
    return sorted(found, key=lambda shown: shown.page_key, reverse=True)[:limit]


async def _find_user(session: Session, merchant_id: int, ext_user_id: str) -> int:
    from merchant_wallet.sub_users import controls

    async with session.cell(merchant_id) as cell:
        return (await controls.read_by_ext_user_id(cell, merchant_id, ext_user_id)).user_id


async def _find(session: Session, tx_hash: str) -> "list[DepositLine]":
    """The deposits of one transaction in all cells."""
    from merchant_wallet.reporting.cells import reach_one
    from merchant_wallet.reporting.deposits import find_deposits

    async with session.reach_cells() as reached:
        found = [
            shown
            for cell in reached.connections
            for shown in await find_deposits(session.conn, reach_one(cell), tx_hash, limit=None)
        ]
    reached.note_away()
    return found


@app.command()
def show(tx_hash: TransactionArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show the deposits of a transaction and their status.

    \b
    Example:
      merchant-wallet deposits show 0x5f1c…
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.cli.search import resolve

        found = await _find(session, tx_hash)
        if not found:
            hit = await resolve(session, tx_hash, "deposit")
            found = await _find(session, hit.key.split("/")[1])
        return {"deposits": [describe(shown) for shown in found], "awayCells": session.away}

    document = run(data, act)
    if as_json:
        terminal.print_document(document)
        return
    for at, deposit in enumerate(document["deposits"]):
        if at:
            typer.echo()
        terminal.print_answer(show_currencies(deposit), as_json)


@app.command()
def chains(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show how far each chain was read and when that was, and what stops the reading of one.

    \b
    Example:
      merchant-wallet deposits chains
    """

    async def act(session: Session) -> dict[str, Any]:
        return {"chains": await describe_reading(session)}

    terminal.print_list(run(data, act), "chains", CHAIN_COLUMNS, as_json)


@app.command()
def rescan(
    chain: ChainArgument,
    first: Annotated[int, typer.Argument(metavar="BLOCK", min=1, help="The first block to be read again.")],
    last: Annotated[
        int | None,
        typer.Option(
            "--last-block",
            metavar="BLOCK",
            min=1,
            help="Read up to this block, and no further. Default: up to now.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a range of blocks again, or make the running service read again from a block on.

    Nothing is credited twice. A transaction that was credited from another block before is held; see
    `deposits release`.

    \b
    Examples:
      merchant-wallet deposits rescan ERC20 21000000
      merchant-wallet deposits rescan ERC20 21000000 --last-block 21000500
    """
    from merchant_wallet.cli.rescans import rescan_blocks

    terminal.print_answer(run(data, lambda session: rescan_blocks(session, chain, first, last)), as_json)


@app.command()
def release(
    tx_hash: TransactionArgument,
    reason: AuditReasonOption,
    log_index: PlaceOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Credit a held deposit. First make sure on the chain that no book was credited for it.

    Outside the sandbox this is only proposed, and another person accepts it.

    \b
    Example:
      merchant-wallet deposits release 0x5f1c… --reason "two transfers, block 21000000, one was credited"
    """
    _decide(data, (tx_hash, log_index), reason, is_released=True, as_json=as_json)


@app.command()
def drop(
    tx_hash: TransactionArgument,
    reason: AuditReasonOption,
    log_index: PlaceOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do not credit a held deposit: a book was credited for it before, or it is no longer on the chain.

    \b
    Example:
      merchant-wallet deposits drop 0x5f1c… --reason "the same transfer, mined again in block 21000007"
    """
    _decide(data, (tx_hash, log_index), reason, is_released=False, as_json=as_json)


def _decide(
    data: DataOption, wanted: tuple[str, int | None], reason: str, *, is_released: bool, as_json: bool
) -> None:
    tx_hash, log_index = wanted

    async def act(session: Session) -> "tuple[dict[str, Any], ProposedChange | None]":
        from merchant_wallet.cli.second_person import describe_lone_change, describe_reason
        from merchant_wallet.deposits import acts
        from merchant_wallet.deposits.deposit_store import SeenDeposit

        found = await _find(session, tx_hash)
        held = [one for one in found if one.status == "held" and log_index in (None, one.log_index)]
        if len(held) != 1:
            raise Failure(
                f"{len(held)} deposits of {tx_hash} are held: name one with --log-index."
                if held
                else f"No such deposit of {tx_hash} is held: `deposits show` shows the status of each."
            )
        (one,) = held
        await _refuse_screened(session, one, is_released=is_released)
        author = session.author(describe_reason(reason))
        if is_released:
            if (proposed := await _propose_release(session, one, reason)) is not None:
                return {}, proposed
            author = session.author(describe_lone_change(session, reason))
        place = acts.Place(one.merchant_id, one.chain, one.tx_hash, one.log_index)
        seen = SeenDeposit(one.block_number, one.amount_units, one.cause)
        async with session.cell(one.merchant_id) as cell:
            try:
                await acts.decide(session.conn, cell, author, place, seen, is_released=is_released)
            except acts.DecisionLate as late:
                raise Failure(str(late)) from None
        shown = {"chainType": one.chain, "txHash": one.tx_hash, "logIndex": one.log_index}
        return {**shown, "status": acts.RELEASED if is_released else acts.DROPPED}, None

    document, proposed = run(data, act)
    from merchant_wallet.cli.second_person import print_changed

    print_changed(document if proposed is None else proposed, as_json)


async def _propose_release(session: Session, one: "DepositLine", reason: str) -> "ProposedChange | None":
    """Propose to credit a held deposit. None: this person may do it alone."""
    from merchant_wallet.approvals.acts.kinds import format_deposit
    from merchant_wallet.cli.second_person import propose
    from merchant_wallet.deposits import acts
    from merchant_wallet.deposits import two_person_changes as changes

    before = acts.describe_held(one.block_number, one.cause)
    after = changes.describe_released(one.chain, one.tx_hash, one.log_index, one.amount_units)
    subject = format_deposit(one.chain, one.tx_hash, one.log_index)
    facts = before, after
    return await propose(session, acts.RELEASE, subject, facts, reason, merchant_id=one.merchant_id)


async def _refuse_screened(session: Session, one: "DepositLine", *, is_released: bool) -> None:
    """Refuse what is decided in screening: two people release there, one refuses."""
    from merchant_wallet.screening import store

    found = await store.find_hold(session.conn, one.chain, one.tx_hash, one.log_index)
    if not is_released and found is not None and found.waits_for_person:
        raise Failure(f"Screening holds it: first `merchant-wallet screening refuse {found.screening_no}`.")
    if is_released and found is not None and (one.cause or "").startswith("screening "):
        raise Failure(f"Screening holds it: `merchant-wallet screening release {found.screening_no}`.")


@app.command()
def simulate(
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="An address of a sub-user or a merchant, in either form."),
    ],
    amount: AmountArgument,
    chain: Annotated[
        Chain | None,
        typer.Option(
            "--chain",
            metavar="CHAIN",
            help=f"The chain: {OR_CHAINS}. Default: the one of the address's form.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let USDT arrive at an address on one of the sandbox's chains.

    \b
    Example:
      merchant-wallet deposits simulate TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC 25
    """
    units = read_amount(amount)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.addresses import parse_pasted_address
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.chains.sandbox.reader import compute_tx_hash
        from merchant_wallet.deposits.sandbox_deposits import add_deposit
        from merchant_wallet.merchants import own_addresses

        if not session.settings.sandbox:
            raise Failure("Deposits can be simulated only in the sandbox. This service runs on real chains.")
        try:
            family, recipient = parse_pasted_address(address)
        except ValueError as error:
            raise Failure(f"ADDRESS: {error}.") from None
        if units == 0:
            raise Failure("AMOUNT must be more than 0.")
        name = chain or family.key_name
        if name not in session.settings.shown_chains:
            raise Failure(f"The sandbox has no {name}: add it to WALLET_SANDBOX_CHAINS.")
        async with session.conn.transaction():
            arrival = await add_deposit(session.conn, name, SENDER, recipient, units, now_ms())
            await session.author().record(
                session.conn, "deposits.simulate", f"address {address}", after={"amount": amount}
            )
        return {
            "chainType": name,
            "txHash": compute_tx_hash(name, arrival.block_number),
            "block": arrival.block_number,
            "address": address,
            "amount": amount,
            "finalMs": arrival.at_ms + session.settings.sandbox_confirm_ms,
            "isOurs": await own_addresses.find(session.conn, recipient) is own_addresses.Own.DEPOSIT,
        }

    document = run(data, act)
    terminal.print_answer(document, as_json)
    if not document["isOurs"]:
        terminal.note("It is no address of a sub-user or a merchant: nothing is credited.")
