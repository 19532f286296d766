"""Write and read the audit log.

Rules:
- An entry is appended under the log's only lock. The lock is held until the caller's transaction ends. So
  append last, and keep that transaction short.
- Numbers have no gaps, and times never go back.
- An entry's hash covers the hash before it and the entry's canonical form. No two entries have the same form.
- No secret is ever written. A fact that is named like a secret may be true, false or a number, and nothing
  else.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT

Connection = AsyncConnection[Any]
Facts = Mapping[str, Any]
"""Plain values by name: texts, integers, booleans, None, and lists or mappings of those."""

QUERIES: Final = Queries(Path(__file__).with_name("audit.sql"))
FIRST_HASH: Final = bytes(32)
"""The hash before the first entry."""
MAX_PAGE: Final = 500
MAX_SUBJECT: Final = 400
MAX_SOURCE: Final = 64

PROPOSED_BY: Final = "proposedBy"
"""The fact of an author who accepted a proposal: who made it."""

UNKNOWN: Final = "unknown"
"""The source of a person whose address is not known."""

_SECRET_WORDS: Final = frozenset(
    {"secret", "secrets", "password", "passphrase", "pin", "totp", "otp", "token", "seed", "recovery"}
)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


class FactsRefused(ValueError):
    """The facts can't be written: one is named like a secret or is no plain value. A programming error."""


class AuditEntry(msgspec.Struct, frozen=True):
    """One change: `actor` did `action` to `subject` from `source`. `before` and `after` are the facts."""

    audit_no: int
    at_ms: int
    actor: str
    action: str
    subject: str
    merchant_id: int | None
    source: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    hash: bytes


Hold = Callable[[Connection], Awaitable[None]]
"""Checks, in the transaction of a change, that a person still may, and keeps it so. Raises if not."""


async def hold_nothing(conn: Connection) -> None:
    """For those whose rights are no operator's, and for what was checked already."""


class Author(msgspec.Struct, frozen=True):
    """Who makes a change, from where and when.

    `facts` are stored beside each of the author's changes: a reason, or the proposal that another person has
    accepted. `hold` is called whenever a change is recorded. It is called before a change that may be of the
    author's own account. `clock` dates a second entry, after something that may take long.
    """

    actor: str
    source: str
    at_ms: int
    facts: Facts = {}
    clock: Callable[[], int] = now_ms
    hold: Hold = hold_nothing

    def with_facts(self, facts: Facts) -> "Author":
        """The same author, with these facts too."""
        return msgspec.structs.replace(self, facts={**self.facts, **facts})

    def later(self) -> "Author":
        """The same author, at the present time."""
        return msgspec.structs.replace(self, at_ms=self.clock())

    @property
    def people(self) -> tuple[str, ...]:
        """Who decided: the author, and before it the proposer of what the author has accepted."""
        proposer = self.facts.get(PROPOSED_BY)
        return (self.actor,) if proposer is None else (proposer, self.actor)

    async def held(self, conn: Connection) -> "Author":
        """Hold the author's right until the transaction ends. Gives the author. Raises what `hold` raises."""
        await self.hold(conn)
        return self.afterwards

    @property
    def afterwards(self) -> "Author":
        """The same author, for what is done already: nothing is held."""
        return msgspec.structs.replace(self, hold=hold_nothing)

    async def record(
        self,
        conn: Connection,
        action: str,
        subject: str,
        merchant_id: int | None = None,
        *,
        before: Facts | None = None,
        after: Facts | None = None,
    ) -> int:
        """Check that the author still may, and append an entry, last in the transaction of the change.

        Returns its number. Raises FactsRefused, and what `hold` raises.
        """
        async with conn.transaction():
            await self.hold(conn)
            return await append(
                conn,
                actor=self.actor,
                action=action,
                subject=subject,
                merchant_id=merchant_id,
                before=before,
                after={**self.facts, **(after or {})} or None,
                source=self.source,
                at_ms=self.at_ms,
            )


async def append(
    conn: Connection,
    *,
    actor: str,
    action: str,
    subject: str,
    merchant_id: int | None = None,
    before: Facts | None = None,
    after: Facts | None = None,
    source: str,
    at_ms: int,
) -> int:
    """Append an entry and return its number. It commits with the caller's transaction.

    The entry's time is `at_ms`, or the last entry's time if that is later. Raises FactsRefused.
    """
    for facts in (before, after):
        check_facts(facts)
    async with conn.transaction():
        row = await (await conn.execute(QUERIES["lock_head"].text)).fetchone()
        assert row is not None, "the migration makes the head"
        count, head_hash, last_ms = row
        entry = AuditEntry(
            audit_no=count + 1,
            at_ms=max(at_ms, last_ms),
            actor=actor,
            action=action,
            # People may type texts of any length. The log limits them.
            subject=subject[:MAX_SUBJECT],
            merchant_id=merchant_id,
            source=source[:MAX_SOURCE] or UNKNOWN,
            before=None if before is None else dict(before),
            after=None if after is None else dict(after),
            hash=b"",
        )
        values = msgspec.structs.asdict(entry) | {
            "before": None if before is None else Jsonb(entry.before),
            "after": None if after is None else Jsonb(entry.after),
            "hash": hash_entry(bytes(head_hash), entry),
        }
        appended = await conn.execute(QUERIES["append"].text, values)
        assert appended.rowcount == 1, "the head moved under its lock"
    return entry.audit_no


