"""`sub-users`: find a merchant's sub-users, change their controls, reset a PIN."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.options import (
    DataOption,
    JsonOption,
    MerchantArgument,
    ProposalReasonOption,
    ShortLimitOption,
    read_limit,
)
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, print_changed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.sub_users.controls import SubUserLine

app = typer.Typer(help="Find sub-users, pause or limit debits from them, reset a PIN.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table(
    "userId",
    "extUserId",
    "currency",
    "balance",
    "paused",
    "limitDebit",
    "limitDay",
    "address",
    spare=("limitDay", "limitDebit", "address", "paused"),
)

ExtArgument = Annotated[str, typer.Argument(metavar="EXT", help="The merchant's own id, extUserId.")]


@app.command("list")
def list_some(
    merchant: MerchantArgument,
    search: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Begins the extUserId, or is a userId or a wallet address."),
    ] = None,
    after: Annotated[int, typer.Option(metavar="USER_ID", min=0, help="Go on after this userId.")] = 0,
    limit: ShortLimitOption = 50,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a merchant's sub-users, oldest first.

    \b
    Examples:
      merchant-wallet sub-users list Shop
      merchant-wallet sub-users list Shop --search player-7
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.reporting.paging import split_page
        from merchant_wallet.sub_users import controls

        merchant_id = (await session.find(merchant)).merchant_id
        async with session.cell(merchant_id) as cell:
            found = await controls.list_sub_users(
                cell, merchant_id, after_user_id=after, search=search, limit=limit + 1
            )
        rows, last = split_page(found, limit)
        return {
            "merchantId": merchant_id,
            "subUsers": [describe(line) for line in rows],
            "nextAfter": last and last.user_id,
        }

    document = run(data, act)
    terminal.print_list(document, "subUsers", LIST_COLUMNS, as_json)
    if document["nextAfter"] is not None:
        terminal.note_more(f"--after {document['nextAfter']}")


@app.command()
def show(
    merchant: MerchantArgument, ext: ExtArgument, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Show a sub-user: balance, addresses, and what the merchant may debit.

    \b
    Example:
      merchant-wallet sub-users show Shop player-7
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.sub_users import controls

        merchant_id = (await session.find(merchant)).merchant_id
        async with session.cell(merchant_id) as cell:
            return describe(await controls.read_by_ext_user_id(cell, merchant_id, ext))

    terminal.print_answer(run(data, act), as_json)


@app.command("set")
def set_(
    merchant: MerchantArgument,
    ext: ExtArgument,
    paused: Annotated[
        bool | None, typer.Option("--pause/--resume", help="Refuse the merchant's debits, or allow them.")
    ] = None,
    limit_debit: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Most per debit; none removes the limit.")
    ] = None,
    limit_day: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Most per UTC day; none removes the limit.")
    ] = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what the merchant may debit from a sub-user, from the next debit on.

    Outside the sandbox --resume, and a higher or removed limit, are only proposed: give a --reason.

    \b
    Examples:
      merchant-wallet sub-users set Shop player-7 --pause
      merchant-wallet sub-users set Shop player-7 --resume --reason "the player has asked for it"
      merchant-wallet sub-users set Shop player-7 --limit-debit 50 --limit-day none
    """
    limits = {"limit_debit_units": limit_debit, "limit_day_units": limit_day}
    if paused is None and set(limits.values()) == {None}:
        raise Failure("Nothing to change: give --pause, --resume, --limit-debit or --limit-day.", CANNOT_RUN)

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.sub_users import acts, audit_log, controls, two_person_changes

        merchant_id = (await session.find(merchant)).merchant_id
        changes: dict[str, bool | int | None] = {} if paused is None else {"paused": paused}
        for name, text in limits.items():
            if text is not None:
                option = "--" + name.removesuffix("_units").replace("_", "-")
                changes[name] = read_limit(text, option)
        async with session.cell(merchant_id) as cell:
            seen = await controls.read_by_ext_user_id(cell, merchant_id, ext)
            wanted = two_person_changes.with_changes(seen, changes)
            author = session.author(describe_reason(reason))
            may_loosen = not session.settings.needs_two_people
            if controls.loosens(seen, wanted):
                facts, subject = two_person_changes.describe(seen, wanted), audit_log.format_subject(ext)
                proposed = await propose(
                    session, audit_log.SET, subject, facts, reason, merchant_id=merchant_id
                )
                if proposed is not None:
                    return proposed
                author, may_loosen = session.author(describe_lone_change(session, reason)), True
            return describe(
                await acts.change_controls(
                    session.conn, cell, author, merchant_id, ext, may_loosen=may_loosen, **changes
                )
            )

    print_changed(run(data, act), as_json)


@app.command("reset-pin")
def reset_pin(
    merchant: MerchantArgument, ext: ExtArgument, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Remove a sub-user's PIN with its lock, its sessions and its links. With a new link the sub-user can
    set a new PIN.

    \b
    Example:
      merchant-wallet sub-users reset-pin Shop player-7
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.sub_users import acts, controls

        merchant_id = (await session.find(merchant)).merchant_id
        async with session.cell(merchant_id) as cell:
            was_set = await acts.reset_pin(session.conn, cell, session.author(), merchant_id, ext)
            shown = await controls.read_by_ext_user_id(cell, merchant_id, ext)
        return {"userId": shown.user_id, "extUserId": shown.ext_user_id, "hadPin": was_set}

    terminal.print_answer(run(data, act), as_json)


def describe(line: "SubUserLine") -> dict[str, Any]:
    """A sub-user for output."""
    from merchant_wallet.base.addresses import to_eip55, to_tron
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.base.money import format_units
    from merchant_wallet.sub_users.controls import describe_controls

    at_ms = now_ms()
    is_today = line.day == at_ms // DAY_MS
    return {
        "userId": line.user_id,
        "extUserId": line.ext_user_id,
        "username": line.username,
        "currency": line.currency,
        "balance": format_units(line.balance_units),
        "address": to_eip55(line.evm_address),
        "tronAddress": to_tron(line.tron_address),
        **describe_controls(line),
        "debitedToday": format_units(line.day_debited_units if is_today else 0),
        "hasPin": line.has_pin,
        "pinSetMs": line.pin_set_ms,
        "pinLockedUntilMs": line.pin_locked_until_ms if line.pin_locked_until_ms > at_ms else None,
        "createdMs": line.created_ms,
    }
