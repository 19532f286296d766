"""`operator`: create and change the accounts of people who work at the console.

Rules: a generated password is printed once. A chosen password is read from standard input: an argument could
be seen by every process of the machine. A change and its record in the audit log are one transaction.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from merchant_wallet.cli import operator_sessions, terminal
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.operator_sessions import NameArgument
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantOption, ProposalReasonOption
from merchant_wallet.cli.second_person import describe_lone_change, describe_reason, print_changed, propose
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.audit.records import Author
    from merchant_wallet.operators.records import Connection, NewOperator
    from merchant_wallet.operators.roles import Operator

app = typer.Typer(help="Make operators of the console, reset, disable and list them.", no_args_is_help=True)
app.add_typer(operator_sessions.app)

LIST_COLUMNS = terminal.Table(
    "name", "role", "merchantId", "status", "enrolled", "createdMs", spare=("createdMs", "enrolled")
)
KEPT_ONCE = "Hand the password over now: it is shown this once. The first sign-in sets up the second factor."
MAX_INPUT_BYTES = 4096

RoleOption = Annotated[
    Literal["owner", "operator", "auditor", "merchant"],
    typer.Option(
        help="owner: everything. operator: all but operators. auditor: reads. merchant: its own book."
    ),
]
PasswordOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input, one line.")
]


@app.command()
def create(
    name: NameArgument,
    role: RoleOption,
    merchant: MerchantOption = None,
    password_stdin: PasswordOption = False,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an operator and print the password once. The first sign-in sets up the second factor.

    Outside the sandbox this is only proposed: give a --reason, and another person accepts it and gets the
    password.

    \b
    Examples:
      merchant-wallet operator create ann --role owner
      merchant-wallet operator create shop-desk --role merchant --merchant Shop
      merchant-wallet operator create bob --role auditor --password-stdin < password
    """
    password = _read_password() if password_stdin else None

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.operators import access, records, waits

        merchant_id = await _find_merchant(session, merchant)
        facts, subject = access.describe_creation(role, merchant_id), access.format_subject(name)
        async with session.conn.transaction():
            if session.settings.needs_two_people:
                # A change that would fail anyway is not proposed.
                async with session.conn.transaction(force_rollback=True):
                    await records.create(session.conn, name, role, merchant_id=merchant_id, at_ms=now_ms())
            made = await propose(session, access.CREATE, subject, facts, reason, merchant_id=merchant_id)
            if made is not None:
                return _without_password(made, password)
            author = session.author(describe_lone_change(session, reason))
            new = await access.create(
                session.conn,
                author,
                name,
                role,
                password=password,
                merchant_id=merchant_id,
                delays=waits.read_delays(session.settings),
            )
        return _describe_new(new, password)

    _print_new(run(data, act), password, as_json)