async def list_entries(
    conn: Connection,
    *,
    actor: str | None = None,
    action: str | None = None,
    merchant_id: int | None = None,
    before_no: int | None = None,
    limit: int = 50,
) -> list[AuditEntry]:
    """At most `limit` (1 to 500) entries before a number, newest first, that match all given filters.

    Raises ValueError for a limit that is not within these.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise ValueError(f"A page has 1 to {MAX_PAGE} entries.")
    if "\0" in f"{actor}{action}":
        # No entry contains a NUL, and the database refuses such a text.
        return []
    name = (
        "list_of_merchant"
        if merchant_id is not None
        else "list_of_actor"
        if actor is not None
        else "list_of_action"
        if action is not None
        else "list_all"
    )
    values = {
        "actor": actor,
        "action": action,
        "merchant_id": merchant_id,
        "before_no": MAX_BIGINT if before_no is None else min(before_no, MAX_BIGINT),
        "limit": limit,
    }
    return await _read(conn, name, values)


async def list_of_subject(
    conn: Connection, merchant_id: int, action: str, subject: str, *, limit: int = 50
) -> list[AuditEntry]:
    """The newest entries of a rare kind about one thing of a merchant, newest first."""
    values = {"merchant_id": merchant_id, "action": action, "subject": subject, "limit": limit}
    return await _read(conn, "list_of_subject", values)


async def show(conn: Connection, audit_no: int) -> AuditEntry | None:
    """One entry by its number; None if there is none."""
    found = await _read(conn, "read_entry", {"audit_no": audit_no})
    return found[0] if found else None


async def find_first(conn: Connection, at_ms: int) -> int:
    """The number of the first entry at or after a time; one more than the last if there is none."""
    newest = await list_entries(conn, limit=1)
    low, high = 1, (newest[0].audit_no if newest else 0) + 1
    while low < high:
        middle = (low + high) // 2
        entry = await show(conn, middle)
        if entry is not None and entry.at_ms < at_ms:
            low = middle + 1
        else:
            high = middle
    return low


def hash_entry(previous: bytes, entry: AuditEntry) -> bytes:
    """The hash that an entry must have after the entry with the hash `previous`. Pure."""
    return hashlib.sha256(previous + encode_canonical(entry)).digest()


def encode_canonical(entry: AuditEntry) -> bytes:
    """The bytes of an entry that are hashed. They begin with the version of the form. Pure.

    Texts have their length in bytes, a missing value is `-`, numbers end with `;`.
    """
    parts = [b"audit;1;", f"{entry.audit_no};{entry.at_ms};".encode()]
    merchant = None if entry.merchant_id is None else str(entry.merchant_id)
    texts = (entry.actor, entry.action, entry.subject, merchant, entry.source)
    for text in (*texts, _as_json(entry.before), _as_json(entry.after)):
        if text is None:
            parts.append(b"-;")
        else:
            raw = text.encode()
            parts.append(b"%d:%b;" % (len(raw), raw))
    return b"".join(parts)


def check_facts(facts: object) -> None:
    """Check that facts are plain and contain no secret. Raises FactsRefused. Pure."""
    if isinstance(facts, Mapping):
        for name, value in facts.items():
            if not isinstance(name, str):
                raise FactsRefused(f"A fact's name is a text, not {type(name).__name__}.")
            _check_name(name, value)
            check_facts(value)
    elif isinstance(facts, list | tuple):
        for value in facts:
            check_facts(value)
    elif isinstance(facts, str):
        if "\0" in facts:
            raise FactsRefused("A fact can't hold the character U+0000.")
    elif facts is not None and not isinstance(facts, int):
        # The database would return a fraction in another form than the one that was hashed.
        raise FactsRefused(f"A fact is a text, a whole number, yes or no, not {type(facts).__name__}.")


def _check_name(name: str, value: object) -> None:
    words = [word.lower() for word in _WORD.findall(name)]
    if _SECRET_WORDS.isdisjoint(words) or value is None or isinstance(value, bool):
        return
    is_number_of_one = isinstance(value, int) and words[-1] in ("no", "ms", "count")
    if not is_number_of_one:
        raise FactsRefused(f"{name} is named like a secret, and secrets are not logged.")


def _as_json(facts: Facts | None) -> str | None:
    if facts is None:
        return None
    return json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


async def _read(conn: Connection, name: str, values: Mapping[str, object]) -> list[AuditEntry]:
    async with conn.cursor(row_factory=class_row(AuditEntry)) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchall()
