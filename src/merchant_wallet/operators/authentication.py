"""Sign-in: the password, then the second factor. The first sign-in sets the second factor up.

Rules:
- Results are values, not exceptions.
- An unknown name, a disabled operator and a wrong password look the same and take the same time.
- Every attempt of either factor is counted before it is judged; see `attempts`.
- A code of the second factor and a recovery code can each be used once.
- Connections are in autocommit mode here, so an attempt stays counted whatever happens next.
"""

import hashlib
from typing import Final

import msgspec

from merchant_wallet.audit import failures
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators import attempts, totp
from merchant_wallet.operators.passwords import MAX_LENGTH, verify_in_thread
from merchant_wallet.operators.records import ACTIVE, QUERIES, Connection, OperatorRefused, find, show_by_id
from merchant_wallet.operators.roles import Operator
from merchant_wallet.operators.waits import ENROLLED, begin_wait

NO_STEP: Final = -1
UNKNOWN_OPERATOR: Final = 0


class Wrong(msgspec.Struct, frozen=True):
    """Refused. Nothing says which part was wrong."""


class Wait(msgspec.Struct, frozen=True):
    """Too many attempts: this one was not judged. Retry after this many seconds."""

    wait_s: int


class NeedsTotp(msgspec.Struct, frozen=True):
    """The password was right (its hash is `password_hash`). The second factor is next."""

    operator: Operator
    password_hash: str

    def __repr__(self) -> str:
        return f"NeedsTotp({self.operator!r})"


class MustEnrol(msgspec.Struct, frozen=True):
    """The password was right (its hash is `password_hash`). The second factor must be set up next."""

    operator: Operator
    password_hash: str

    def __repr__(self) -> str:
        return f"MustEnrol({self.operator!r})"


class Passed(msgspec.Struct, frozen=True):
    """Both factors were right. `recovery_codes` belong to a new second factor and are shown once."""

    operator: Operator
    recovery_codes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Passed({self.operator!r})"


class Enrolment(msgspec.Struct, frozen=True):
    """A second factor for an authenticator app: its secret in base32, and the same as a URI."""

    secret: str
    uri: str

    def __repr__(self) -> str:
        return "Enrolment()"


SignIn = Wrong | Wait | NeedsTotp | MustEnrol
Second = Wrong | Wait | Passed


async def sign_in(conn: Connection, name: str, password: str, *, source: str, at_ms: int) -> SignIn:
    """Judge a name and a password.

    Then the caller, in one transaction, checks `still_holds` and opens a session with `totp_passed=False`.
    """
    attempt = attempts.make_attempt(name, source)
    if blocked_ms := await attempts.count(conn, attempt, at_ms):
        return _wait(blocked_ms)
    operator = await find(conn, name)
    # An unknown name runs the same queries as a known one.
    kept = await _read_password(conn, UNKNOWN_OPERATOR if operator is None else operator.operator_id)
    # A longer text can't be right, and hashing it would waste CPU.
    is_right = await verify_in_thread(kept, password[: MAX_LENGTH + 1])
    if operator is None or kept is None or not is_right or operator.status != ACTIVE:
        return await _refuse(conn, operator, failures.PASSWORD, source, at_ms)
    if await _read_password(conn, operator.operator_id) != kept:
        # The password was reset while this attempt waited for its hash. The old one must not work any more.
        return await _refuse(conn, operator, failures.PASSWORD, source, at_ms)
    await attempts.uncount(conn, attempt, at_ms)
    return NeedsTotp(operator, kept) if operator.enrolled else MustEnrol(operator, kept)


async def still_holds(conn: Connection, outcome: NeedsTotp | MustEnrol) -> bool:
    """Whether the password is still the present one. Locks it until the transaction ends.

    After a reset the old password must open nothing, least of all the enrolment of a new second factor.
    """
    values = {"operator_id": outcome.operator.operator_id}
    row = await (await conn.execute(QUERIES["lock_password"].text, values)).fetchone()
    return row is not None and bool(row[0] == outcome.password_hash)


