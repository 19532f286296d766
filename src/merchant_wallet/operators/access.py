"""What people do about operators: create, reset, enable and disable one, change a role, end sessions.

Rules:
- A change and its entry in the audit log are one transaction, whichever door it comes from. The entry is of
  the operator's merchant, so that the merchant sees what was done to its people.
- After what gives access or more rights the operator's approvals do not count for a time; see `waits`.
- Who gives a person access to a merchant could order in its name, and is noted; see `staff_secrets`.
- To disable an operator, to end sessions and to remove rights takes one person.
- If accepting a proposal generates a password, it is shown once, to the person who accepted.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.merchants import staff_secrets
from merchant_wallet.operators import records, sessions, waits
from merchant_wallet.operators.records import Connection, NewOperator, OperatorRefused, OperatorUnknown
from merchant_wallet.operators.roles import Operator, gains_rights
from merchant_wallet.operators.waits import Delays

CREATE: Final = "operator.create"
RESET: Final = "operator.reset"
ENABLE: Final = "operator.enable"
DISABLE: Final = "operator.disable"
SET_ROLE: Final = "operator.set_role"
END_SESSIONS: Final = "operator.end_sessions"
_SUBJECT: Final = "operator "


async def create(
    conn: Connection,
    author: Author,
    name: str,
    role: str,
    *,
    password: str | None = None,
    merchant_id: int | None = None,
    delays: Delays,
) -> NewOperator:
    """Create an operator whose approvals do not count yet. Raises what `records.create` raises."""
    at_ms = author.at_ms
    async with conn.transaction():
        made = await records.create(conn, name, role, password=password, merchant_id=merchant_id, at_ms=at_ms)
        await _begin_wait(conn, author, made.operator, waits.CREATED, delays)
        await record_creation(conn, author, made.operator)
    return made


async def record_creation(conn: Connection, author: Author, operator: Operator) -> None:
    """Record that an operator was created, in the transaction that creates it."""
    merchant_id = operator.merchant_id
    await author.record(
        conn, CREATE, format_subject(operator.name), merchant_id, after=describe_role(operator)
    )


async def reset(
    conn: Connection, author: Author, operator_id: int, *, password: str | None = None, delays: Delays
) -> NewOperator:
    """Set a new password and require a new second factor. Raises what `records.reset` raises."""
    async with conn.transaction():
        was, author = await _begin(conn, author, operator_id)
        made = await records.reset(conn, operator_id, password=password)
        await _begin_wait(conn, author, was, waits.RESET, delays)
        before, after = describe_reset(was)
        await _record(conn, author, RESET, was, before, after)
    return made


async def enable(conn: Connection, author: Author, operator_id: int, *, delays: Delays) -> Operator:
    """Enable a disabled operator. Raises OperatorUnknown."""
    async with conn.transaction():
        was, author = await _begin(conn, author, operator_id)
        enabled = await records.enable(conn, operator_id)
        if was.status != records.ACTIVE:
            await _begin_wait(conn, author, enabled, waits.ENABLED, delays)
        await _record(conn, author, ENABLE, was, describe_status(was), describe_status(enabled))
    return enabled


async def disable(conn: Connection, author: Author, operator_id: int) -> Operator:
    """Disable an operator and end all sessions. Raises OperatorUnknown, OperatorRefused."""
    async with conn.transaction():
        was, author = await _begin(conn, author, operator_id)
        disabled = await records.disable(conn, operator_id)
        await _record(conn, author, DISABLE, was, describe_status(was), describe_status(disabled))
    return disabled


async def set_role(
    conn: Connection, author: Author, operator_id: int, role: str, merchant_id: int | None, *, delays: Delays
) -> Operator:
    """Change the role. If it has more rights, approvals do not count for a time. Raises what
    `records.set_role` raises.
    """
    async with conn.transaction():
        was, author = await _begin(conn, author, operator_id)
        changed = await records.set_role(conn, operator_id, role, merchant_id)
        if gains_rights(was.role, was.merchant_id, role, merchant_id):
            await _begin_wait(conn, author, changed, waits.ROLE, delays)
        # Of the merchant whose book the operator may look into from now on, else of the one before.
        about = was if changed.merchant_id is None else changed
        await _record(conn, author, SET_ROLE, about, describe_role(was), describe_role(changed))
    return changed


async def end_sessions(
    conn: Connection, author: Author, operator: Operator, *, kept_session: str | None = None
) -> int:
    """End an operator's sessions, except one. Returns how many were ended."""
    async with conn.transaction():
        _, author = await _begin(conn, author, operator.operator_id)
        ended = await sessions.end_sessions(conn, operator.operator_id, kept_session=kept_session)
        await _record(conn, author, END_SESSIONS, operator, None, {"ended": ended})
    return ended


async def _begin(conn: Connection, author: Author, operator_id: int) -> tuple[Operator, Author]:
    """Lock an operator, and hold the author's right before the change: it may be of the own account."""
    return await records.lock(conn, operator_id), await author.held(conn)


