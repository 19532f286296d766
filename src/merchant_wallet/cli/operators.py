"""`operator`: the people who work at the console; making them, letting them in and out.

Rules: a password is printed by the command that makes it, that once; one that somebody chose is read from
standard input, never from an argument, where every process of the machine could see it. Each change and the
audit log's entry of it are one transaction.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import UNREACHABLE, Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantOption
from merchant_wallet.cli.session import Session, run, tell_changes

if TYPE_CHECKING:
    from merchant_wallet.operators.records import Connection, NewOperator
    from merchant_wallet.operators.roles import Operator

app = typer.Typer(help="Make operators of the console, reset, disable and list them.", no_args_is_help=True)

LIST_COLUMNS = ("name", "role", "merchantId", "status", "enrolled", "createdMs")
SESSION_COLUMNS = ("sessionId", "source", "userAgent", "createdMs", "seenMs", "expiresMs")
KEPT_ONCE = "Hand the password over now: it is shown this once. The first sign-in sets up the second factor."
MAX_INPUT_BYTES = 4096
PAGE = 500

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The operator's name.")]
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
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an operator, and print the password, this once; the first sign-in sets up the second factor.

    \b
    Examples:
      merchant-wallet operator create ann --role owner
      merchant-wallet operator create shop-desk --role merchant --merchant Shop
      merchant-wallet operator create bob --role auditor --password-stdin < password
    """
    password = _read_password() if password_stdin else None

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.clock import now_ms
        from merchant_wallet.operators import records

        merchant_id = await _find_merchant(session, merchant)
        async with session.conn.transaction():
            made = await records.create(
                session.conn, name, role, password=password, merchant_id=merchant_id, at_ms=now_ms()
            )
            after = {"role": role, "merchantId": merchant_id}
            await session.record("operator.create", f"operator {name}", merchant_id=merchant_id, after=after)
        return _describe_new(made, password)

    terminal.print_answer(run(data, act), as_json)
    if password is None:
        terminal.note(KEPT_ONCE)


