"""Verification of whole books: replay the journal and compare every other row with it.

Rules:
- One book is read in one snapshot, so it can be verified while it is written to.
- Rows are read in pages by key, so memory does not grow with the journal.
- A report names the first violation. Verification never raises for one, and writes nothing.

The rules are listed in `violations.RULES`. `replay`, `entry_schemas`, `withdrawals`, `deposits`, `payouts`
and `archived` check them.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base import ids
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.units import MAX_BIGINT, MIN_BIGINT
from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable
from merchant_wallet.book.chart import FIXED, FIXED_BY_ID, SUBUSER, name_account
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.checkpoints import check_checkpoints, do_nothing, list_checkpointed
from merchant_wallet.book.early_approvals import find_early_approval
from merchant_wallet.book.home import find_not_issued, find_placed, read_ranges
from merchant_wallet.book.rules.deposits import DEPOSIT
from merchant_wallet.book.state import Entry
from merchant_wallet.book.verification.archived import (
    check_manifests,
    check_names,
    check_number_of_names,
)
from merchant_wallet.book.verification.deposits import check_deposit
from merchant_wallet.book.verification.entry_schemas import read_register_facts
from merchant_wallet.book.verification.pages import (
    PAGE_ROWS,
    QUERIES,
    Page,
    check_orphans,
    raise_misnumbered,
    read_page,
)
from merchant_wallet.book.verification.payouts import check_payouts
from merchant_wallet.book.verification.replay import RELEASING, Replay
from merchant_wallet.book.verification.violations import Violation, ViolationFound, raise_violation
from merchant_wallet.book.verification.withdrawals import check_withdrawal

Progress = Callable[[int, int, int], None]
"""Called after each page with the merchant's id, the entries checked so far, and the entries of the book."""


class BookReport(msgspec.Struct, frozen=True):
    """The result of a verification. `entries` were checked; `balances` (units) are their sums.

    A book is sound when `violation` is None. All sub-users' wallets of a currency are one item of `balances`.
    `checkpoints` were compared. `torn_checkpoint`: a crash left the last one half written.
    """

    merchant_id: int
    entries: int
    last_entry_id: int | None
    head_hash: bytes
    balances: dict[str, int]
    open_orders: int
    checkpoints: int
    torn_checkpoint: bool
    violation: Violation | None

    @property
    def ok(self) -> bool:
        """Whether no violation was found."""
        return self.violation is None


class BookRow(msgspec.Struct, frozen=True):
    """The book's row."""

    id_range: int
    id_counter: int
    next_range: int | None
    entry_count: int
    head_hash: bytes
    last_ms: int
    withdrawn_day: int
    withdrawn_units: int


async def verify_book(
    home: AsyncConnection,
    cell: AsyncConnection,
    merchant_id: int,
    progress: Progress | None = None,
    *,
    checkpoint_dir: Path | None = None,
    checkpoint_keys: CheckpointKeys | None = None,
    archive: ArchiveFolder | None = None,
    catch_up: Callable[[], Awaitable[object]] = do_nothing,
) -> BookReport:
    """Replay one book and compare everything with it. With a folder and keys, compare its checkpoints too.

    Entries that are in the archive alone are read from its folder. A book that has such entries is not sound
    without that folder.

    Home's payouts and the checkpoints go on meanwhile. They are read first, then the book as it is now. A
    copy may be behind: before a violation counts, `catch_up` brings it to what is committed now.

    The connections commit by themselves and are in no transaction. They may be the same one. Raises
    ValueError for a folder without keys.
    """
    if checkpoint_dir is not None and checkpoint_keys is None:
        raise ValueError("checkpoints can't be checked without their keys")
    replay = Replay(merchant_id, ())
    checked, torn, violation = 0, False, None
    try:
        async with cell.transaction():
            await cell.execute(QUERIES["begin_snapshot"].text)
            await _verify_snapshot(home, cell, replay, progress, archive, checkpoint_keys)
        await check_payouts(home, cell, merchant_id, PAGE_ROWS, catch_up)
        # Not inside the snapshot: newer checkpoints may have been written while it was read.
        if checkpoint_dir is not None and checkpoint_keys is not None:
            seen = await check_checkpoints(
                home, cell, checkpoint_keys, checkpoint_dir, merchant_id, archive, catch_up
            )
            checked, torn, violation = seen.checked, seen.torn, seen.violation
    except ViolationFound as found:
        violation = found.violation
    except ArchiveUnreadable as unreadable:
        violation = Violation("archive", str(unreadable), replay.last_id)
    return _report(replay, checked, torn, violation)