async def _begin_wait(
    conn: Connection, author: Author, operator: Operator, cause: str, delays: Delays
) -> None:
    """The operator's approvals do not count for a time. Who gave access to a merchant is noted."""
    at_ms, merchant_id = author.at_ms, operator.merchant_id
    await waits.begin_wait(conn, operator.operator_id, cause, at_ms=at_ms, wait_ms=delays.operator_ms)
    if merchant_id is not None:
        await staff_secrets.note(conn, author, merchant_id, staff_secrets.ACCOUNT, delays.giver_ms)


async def _record(
    conn: Connection, author: Author, action: str, operator: Operator, before: Facts | None, after: Facts
) -> None:
    subject, merchant_id = format_subject(operator.name), operator.merchant_id
    await author.record(conn, action, subject, merchant_id, before=before, after=after)


def format_subject(name: str) -> str:
    """How proposals and the audit log name an operator."""
    return f"{_SUBJECT}{name}"


def describe_creation(role: str, merchant_id: int | None) -> tuple[Facts, Facts]:
    """The proposal to create an operator: facts before and after."""
    return {"exists": False}, {"exists": True, "role": role, "merchantId": merchant_id}


def describe_reset(operator: Operator) -> tuple[Facts, Facts]:
    """The proposal to reset an operator."""
    before = {"enrolled": operator.enrolled, "newCredentials": False}
    return before, {"enrolled": False, "newCredentials": True}


def describe_status(operator: Operator) -> Facts:
    """Whether an operator is active, as a fact."""
    return {"status": operator.status}


def describe_enabling(operator: Operator) -> tuple[Facts, Facts]:
    """The proposal to enable an operator."""
    return describe_status(operator), {"status": records.ACTIVE}


def describe_role(operator: Operator) -> Facts:
    """What an operator may do, as facts."""
    return {"role": operator.role, "merchantId": operator.merchant_id}


def describe_new_role(operator: Operator, role: str, merchant_id: int | None) -> tuple[Facts, Facts]:
    """The proposal to change an operator's role."""
    return describe_role(operator), {"role": role, "merchantId": merchant_id}


def make_kinds(delays: Delays) -> Mapping[str, Kind]:
    """The kinds of proposals about operators. Afterwards approvals do not count for these delays."""
    return {
        CREATE: Kind(CREATE, _read_creation, partial(_apply_creation, delays)),
        RESET: Kind(RESET, _read_reset, partial(_apply_reset, delays)),
        ENABLE: Kind(ENABLE, _read_status, partial(_apply_enabling, delays)),
        SET_ROLE: Kind(SET_ROLE, _read_role, partial(_apply_role, delays)),
    }


async def _read_creation(conn: Connection, change: ProposedChange) -> Facts:
    return {"exists": await records.find(conn, _read_operator_name(change)) is not None}


async def _apply_creation(
    delays: Delays, conn: Connection, change: ProposedChange, author: Author
) -> Applied:
    name, after = _read_operator_name(change), change.after
    try:
        made = await create(conn, author, name, after["role"], merchant_id=after["merchantId"], delays=delays)
    except OperatorRefused as refused:
        raise ChangeRefused(str(refused)) from None
    return Applied(shown=made)


async def _read_reset(conn: Connection, change: ProposedChange) -> Facts:
    return describe_reset(await _hold(conn, change))[0]


async def _apply_reset(delays: Delays, conn: Connection, change: ProposedChange, author: Author) -> Applied:
    found = await _hold(conn, change)
    return Applied(shown=await reset(conn, author, found.operator_id, delays=delays))


async def _read_status(conn: Connection, change: ProposedChange) -> Facts:
    return describe_status(await _hold(conn, change))


async def _apply_enabling(
    delays: Delays, conn: Connection, change: ProposedChange, author: Author
) -> Applied:
    found = await _hold(conn, change)
    await enable(conn, author, found.operator_id, delays=delays)
    return Applied()


async def _read_role(conn: Connection, change: ProposedChange) -> Facts:
    return describe_role(await _hold(conn, change))


async def _apply_role(delays: Delays, conn: Connection, change: ProposedChange, author: Author) -> Applied:
    found, after = await _hold(conn, change), change.after
    try:
        await set_role(conn, author, found.operator_id, after["role"], after["merchantId"], delays=delays)
    except OperatorRefused as refused:
        raise ChangeRefused(str(refused)) from None
    return Applied()


async def _hold(conn: Connection, change: ProposedChange) -> Operator:
    found = await records.find(conn, _read_operator_name(change))
    if found is None:
        raise ChangeRefused("There is no such operator any more.")
    try:
        return await records.lock(conn, found.operator_id)
    except OperatorUnknown as unknown:
        raise ChangeRefused(str(unknown)) from None


def _read_operator_name(change: ProposedChange) -> str:
    return change.subject.removeprefix(_SUBJECT)