@app.command("list")
def list_all(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the operators by name.

    \b
    Example:
      merchant-wallet operator list
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import records

        return {"operators": [describe(one) for one in await records.list_everybody(session.conn)]}

    terminal.print_list(run(data, act), "operators", LIST_COLUMNS, as_json)


@app.command()
def show(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show an operator and how many recovery codes are left.

    \b
    Example:
      merchant-wallet operator show ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import authentication, records

        operator = await records.show(session.conn, name)
        left = await authentication.count_recovery_codes(session.conn, operator.operator_id)
        return {**describe(operator), "recoveryCodesLeft": left}

    terminal.print_answer(run(data, act), as_json)


@app.command()
def reset(
    name: NameArgument,
    password_stdin: PasswordOption = False,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a new password, require a new second factor, and end all sessions.

    Outside the sandbox this is only proposed: give a --reason, and another person accepts it and gets the
    password. If a password was stolen, `operator disable` takes one person and works at once.

    \b
    Example:
      merchant-wallet operator reset ann
    """
    password = _read_password() if password_stdin else None

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.operators import access, records, waits

        found = await records.show(session.conn, name)
        async with session.conn.transaction():
            operator = await records.lock(session.conn, found.operator_id)
            made = await _propose(session, access.RESET, operator, access.describe_reset(operator), reason)
            if made is not None:
                return _without_password(made, password)
            delays = waits.read_delays(session.settings)
            author = session.author(describe_lone_change(session, reason))
            new = await access.reset(
                session.conn, author, operator.operator_id, password=password, delays=delays
            )
        return _describe_new(new, password)

    _print_new(run(data, act), password, as_json)


@app.command()
def disable(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Disable an operator and end all sessions. The last active owner can't be disabled.

    \b
    Example:
      merchant-wallet operator disable bob
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import access, records

        found = await records.show(session.conn, name)
        return describe(await access.disable(session.conn, session.author(), found.operator_id))

    terminal.print_answer(run(data, act), as_json)


@app.command()
def enable(
    name: NameArgument,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enable a disabled operator with the same password and second factor as before.

    Outside the sandbox this is only proposed: give a --reason, and another person accepts it.

    \b
    Example:
      merchant-wallet operator enable bob
    """

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.operators import access, records, waits

        async def judge(found: "Operator") -> "ProposedChange | dict[str, Any]":
            if found.status == records.ACTIVE:
                return describe_reason(reason)
            facts = access.describe_enabling(found)
            made = await _propose(session, access.ENABLE, found, facts, reason)
            return describe_lone_change(session, reason) if made is None else made

        async def change(conn: "Connection", author: "Author", operator_id: int) -> "Operator":
            delays = waits.read_delays(session.settings)
            return await access.enable(conn, author, operator_id, delays=delays)

        return await _change_or_propose(session, name, change, judge)

    print_changed(run(data, act), as_json)


@app.command("set-role")
def set_role(
    name: NameArgument,
    role: RoleOption,
    merchant: MerchantOption = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change an operator's role from the next request on.

    Outside the sandbox a role with more rights is only proposed: give a --reason, and another person accepts
    it.

    \b
    Example:
      merchant-wallet operator set-role bob --role operator
    """

    async def act(session: Session) -> "dict[str, Any] | ProposedChange":
        from merchant_wallet.operators import access
        from merchant_wallet.operators.roles import gains_rights
        from merchant_wallet.operators.waits import read_delays

        merchant_id = await _find_merchant(session, merchant)

        async def judge(found: "Operator") -> "ProposedChange | dict[str, Any]":
            if not gains_rights(found.role, found.merchant_id, role, merchant_id):
                return describe_reason(reason)
            facts = access.describe_new_role(found, role, merchant_id)
            made = await _propose(session, access.SET_ROLE, found, facts, reason)
            return describe_lone_change(session, reason) if made is None else made

        async def change(conn: "Connection", author: "Author", operator_id: int) -> "Operator":
            delays = read_delays(session.settings)
            return await access.set_role(conn, author, operator_id, role, merchant_id, delays=delays)

        return await _change_or_propose(session, name, change, judge)

    print_changed(run(data, act), as_json)


async def _propose(
    session: Session,
    kind: str,
    operator: "Operator",
    facts: "tuple[Mapping[str, Any], Mapping[str, Any]]",
    reason: str | None,
) -> "ProposedChange | None":
    from merchant_wallet.operators.access import format_subject

    subject, merchant_id = format_subject(operator.name), operator.merchant_id
    return await propose(session, kind, subject, facts, reason, merchant_id=merchant_id, about=operator.actor)


async def _change_or_propose(
    session: Session,
    name: str,
    act: "Callable[[Connection, Author, int], Awaitable[Operator]]",
    judge: "Callable[[Operator], Awaitable[ProposedChange | dict[str, Any]]]",
) -> "dict[str, Any] | ProposedChange":
    """Change an operator, unless `judge` proposes the change instead.

    `judge` gets the locked operator. It returns the proposal, or what the audit log stores beside the change.
    """
    from merchant_wallet.operators import records

    async with session.conn.transaction():
        found = await records.show(session.conn, name)
        judged = await judge(await records.lock(session.conn, found.operator_id))
        if isinstance(judged, dict):
            return describe(await act(session.conn, session.author(judged), found.operator_id))
    return judged


def _without_password(made: "ProposedChange", password: str | None) -> "ProposedChange":
    if password is not None:
        # Raised inside the transaction, so that no proposal is made.
        raise Failure(
            "A password can't be chosen for a proposal: whoever accepts it gets a new one.", REFUSED
        )
    return made


def _print_new(done: "dict[str, Any] | ProposedChange", password: str | None, as_json: bool) -> None:
    print_changed(done, as_json)
    if isinstance(done, dict) and password is None:
        terminal.note(KEPT_ONCE)


async def _find_merchant(session: Session, merchant: str | None) -> int | None:
    return None if merchant is None else (await session.find(merchant)).merchant_id


def _read_password() -> str:
    typed = sys.stdin.buffer.read(MAX_INPUT_BYTES).split(b"\n", 1)[0].removesuffix(b"\r")
    try:
        return typed.decode()
    except UnicodeDecodeError:
        raise Failure("The password on standard input is not UTF-8 text.", CANNOT_RUN) from None


def _describe_new(made: "NewOperator", chosen: str | None) -> dict[str, Any]:
    # A password that was typed is not printed again.
    shown = {} if chosen is not None else {"password": made.password}
    return {**describe(made.operator), **shown, "mustEnrol": made.must_enrol}


def describe(operator: "Operator") -> dict[str, Any]:
    """An operator for output."""
    return {
        "operatorId": operator.operator_id,
        "name": operator.name,
        "role": operator.role,
        "merchantId": operator.merchant_id,
        "status": operator.status,
        "enrolled": operator.enrolled,
        "createdMs": operator.created_ms,
    }