async def verify_all(
    home: AsyncConnection,
    cell: AsyncConnection,
    progress: Progress | None = None,
    *,
    cell_id: int = DEFAULT_CELL_ID,
    checkpoint_dir: Path | None = None,
    checkpoint_keys: CheckpointKeys | None = None,
    archive: ArchiveFolder | None = None,
) -> list[BookReport]:
    """Verify every book of a cell, one after the other, each in its own snapshot.

    This includes merchants that have only entries, postings or checkpoints left. Merchants that home does not
    know are the default cell's. Errors as in `verify_book`.
    """
    rows = await (await cell.execute(QUERIES["list_books"].text)).fetchall()
    merchant_ids = {row[0] for row in rows}
    if checkpoint_dir is not None:
        merchant_ids.update(await find_placed(home, cell_id, await list_checkpointed(checkpoint_dir)))
    return [
        await verify_book(
            home,
            cell,
            merchant_id,
            progress,
            checkpoint_dir=checkpoint_dir,
            checkpoint_keys=checkpoint_keys,
            archive=archive,
        )
        for merchant_id in sorted(merchant_ids)
    ]


def _report(replay: Replay, checked: int, torn: bool, violation: Violation | None) -> BookReport:
    balances = {account.name: replay.balances[account.account_id] for account in FIXED}
    for user_id, currency in replay.wallets.items():
        name = f"{SUBUSER}:{currency}"
        balances[name] = balances.get(name, 0) + replay.balances[user_id]
    return BookReport(
        replay.merchant_id,
        replay.entry_count,
        replay.last_id,
        replay.head_hash,
        balances,
        len(replay.open_orders),
        checked,
        torn,
        violation,
    )


async def _verify_snapshot(
    home: AsyncConnection,
    cell: AsyncConnection,
    replay: Replay,
    progress: Progress | None,
    archive: ArchiveFolder | None,
    keys: CheckpointKeys | None,
) -> None:
    cursor = cell.cursor(binary=True)
    where = {"merchant_id": replay.merchant_id}
    row = await (await cursor.execute(QUERIES["read_book"].text, where)).fetchone()
    if row is None:
        raise_violation("book", f"merchant {replay.merchant_id} has no book")
    book = BookRow(*row)
    replay.ranges = await read_ranges(home, replay.merchant_id)
    journal = await open_journal(cell, archive, replay.merchant_id)
    await check_manifests(journal, keys)
    after, names = MIN_BIGINT, 0
    while after < MAX_BIGINT:
        page, after = await read_page(cursor, replay.merchant_id, after, journal)
        _replay_page(replay, page)
        names += await check_names(cursor, replay.merchant_id, page.archived)
        if progress is not None:
            progress(replay.merchant_id, replay.entry_count, book.entry_count)
    await check_number_of_names(cursor, replay.merchant_id, names)
    _check_book(replay, book)
    replay.close()
    await _check_accounts(cursor, replay)
    await _check_wallets(home, cursor, replay.merchant_id)
    await _check_deposits(home, cursor, where)
    await _check_waits(home, cursor, replay.merchant_id)


async def _check_wallets(home: AsyncConnection, cursor: psycopg.AsyncCursor[Any], merchant_id: int) -> None:
    stray = await (
        await cursor.execute(QUERIES["find_stray_wallet"].text, {"merchant_id": merchant_id})
    ).fetchone()
    if stray is not None:
        _raise_stray_wallet(stray[0])
    after = MIN_BIGINT
    while True:
        bounds = {"merchant_id": merchant_id, "after": after, "page": PAGE_ROWS}
        rows = await (await cursor.execute(QUERIES["page_addresses"].text, bounds)).fetchall()
        owners = {address: user_id for user_id, *addresses in rows for address in addresses}
        missing = await find_not_issued(home, merchant_id, list(owners))
        if missing is not None:
            _raise_stray_wallet(owners[missing])
        if len(rows) < PAGE_ROWS:
            break
        after = rows[-1][0]


def _raise_stray_wallet(user_id: int) -> NoReturn:
    raise_violation("wallet", f"an address of sub-user {user_id} is missing or not its own", entry_id=user_id)


async def _check_deposits(
    home: AsyncConnection, cursor: psycopg.AsyncCursor[Any], where: dict[str, int]
) -> None:
    stray = await (await cursor.execute(QUERIES["find_stray_deposit"].text, where)).fetchone()
    if stray is not None:
        raise_violation("deposit", f"{stray[1]} {stray[2]}:{stray[3]} {stray[4]}", entry_id=stray[0])
    own = await (await cursor.execute(QUERIES["list_merchant_addresses"].text, where)).fetchall()
    missing = await find_not_issued(home, where["merchant_id"], [address for _, address in own])
    if missing is not None:
        chain = next(chain for chain, address in own if address == missing)
        raise_violation("deposit", f"{chain} :0 is an address of the merchant that nobody gave out")