@app.command("list")
def list_all(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the operators by name.

    \b
    Example:
      merchant-wallet operator list
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import records

        found: list[Operator] = []
        while page := await records.list_operators(
            session.conn, after_name=found[-1].name if found else "", limit=PAGE
        ):
            found += page
        return {"operators": [describe(operator) for operator in found]}

    terminal.print_list(run(data, act), "operators", LIST_COLUMNS, as_json)


@app.command()
def show(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show an operator, with the number of recovery codes that are left.

    \b
    Example:
      merchant-wallet operator show ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import records, signing_in

        operator = await records.show(session.conn, name)
        left = await signing_in.count_recovery_codes(session.conn, operator.operator_id)
        return {**describe(operator), "recoveryCodesLeft": left}

    terminal.print_answer(run(data, act), as_json)


@app.command()
def reset(
    name: NameArgument,
    password_stdin: PasswordOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an operator a new password, have the second factor set up anew, and end all sessions.

    \b
    Example:
      merchant-wallet operator reset ann
    """
    password = _read_password() if password_stdin else None

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import records

        found = await records.show(session.conn, name)
        async with session.conn.transaction():
            operator = await records.hold(session.conn, found.operator_id)
            made = await records.reset(session.conn, operator.operator_id, password=password)
            before = {"enrolled": operator.enrolled}
            await session.record(
                "operator.reset", f"operator {operator.name}", before=before, after={"enrolled": False}
            )
        return _describe_new(made, password)

    terminal.print_answer(run(data, act), as_json)
    if password is None:
        terminal.note(KEPT_ONCE)


@app.command()
def disable(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Let an operator in no more, and end all sessions. The last active owner stays.

    \b
    Example:
      merchant-wallet operator disable bob
    """
    from merchant_wallet.operators import records

    terminal.print_answer(_change(name, data, "disable", records.disable), as_json)


@app.command()
def enable(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Let a disabled operator in again, with the password and second factor there were.

    \b
    Example:
      merchant-wallet operator enable bob
    """
    from merchant_wallet.operators import records

    terminal.print_answer(_change(name, data, "enable", records.enable), as_json)


@app.command("set-role")
def set_role(
    name: NameArgument,
    role: RoleOption,
    merchant: MerchantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give an operator another role, from the next request on.

    \b
    Example:
      merchant-wallet operator set-role bob --role operator
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import records

        merchant_id = await _find_merchant(session, merchant)

        async def change(conn: "Connection", operator_id: int) -> "Operator":
            return await records.set_role(conn, operator_id, role, merchant_id)

        return await _change_within(session, name, "set_role", change)

    terminal.print_answer(run(data, act), as_json)


@app.command()
def sessions(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List where an operator is signed in.

    \b
    Example:
      merchant-wallet operator sessions ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.clock import now_ms
        from merchant_wallet.operators import records
        from merchant_wallet.operators.sessions import list_sessions

        operator = await records.show(session.conn, name)
        return {
            "sessions": [
                {
                    "sessionId": shown.session_id,
                    "source": shown.source,
                    "userAgent": shown.user_agent,
                    "createdMs": shown.created_ms,
                    "seenMs": shown.seen_ms,
                    "expiresMs": shown.expires_ms,
                }
                for shown in await list_sessions(session.conn, operator.operator_id, now_ms())
            ]
        }

    terminal.print_list(run(data, act), "sessions", SESSION_COLUMNS, as_json)


@app.command("end-sessions")
def end_sessions(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Sign an operator out everywhere.

    \b
    Example:
      merchant-wallet operator end-sessions ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import records
        from merchant_wallet.operators import sessions as kept

        operator = await records.show(session.conn, name)
        async with session.conn.transaction():
            ended = await kept.end_sessions(session.conn, operator.operator_id)
            subject = f"operator {operator.name}"
            await session.record("operator.end_sessions", subject, after={"ended": ended})
        return {"name": operator.name, "ended": ended}

    terminal.print_answer(run(data, act), as_json)


def _change(
    name: str, data: DataOption, what: str, act: "Callable[[Connection, int], Awaitable[Operator]]"
) -> dict[str, Any]:
    return run(data, lambda session: _change_within(session, name, what, act))


async def _change_within(
    session: Session, name: str, what: str, act: "Callable[[Connection, int], Awaitable[Operator]]"
) -> dict[str, Any]:
    from merchant_wallet.operators import records

    async with session.conn.transaction():
        found = await records.show(session.conn, name)
        before = await records.hold(session.conn, found.operator_id)
        after = describe(await act(session.conn, before.operator_id))
        was, became = tell_changes(describe(before), after)
        await session.record(
            f"operator.{what}",
            f"operator {before.name}",
            merchant_id=after["merchantId"],
            before=was,
            after=became,
        )
    return after


async def _find_merchant(session: Session, merchant: str | None) -> int | None:
    return None if merchant is None else (await session.find(merchant)).merchant_id


def _read_password() -> str:
    typed = sys.stdin.buffer.read(MAX_INPUT_BYTES).split(b"\n", 1)[0].removesuffix(b"\r")
    try:
        return typed.decode()
    except UnicodeDecodeError:
        raise Failure("The password on standard input is not UTF-8 text.", UNREACHABLE) from None


def _describe_new(made: "NewOperator", chosen: str | None) -> dict[str, Any]:
    # Who typed the password has it already; it need not be on the screen too.
    shown = {} if chosen is not None else {"password": made.password}
    return {**describe(made.operator), **shown, "mustEnrol": made.must_enrol}


def describe(operator: "Operator") -> dict[str, Any]:
    """An operator as it is printed."""
    return {
        "operatorId": operator.operator_id,
        "name": operator.name,
        "role": operator.role,
        "merchantId": operator.merchant_id,
        "status": operator.status,
        "enrolled": operator.enrolled,
        "createdMs": operator.created_ms,
    }
