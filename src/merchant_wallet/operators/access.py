"""Actions that give an operator access: create, reset, enable, give more rights.

Rules:
- After each of these actions the operator's approvals do not count for a time; see `waits`.
- To disable an operator, to end sessions and to remove rights takes one person; see `records`.
- If accepting a proposal generates a password, it is shown once, to the person who accepted.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.operators import records, waits
from merchant_wallet.operators.records import Connection, NewOperator, OperatorRefused, OperatorUnknown
from merchant_wallet.operators.roles import Operator, gains_rights

CREATE: Final = "operator.create"
RESET: Final = "operator.reset"
ENABLE: Final = "operator.enable"
SET_ROLE: Final = "operator.set_role"
_SUBJECT: Final = "operator "


async def create(
    conn: Connection,
    name: str,
    role: str,
    *,
    password: str | None = None,
    merchant_id: int | None = None,
    at_ms: int,
    wait_ms: int,
) -> NewOperator:
    """Create an operator whose approvals do not count yet. Raises what `records.create` raises."""
    made = await records.create(conn, name, role, password=password, merchant_id=merchant_id, at_ms=at_ms)
    await waits.begin_wait(conn, made.operator.operator_id, waits.CREATED, at_ms=at_ms, wait_ms=wait_ms)
    return made


async def reset(
    conn: Connection, operator_id: int, *, password: str | None = None, at_ms: int, wait_ms: int
) -> NewOperator:
    """Set a new password and require a new second factor. Raises what `records.reset` raises."""
    made = await records.reset(conn, operator_id, password=password)
    await waits.begin_wait(conn, operator_id, waits.RESET, at_ms=at_ms, wait_ms=wait_ms)
    return made


async def enable(conn: Connection, operator_id: int, *, at_ms: int, wait_ms: int) -> Operator:
    """Enable a disabled operator. Raises OperatorUnknown."""
    async with conn.transaction():
        was = await records.lock(conn, operator_id)
        enabled = await records.enable(conn, operator_id)
        if was.status != records.ACTIVE:
            await waits.begin_wait(conn, operator_id, waits.ENABLED, at_ms=at_ms, wait_ms=wait_ms)
    return enabled


async def set_role(
    conn: Connection, operator_id: int, role: str, merchant_id: int | None, *, at_ms: int, wait_ms: int
) -> Operator:
    """Change the role. If it has more rights, approvals do not count for a time. Raises what
    `records.set_role` raises.
    """
    async with conn.transaction():
        was = await records.lock(conn, operator_id)
        changed = await records.set_role(conn, operator_id, role, merchant_id)
        if gains_rights(was.role, was.merchant_id, role, merchant_id):
            await waits.begin_wait(conn, operator_id, waits.ROLE, at_ms=at_ms, wait_ms=wait_ms)
    return changed


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


def describe_enabling(operator: Operator) -> tuple[Facts, Facts]:
    """The proposal to enable an operator."""
    return {"status": operator.status}, {"status": records.ACTIVE}


def describe_role(operator: Operator, role: str, merchant_id: int | None) -> tuple[Facts, Facts]:
    """The proposal to change an operator's role."""
    before = {"role": operator.role, "merchantId": operator.merchant_id}
    return before, {"role": role, "merchantId": merchant_id}


def make_kinds(wait_ms: int) -> Mapping[str, Kind]:
    """The kinds of proposals about operators. Afterwards approvals do not count for `wait_ms`."""
    return {
        CREATE: Kind(CREATE, _read_creation, partial(_apply_creation, wait_ms)),
        RESET: Kind(RESET, _read_reset, partial(_apply_reset, wait_ms)),
        ENABLE: Kind(ENABLE, _read_status, partial(_apply_enabling, wait_ms)),
        SET_ROLE: Kind(SET_ROLE, _read_role, partial(_apply_role, wait_ms)),
    }


async def _read_creation(conn: Connection, change: ProposedChange) -> Facts:
    return {"exists": await records.find(conn, _read_operator_name(change)) is not None}


async def _apply_creation(wait_ms: int, conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    after = change.after
    try:
        made = await create(
            conn,
            _read_operator_name(change),
            after["role"],
            merchant_id=after["merchantId"],
            at_ms=at_ms,
            wait_ms=wait_ms,
        )
    except OperatorRefused as refused:
        raise ChangeRefused(str(refused)) from None
    return Applied(shown=made)


async def _read_reset(conn: Connection, change: ProposedChange) -> Facts:
    return describe_reset(await _hold(conn, change))[0]


async def _apply_reset(wait_ms: int, conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    found = await _hold(conn, change)
    return Applied(shown=await reset(conn, found.operator_id, at_ms=at_ms, wait_ms=wait_ms))


async def _read_status(conn: Connection, change: ProposedChange) -> Facts:
    return {"status": (await _hold(conn, change)).status}


async def _apply_enabling(wait_ms: int, conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    found = await _hold(conn, change)
    await enable(conn, found.operator_id, at_ms=at_ms, wait_ms=wait_ms)
    return Applied()


async def _read_role(conn: Connection, change: ProposedChange) -> Facts:
    found = await _hold(conn, change)
    return {"role": found.role, "merchantId": found.merchant_id}


async def _apply_role(wait_ms: int, conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    found, after = await _hold(conn, change), change.after
    try:
        await set_role(
            conn, found.operator_id, after["role"], after["merchantId"], at_ms=at_ms, wait_ms=wait_ms
        )
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