async def _check_waits(home: AsyncConnection, cursor: psycopg.AsyncCursor[Any], merchant_id: int) -> None:
    early = await find_early_approval(home, cursor, merchant_id, 0, MAX_BIGINT)
    if early is not None:
        raise_violation(
            "approval", f"{early[1]} approved it before that person's approvals counted", order_id=early[0]
        )


def _replay_page(replay: Replay, page: Page) -> None:
    for entry in page.entries:
        if entry.entry_id in page.misnumbered:
            raise_misnumbered(entry.entry_id)
        replay.apply(entry)
        if entry.kind == "withdraw":
            _open_order(replay, page, entry)
        elif entry.kind == "register":
            _open_wallet(replay, page, entry)
        elif entry.kind == DEPOSIT:
            callbacks = page.callbacks.pop(entry.entry_id, [])
            check_deposit(entry, page.credits.pop(entry.entry_id, None), callbacks)
        elif entry.kind in RELEASING:
            replay.release_order(entry)
    check_orphans(page)


def _open_order(replay: Replay, page: Page, entry: Entry) -> None:
    order_id = entry.entry_id
    order = page.orders.pop(order_id, None)
    steps, callbacks = page.steps.pop(order_id, []), page.callbacks.pop(order_id, [])
    replay.open_order(check_withdrawal(entry, order, steps, callbacks))


def _open_wallet(replay: Replay, page: Page, entry: Entry) -> None:
    facts = read_register_facts(entry)
    row = page.sub_users.pop(entry.entry_id, None)
    if row is None:
        raise_violation("sub-user", "the sub-user's row is missing", entry_id=entry.entry_id)
    for name in ("ext_user_id", "address_index", "evm_address", "tron_address"):
        mine, journal = getattr(row, name), getattr(facts, name)
        if mine != journal:
            raise_violation(
                "sub-user", f"{name} is {mine!r}, was registered as {journal!r}", entry_id=entry.entry_id
            )
    replay.add_wallet(entry.entry_id, facts)


def _check_book(replay: Replay, book: BookRow) -> None:
    if not {book.id_range, book.next_range or book.id_range} <= {*replay.ranges}:
        raise_violation(
            "book", f"the ranges {book.id_range}, {book.next_range} are not all its own: {[*replay.ranges]}"
        )
    last_id = ids.compose(book.id_range, book.id_counter) if book.id_counter else None
    for name, row, journal in (
        ("the last id", last_id, replay.last_id),
        ("the number of entries", book.entry_count, replay.entry_count),
        ("the head's hash", book.head_hash.hex(), replay.head_hash.hex()),
        ("the day of withdrawals", book.withdrawn_day, replay.withdrawn_day),
        ("the amount withdrawn that day", book.withdrawn_units, replay.withdrawn_units),
    ):
        if row != journal:
            raise_violation(
                "book", f"{name} is {row}, the journal ends with {journal}", entry_id=replay.last_id
            )
    if book.last_ms < replay.last_ms:
        raise_violation("book", f"its clock {book.last_ms} is behind its last entry, {replay.last_ms}")


async def _check_accounts(cursor: psycopg.AsyncCursor[Any], replay: Replay) -> None:
    after, seen = MIN_BIGINT, 0
    while True:
        bounds = {"merchant_id": replay.merchant_id, "after": after, "page": PAGE_ROWS}
        rows = await (await cursor.execute(QUERIES["page_accounts"].text, bounds)).fetchall()
        for row in rows:
            _check_account(replay, row)
        seen += len(rows)
        if len(rows) < PAGE_ROWS:
            break
        after = rows[-1][0]
    if seen != len(replay.balances):
        raise_violation("account", f"{len(replay.balances) - seen} accounts have no row")


def _check_account(replay: Replay, row: tuple[Any, ...]) -> None:
    account_id, kind, currency, *kept = row
    account = name_account(account_id, currency)
    fixed = FIXED_BY_ID.get(account_id)
    named = (fixed.kind, fixed.currency) if fixed else (SUBUSER, replay.wallets.get(account_id))
    if (kind, currency) != named:
        text = f"account {account_id} is {kind}:{currency}, the book knows it as {named[0]}:{named[1]}"
        raise_violation("account", text, account=account)
    computed = [replay.balances[account_id], *replay.debited.get(account_id, (0, 0))]
    if kept != computed:
        text = f"balance, day and debits of the day are {kept}, the postings give {computed}"
        raise_violation("account", text, account=account)
