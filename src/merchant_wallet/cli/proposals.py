"""`proposals`: changes that one person has proposed, for another to accept or refuse."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.lookalikes import find_lookalikes, list_lookalikes, note_lookalikes
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.second_person import describe, find_person, flatten, print_proposal
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange

app = typer.Typer(help="List, accept and refuse what one person proposed to change.", no_args_is_help=True)

LIST_COLUMNS = terminal.Table(
    "proposalNo", "kind", "subject", "before", "after", "proposedBy", "expiresMs", "state"
)
KEPT_ONCE = "Hand the password over now: it is shown this once. The first sign-in sets up the second factor."
SECRET_ONCE = "Hand the secret over now: it is shown this once."

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The proposal's number.")]


@app.command("list")
def list_all(
    decided: Annotated[bool, typer.Option("--decided", help="Those that were decided or expired.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="At most so many.")] = 50,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the proposals that wait for a second person, oldest first, or decided ones, newest first.

    \b
    Examples:
      merchant-wallet proposals list
      merchant-wallet proposals list --decided
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.approvals import changes
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.reporting.lookalikes import list_new_addresses

        read = changes.list_decided if decided else changes.list_open
        found = await read(session.conn, at_ms=now_ms(), limit=limit)
        new = [(change, [] if decided else list_new_addresses(change)) for change in found]
        alike = await find_lookalikes(session, [one for _, ones in new for one in ones])
        return {
            "proposals": [
                {**describe(change), "lookalikes": [each for one in ones for each in alike.get(one, [])]}
                for change, ones in new
            ]
        }

    document = run(data, act)
    terminal.print_list(document, "proposals", LIST_COLUMNS, as_json, show=flatten)
    note_lookalikes([each for proposal in document["proposals"] for each in proposal["lookalikes"]])


@app.command()
def show(number: NumberArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show one proposal with the values before and after.

    \b
    Example:
      merchant-wallet proposals show 12
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.approvals import changes
        from merchant_wallet.reporting.lookalikes import list_new_addresses

        found = await changes.show(session.conn, number)
        if found is None:
            raise Failure(f"There is no proposal {number}.")
        alike = await list_lookalikes(session, list_new_addresses(found))
        return {**describe(found), "lookalikes": alike}

    document = run(data, act)
    print_proposal(document, as_json)
    note_lookalikes(document["lookalikes"])


@app.command()
def accept(number: NumberArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Accept another person's proposal and carry it out. A password or secret that it makes is printed once.

    \b
    Example:
      merchant-wallet proposals accept 12
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.approvals import changes
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.exchange.acts import SET
        from merchant_wallet.merchants.app_keys import NewSecret
        from merchant_wallet.operators.records import NewOperator
        from merchant_wallet.operators.roles import list_roles
        from merchant_wallet.web.proposal_rights import list_acceptable_kinds

        found = await changes.show(session.conn, number)
        if found is None:
            raise Failure(f"There is no proposal {number}.")
        acceptable_kinds = list_acceptable_kinds(session.settings, (await session.open_base()).keyring)
        if found.kind not in acceptable_kinds:
            raise Failure(f"Proposal {number} is of a kind that this version can't carry out: {found.kind}.")
        person, acceptable = await find_person(session), acceptable_kinds[found.kind]
        roles = list_roles(acceptable.right)
        done = await changes.accept(
            session.conn, acceptable.kind, number, person=person, at_ms=now_ms(), roles=roles
        )
        if found.merchant_id is not None:
            await session.carry(found.merchant_id)
        if found.kind == SET:
            await session.copy_rates()
        shown = {"password": done.shown.password} if isinstance(done.shown, NewOperator) else {}
        if isinstance(done.shown, NewSecret):
            shown = {"appKey": done.shown.key.app_key, "appSecret": done.shown.secret}
        return {**describe(done.change), **shown}

    document = run(data, act)
    print_proposal(document, as_json)
    if "password" in document:
        terminal.note(KEPT_ONCE)
    if "appSecret" in document:
        terminal.note(SECRET_ONCE)
    if document["state"] == "failed":
        raise typer.Exit(1)


@app.command()
def refuse(
    number: NumberArgument,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; whoever proposed it reads that.")],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse a proposal. Nothing is changed.

    \b
    Example:
      merchant-wallet proposals refuse 12 --reason "no such contract"
    """

    async def decide(session: Session, at_ms: int) -> "ProposedChange":
        from merchant_wallet.approvals import changes

        person = await find_person(session)
        return await changes.refuse(session.conn, number, reason, person=person, at_ms=at_ms)

    _decide(decide, data, as_json)


@app.command()
def withdraw(number: NumberArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Withdraw your own proposal. Nothing is changed.

    \b
    Example:
      merchant-wallet proposals withdraw 12
    """

    async def decide(session: Session, at_ms: int) -> "ProposedChange":
        from merchant_wallet.approvals import changes

        person = await find_person(session)
        return await changes.withdraw(session.conn, number, person=person, at_ms=at_ms)

    _decide(decide, data, as_json)


def _decide(
    decide: "Callable[[Session, int], Awaitable[ProposedChange]]", data: DataOption, as_json: bool
) -> None:
    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms

        return describe(await decide(session, now_ms()))

    print_proposal(run(data, act), as_json)
