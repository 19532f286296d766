"""`screening`: what the list, the provider and payout rules hold, and what people decide about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import AuditReasonOption, DataOption, JsonOption
from merchant_wallet.cli.second_person import describe as describe_proposal
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.screening.store import Screening

app = typer.Typer(help="Look at what screening holds, release or refuse it.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table(
    "screeningNo",
    "merchantId",
    "subject",
    "chainType",
    "address",
    "amount",
    "state",
    "why",
    spare=("merchantId", "chainType"),
)

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The screening's number.")]


@app.command("list")
def list_some(
    state: Annotated[
        Literal["held", "open", "refused", "released", "passed", "all"],
        typer.Option("--state", "--status", help="Those in this state."),
    ] = "held",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most so many.")] = 50,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List screenings: by default those that wait for a person, oldest first; others newest first.

    \b
    Examples:
      merchant-wallet screening list
      merchant-wallet screening list --state refused
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.screening import store
        from merchant_wallet.screening.screening_states import State

        if state in ("held", "open"):
            found = await store.list_waiting(session.conn, state=State(state), limit=limit)
        else:
            wanted = None if state == "all" else State(state)
            found = await store.list_all(session.conn, state=wanted, limit=limit)
        return {"screenings": [describe(one) for one in found]}

    hidden = "Only those that wait for a person are listed. --state all shows all." if state == "held" else ""
    terminal.print_list(run(data, act), "screenings", LIST_COLUMNS, as_json, hidden=hidden)


@app.command()
def show(number: NumberArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show one screening with what was asked and answered.

    \b
    Example:
      merchant-wallet screening show 12 --json
    """

    async def act(session: Session) -> dict[str, Any]:
        import msgspec

        from merchant_wallet.screening import store

        found = await _find(session, number)
        questions = await store.list_questions(session.conn, number)
        return {**describe(found), "questions": [msgspec.to_builtins(one) for one in questions]}

    terminal.print_answer(run(data, act), as_json)


@app.command()
def release(
    number: NumberArgument, reason: AuditReasonOption, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Let a held order be paid, or a held deposit be credited. Outside the sandbox another person accepts it.

    \b
    Example:
      merchant-wallet screening release 12 --reason "their customer; we have seen the invoice"
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.screening import decisions

        async with session.conn.transaction():
            found = await _find(session, number)
            before, after = decisions.describe_release(found)
            subject = decisions.format_subject(number)
            proposed = await propose(
                session,
                decisions.RELEASE,
                subject,
                (before, after),
                reason,
                merchant_id=found.merchant_id,
            )
            if proposed is not None:
                return describe_proposal(proposed)
            author = session.author(describe_lone_change(session, reason))
            released = await decisions.release(session.conn, author, found)
        return describe(released)

    terminal.print_answer(run(data, act), as_json)


@app.command()
def refuse(
    number: NumberArgument, reason: AuditReasonOption, data: DataOption = None, as_json: JsonOption = False
) -> None:
    """Refuse it: an order fails and is refunded, a deposit stays held and is not credited.

    \b
    Example:
      merchant-wallet screening refuse 12 --reason "on the sanctions list since Monday"
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.screening import decisions

        author = session.author(describe_reason(reason))
        async with session.conn.transaction():
            refused = await decisions.refuse(session.conn, author, await _find(session, number))
        return describe(refused)

    terminal.print_answer(run(data, act), as_json)


@app.command("ask-again")
def ask_again(number: NumberArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Have the list and the provider asked again at the next attempt. The answers before are kept.

    \b
    Example:
      merchant-wallet screening ask-again 12
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.screening import decisions

        async with session.conn.transaction():
            found = await _find(session, number)
            again = await decisions.ask_again(session.conn, session.author(), found)
        return describe(again)

    terminal.print_answer(run(data, act), as_json)


@app.command("check-list")
def check_list(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A list of addresses.", show_default=False)],
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Say what the list says of this address.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a list as workers do, before it replaces the one in force. Exit status 1 if it can't be read.

    \b
    Example:
      merchant-wallet screening check-list new-list.txt
    """
    from merchant_wallet.base.addresses import parse_pasted_address
    from merchant_wallet.screening.address_list import ListUnreadable, read_list

    try:
        found = read_list(path)
    except ListUnreadable as unreadable:
        raise Failure(f"{path} is no list: {unreadable}.") from None
    document: dict[str, Any] = {"addresses": len(found.entries), "digest": found.digest}
    if address is not None:
        try:
            listed = found.find(parse_pasted_address(address)[1])
        except ValueError as error:
            raise Failure(f"--address: {error}.") from None
        document |= {"verdict": "pass" if listed is None else listed.verdict.value}
    terminal.print_answer(document, as_json)


def describe(found: "Screening") -> dict[str, Any]:
    """A screening as a document."""
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.base.money import format_units
    from merchant_wallet.screening import verdicts

    deposit = f"deposit {found.tx_hash}:{found.log_index}"
    return {
        "screeningNo": found.screening_no,
        "merchantId": found.merchant_id,
        "subject": f"order {found.order_id}" if found.is_order else deposit,
        "chainType": found.chain,
        "address": format_address(found.chain, found.address),
        "amount": format_units(found.amount_units),
        "state": found.state.value,
        "why": verdicts.describe(found.reasons) if found.reasons else None,
        "round": found.round_no,
        "begunMs": found.begun_ms,
        "changedMs": found.changed_ms,
        "decidedBy": found.decided_by,
        "decidedMs": found.decided_ms,
        "proposalNo": found.proposal_no,
    }


async def _find(session: Session, number: int) -> "Screening":
    from merchant_wallet.screening import store

    found = await store.find_one(session.conn, number)
    if found is None:
        raise Failure(f"There is no screening {number}.")
    return found