async def begin_enrolment(conn: Connection, keyring: Keyring, operator_id: int, *, issuer: str) -> Enrolment:
    """Create a second factor for an operator who has shown the password. Its first right code confirms it.

    A second call before that replaces it. Raises OperatorRefused if a confirmed factor exists.
    """
    operator = await show_by_id(conn, operator_id)
    secret = totp.generate_secret()
    sealed = keyring.seal_at(secret, _place(operator_id))
    values = {"operator_id": operator_id, "sealed": sealed}
    if await (await conn.execute(QUERIES["propose_totp"].text, values)).fetchone() is None:
        raise OperatorRefused("There is a second factor already; an owner can have it set up anew.")
    return Enrolment(secret, totp.make_uri(secret, operator.name, issuer))


async def show_enrolment(conn: Connection, keyring: Keyring, operator_id: int, *, issuer: str) -> Enrolment:
    """The second factor that is being set up, for a page that is loaded again.

    Raises OperatorRefused if there is none or it is confirmed already.
    """
    operator = await show_by_id(conn, operator_id)
    row = await (await conn.execute(QUERIES["lock_totp"].text, {"operator_id": operator_id})).fetchone()
    if row is None or row[0] is None or row[1] is not None:
        raise OperatorRefused("No second factor is being set up.")
    secret = keyring.open_at(bytes(row[0]), _place(operator_id))
    return Enrolment(secret, totp.make_uri(secret, operator.name, issuer))


async def confirm_totp(
    conn: Connection,
    keyring: Keyring,
    operator_id: int,
    code: str,
    *,
    source: str,
    at_ms: int,
    wait_ms: int,
) -> Second:
    """Judge a code of the second factor. The first right code after the enrolment confirms the factor.

    From then on the operator's approvals do not count for `wait_ms`; see `waits`. Raises WrongMasterKey, and
    OperatorRefused if no factor was created.
    """
    operator = await show_by_id(conn, operator_id)
    attempt = attempts.make_attempt(operator.name, source)
    if blocked_ms := await attempts.count(conn, attempt, at_ms):
        return _wait(blocked_ms)
    codes = await _take_code(conn, keyring, operator, code, at_ms, wait_ms)
    if codes is None:
        return await _refuse(conn, operator, failures.CODE, source, at_ms)
    await attempts.reset_counts(conn, attempt, operator_id, at_ms)
    return Passed(await show_by_id(conn, operator_id), codes)


async def use_recovery_code(
    conn: Connection, operator_id: int, code: str, *, source: str, at_ms: int
) -> Second:
    """Judge a recovery code instead of the second factor. A right one is used up."""
    operator = await show_by_id(conn, operator_id)
    attempt = attempts.make_attempt(operator.name, source)
    if blocked_ms := await attempts.count(conn, attempt, at_ms):
        return _wait(blocked_ms)
    values = {
        "operator_id": operator_id,
        "code_hash": totp.hash_recovery_code(operator_id, code),
        "at_ms": at_ms,
    }
    is_open = operator.status == ACTIVE and operator.enrolled
    if not is_open or await (await conn.execute(QUERIES["use_code"].text, values)).fetchone() is None:
        return await _refuse(conn, operator, failures.RECOVERY_CODE, source, at_ms)
    await attempts.reset_counts(conn, attempt, operator_id, at_ms)
    return Passed(operator)


class CodesRenewed(Exception):
    """The recovery codes are others than those that were to be replaced."""


async def renew_recovery_codes(conn: Connection, operator_id: int, mark: str = "") -> tuple[str, ...]:
    """Ten new recovery codes, shown once. The old ones stop working.

    With `mark` only the codes with this mark are replaced. So a form that is sent again replaces nothing.
    Raises OperatorRefused, CodesRenewed.
    """
    async with conn.transaction():
        # Locks: of two calls at once, the second sees and deletes the codes of the first. A reset stays in
        # force.
        row = await (await conn.execute(QUERIES["lock_totp"].text, {"operator_id": operator_id})).fetchone()
        if row is None or row[1] is None:
            raise OperatorRefused("Recovery codes come with a second factor, and none was set up yet.")
        if mark and mark != await mark_recovery_codes(conn, operator_id):
            raise CodesRenewed
        return await _give_codes(conn, operator_id)


