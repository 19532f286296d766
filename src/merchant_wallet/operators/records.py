"""Operators in the database: create, change and list them.

Rules:
- Each change is one transaction, or part of the caller's transaction.
- At least one active owner always remains: to disable or demote an owner, all owners are locked.
- What takes something from an operator waits for the operator's acts under way (`await_acts`).
- Names are compared without regard to case.
- A generated password is returned once and stored as a hash. Its owner must change it before anything else.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.errors import ForeignKeyViolation, UniqueViolation
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.operators.passwords import (
    PasswordRefused,
    check_in_thread,
    generate_password,
    hash_in_thread,
    verify_in_thread,
)
from merchant_wallet.operators.roles import Operator, Role

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("operators.sql"))
NAME_FORM: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
MAX_PAGE: Final = 500
ACTIVE: Final = "active"
DISABLED: Final = "disabled"
LANGUAGES: Final = (None, "en", "zh-CN")
THEMES: Final = (None, "light", "dark")
NOT_PRESENT: Final = "The present password is another one."


class OperatorUnknown(LookupError):
    """There is no such operator. The text is a sentence."""


class OperatorRefused(ValueError):
    """The change of an operator is refused. The text is a sentence that says why."""


class NewOperator(msgspec.Struct, frozen=True):
    """A new or reset operator with the password to hand over, which is shown once.

    `must_enrol`: the first sign-in goes on to set up the second factor.
    """

    operator: Operator
    password: str
    must_enrol: bool = True

    def __repr__(self) -> str:
        return f"NewOperator({self.operator!r})"


async def create(
    conn: Connection,
    name: str,
    role: str,
    *,
    password: str | None = None,
    merchant_id: int | None = None,
    at_ms: int,
) -> NewOperator:
    """Create an operator. Without a password, one is generated.

    Raises PasswordRefused, and OperatorRefused for an invalid or used name, an unknown role, or a merchant
    role without a merchant.
    """
    if NAME_FORM.fullmatch(name) is None:
        raise OperatorRefused("NAME: an operator's name has 1 to 64 letters, digits, dots, - _ or @.")
    _check_role(role, merchant_id)
    chosen, password_hash = await _choose_password(conn, name, merchant_id, password)
    values = {
        "name": name,
        "role": role,
        "merchant_id": merchant_id,
        "password_hash": password_hash,
        "is_given": password is None,
        "created_ms": at_ms,
    }
    try:
        async with conn.transaction():
            row = await (await conn.execute(QUERIES["insert_operator"].text, values)).fetchone()
            assert row is not None, "an insert that returns"
            return NewOperator(await show_by_id(conn, row[0]), chosen)
    except UniqueViolation:
        raise OperatorRefused(f"NAME: there is an operator {name} already.") from None
    except ForeignKeyViolation:
        raise OperatorRefused(f"MERCHANT: there is no merchant {merchant_id}.") from None


async def list_operators(conn: Connection, *, after_name: str = "", limit: int = 100) -> list[Operator]:
    """At most `limit` (1 to 500) operators after `after_name`, sorted by name. Raises ValueError."""
    if not 1 <= limit <= MAX_PAGE:
        raise ValueError(f"A page has 1 to {MAX_PAGE} operators.")
    return await _read(conn, "list_operators", {"after_name": after_name.lower(), "limit": limit})


async def list_everybody(conn: Connection) -> list[Operator]:
    """All operators, sorted by name."""
    people: list[Operator] = []
    while page := await list_operators(conn, after_name=people[-1].name if people else "", limit=MAX_PAGE):
        people += page
    return people


async def show(conn: Connection, name: str) -> Operator:
    """One operator by name. Raises OperatorUnknown."""
    found = await find(conn, name)
    if found is None:
        raise OperatorUnknown(f"There is no operator {name!r}.")
    return found


async def find(conn: Connection, name: str) -> Operator | None:
    """One operator by name, or None."""
    if NAME_FORM.fullmatch(name) is None:
        return None
    found = await _read(conn, "read_by_name", {"name": name.lower()})
    return found[0] if found else None


async def show_by_id(conn: Connection, operator_id: int) -> Operator:
    """One operator by id. Raises OperatorUnknown."""
    return await _read_one(conn, "read_by_id", operator_id)


async def lock(conn: Connection, operator_id: int) -> Operator:
    """Lock one operator until the caller's transaction ends.

    Takes locks in the same order as every change: first the owners, then the operator's acts, then the
    operator. Raises OperatorUnknown.
    """
    await conn.execute(QUERIES["lock_owners"].text)
    return await _lock(conn, operator_id)


async def await_acts(conn: Connection, operator_id: int) -> None:
    """Wait for the operator's acts under way. Further ones wait until the caller's transaction ends."""
    await conn.execute(QUERIES["wait_longer"].text)
    await _run(conn, "await_acts", operator_id)


async def change_password(
    conn: Connection, operator_id: int, old: str, new: str, *, kept_session: str | None = None
) -> None:
    """Change an operator's own password. All sessions end except `kept_session`, a session's id.

    Raises PasswordRefused, and OperatorRefused if `old` is not the present password, also if it was replaced
    during the check. The caller counts the attempts; see `attempts`.
    """
    operator = await show_by_id(conn, operator_id)
    row = await (await conn.execute(QUERIES["read_password"].text, {"operator_id": operator_id})).fetchone()
    if row is None or not await verify_in_thread(row[0], old):
        raise OperatorRefused(NOT_PRESENT)
    if old == new:
        raise PasswordRefused("The new password is the present one; choose another one.")
    _, password_hash = await _choose_password(conn, operator.name, operator.merchant_id, new)
    kept_hash = None if kept_session is None else bytes.fromhex(kept_session)
    values = {"operator_id": operator_id, "password_hash": password_hash, "seen_hash": row[0]}
    async with conn.transaction():
        await await_acts(conn, operator_id)
        if (await conn.execute(QUERIES["replace_password"].text, values)).rowcount != 1:
            # An operator was reset meanwhile, and the reset stays in force.
            raise OperatorRefused(NOT_PRESENT)
        await _run(conn, "end_sessions", operator_id, kept_hash=kept_hash)


async def reset(conn: Connection, operator_id: int, *, password: str | None = None) -> NewOperator:
    """Set a new password, require a new second factor, and end all sessions. Notifications go nowhere until
    the operator names addresses anew.

    Also ends the wait after failed attempts at this name, which anybody may have caused. Raises
    OperatorUnknown, PasswordRefused.
    """
    operator = await show_by_id(conn, operator_id)
    chosen, password_hash = await _choose_password(conn, operator.name, operator.merchant_id, password)
    async with conn.transaction():
        await await_acts(conn, operator_id)
        await _run(
            conn, "write_password", operator_id, password_hash=password_hash, is_given=password is None
        )
        await _run(conn, "delete_totp", operator_id)
        await _run(conn, "delete_codes", operator_id)
        await _run(conn, "forget_addresses", operator_id)
        await _run(conn, "delete_failures_of_operator", operator_id)
        await _run(conn, "end_sessions", operator_id, kept_hash=None)
        return NewOperator(await show_by_id(conn, operator_id), chosen)


async def disable(conn: Connection, operator_id: int) -> Operator:
    """Disable an operator and end all sessions. Raises OperatorUnknown, OperatorRefused."""
    async with conn.transaction():
        await _insist_on_another_owner(conn, operator_id, "disabled")
        await _lock(conn, operator_id)
        await _run(conn, "write_status", operator_id, status=DISABLED)
        await _run(conn, "end_sessions", operator_id, kept_hash=None)
        return await show_by_id(conn, operator_id)


async def enable(conn: Connection, operator_id: int) -> Operator:
    """Enable an operator. Raises OperatorUnknown."""
    async with conn.transaction():
        await _read_one(conn, "lock_by_id", operator_id)
        await _run(conn, "write_status", operator_id, status=ACTIVE)
        return await show_by_id(conn, operator_id)


async def set_role(conn: Connection, operator_id: int, role: str, merchant_id: int | None = None) -> Operator:
    """Change the role, which holds from the next request on. Raises OperatorUnknown, OperatorRefused."""
    _check_role(role, merchant_id)
    try:
        async with conn.transaction():
            if role != Role.OWNER:
                await _insist_on_another_owner(conn, operator_id, "given another role")
            await _lock(conn, operator_id)
            await _run(conn, "write_role", operator_id, role=role, merchant_id=merchant_id)
            return await show_by_id(conn, operator_id)
    except ForeignKeyViolation:
        raise OperatorRefused(f"MERCHANT: there is no merchant {merchant_id}.") from None


async def set_preferences(
    conn: Connection, operator_id: int, *, language: str | None, theme: str | None
) -> None:
    """Store the pages' language and theme; None: the browser's setting. Raises OperatorRefused."""
    if language not in LANGUAGES or theme not in THEMES:
        raise OperatorRefused("The language is en or zh-CN, the theme light or dark.")
    await _run(conn, "write_preferences", operator_id, language=language, theme=theme)


async def _insist_on_another_owner(conn: Connection, operator_id: int, what: str) -> None:
    rows = await (await conn.execute(QUERIES["lock_owners"].text)).fetchall()
    if [row[0] for row in rows] == [operator_id]:
        raise OperatorRefused(f"The last active owner can't be {what}: make another owner first.")


async def _choose_password(
    conn: Connection, name: str, merchant_id: int | None, password: str | None
) -> tuple[str, str]:
    if password is not None:
        # An attacker who knows a merchant's user knows the words of the merchant's name too.
        row = await (
            await conn.execute(QUERIES["read_merchant_name"].text, {"merchant_id": merchant_id})
        ).fetchone()
        await check_in_thread(password, name, "" if row is None else row[0])
    chosen = password or generate_password()
    return chosen, await hash_in_thread(chosen)


def _check_role(role: str, merchant_id: int | None) -> None:
    if role not in set(Role):
        raise OperatorRefused(f"ROLE: a role is one of {', '.join(Role)}.")
    if (role == Role.MERCHANT) != (merchant_id is not None):
        raise OperatorRefused("ROLE: the role merchant names its merchant, and no other role does.")


async def _lock(conn: Connection, operator_id: int) -> Operator:
    await await_acts(conn, operator_id)
    return await _read_one(conn, "lock_by_id", operator_id)


async def _run(conn: Connection, name: str, operator_id: int, **values: object) -> None:
    await conn.execute(QUERIES[name].text, {"operator_id": operator_id, **values})


async def _read_one(conn: Connection, name: str, operator_id: int) -> Operator:
    found = await _read(conn, name, {"operator_id": operator_id})
    if not found:
        raise OperatorUnknown(f"There is no operator with the number {operator_id}.")
    return found[0]


async def _read(conn: Connection, name: str, values: Mapping[str, object]) -> list[Operator]:
    async with conn.cursor(row_factory=class_row(Operator)) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchall()