async def mark_recovery_codes(conn: Connection, operator_id: int) -> str:
    """A text that changes with the codes, and not when one is used. It tells nothing of them."""
    cursor = await conn.execute(QUERIES["list_code_hashes"].text, {"operator_id": operator_id})
    hashes = [bytes(code_hash) for (code_hash,) in await cursor.fetchall()]
    return hashlib.sha256(b"".join(hashes)).hexdigest()


async def count_recovery_codes(conn: Connection, operator_id: int) -> int:
    """How many recovery codes are left."""
    row = await (await conn.execute(QUERIES["count_codes"].text, {"operator_id": operator_id})).fetchone()
    return 0 if row is None else int(row[0])


async def mark_signed_in(conn: Connection, operator: Operator, at_ms: int) -> failures.Failures | None:
    """Record a sign-in. Returns the failures since the last one, or None."""
    values = {"operator_id": operator.operator_id, "at_ms": at_ms}
    row = await (await conn.execute(QUERIES["mark_signed_in"].text, values)).fetchone()
    since_ms = at_ms if row is None else int(row[0])
    return await failures.read_since(conn, format_subject(operator.name), since_ms, operator.merchant_id)


def format_subject(name: str) -> str:
    """How failed sign-ins and the audit log name an operator."""
    return f"operator {name}"


async def note_wrong_password(conn: Connection, operator: Operator, source: str, at_ms: int) -> None:
    """Count a wrong present password of an operator who is signed in."""
    await _refuse(conn, operator, failures.PASSWORD, source, at_ms)


async def _refuse(conn: Connection, operator: Operator | None, factor: str, source: str, at_ms: int) -> Wrong:
    """Count a failed sign-in. An unknown name is not stored: it may be a mistyped password."""
    subject = failures.NOBODY if operator is None else format_subject(operator.name)
    merchant_id = None if operator is None else operator.merchant_id
    await failures.count_failure(conn, subject, factor, source=source, at_ms=at_ms, merchant_id=merchant_id)
    return Wrong()


async def _take_code(
    conn: Connection, keyring: Keyring, operator: Operator, code: str, at_ms: int, wait_ms: int
) -> tuple[str, ...] | None:
    """Use up a code. Returns the recovery codes of a new factor; None for a wrong code."""
    operator_id = operator.operator_id
    async with conn.transaction():
        row = await (await conn.execute(QUERIES["lock_totp"].text, {"operator_id": operator_id})).fetchone()
        if row is None or row[0] is None:
            raise OperatorRefused("No second factor was set up yet.")
        sealed, confirmed_ms, last_step = row
        secret = keyring.open_at(bytes(sealed), _place(operator_id))
        step = totp.find_step(secret, code, at_ms, NO_STEP if last_step is None else last_step)
        if step is None or operator.status != ACTIVE:
            return None
        await conn.execute(
            QUERIES["use_step"].text, {"operator_id": operator_id, "step": step, "at_ms": at_ms}
        )
        if confirmed_ms is not None:
            return ()
        codes = await _give_codes(conn, operator_id)
        await begin_wait(conn, operator_id, ENROLLED, at_ms=at_ms, wait_ms=wait_ms)
    return codes


async def _give_codes(conn: Connection, operator_id: int) -> tuple[str, ...]:
    codes = tuple(totp.generate_recovery_codes())
    await conn.execute(QUERIES["delete_codes"].text, {"operator_id": operator_id})
    hashes = [totp.hash_recovery_code(operator_id, code) for code in codes]
    await conn.execute(QUERIES["insert_codes"].text, {"operator_id": operator_id, "hashes": hashes})
    return codes


async def _read_password(conn: Connection, operator_id: int) -> str | None:
    row = await (await conn.execute(QUERIES["read_password"].text, {"operator_id": operator_id})).fetchone()
    return None if row is None else str(row[0])


def _wait(wait_ms: int) -> Wait:
    return Wait(-(-wait_ms // 1000))


def _place(operator_id: int) -> str:
    return f"operator;{operator_id};totp"
