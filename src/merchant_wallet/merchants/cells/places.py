"""Where cells are, if home was restored to before a cell moved: what each place says of itself.

Rules:
- Home raises a cell's version before any copy takes it on. So a copy with a higher version than home's shows
  that home was rolled back.
- Of the places that are known, the open one with the highest version is the cell. A closed place names the
  one that the cell has moved to (see `fence`). A person may name one, too.
- Whoever is asked gets the owner's password. So a place is followed only to servers that home's URL, home's
  list of cells or WALLET_CELL_URLS names. Another one must be typed.
- A place that a person names is opened if it is closed: its other places are lost, or older. The service may
  write there again, and it says no more that the cell has moved.
- A worker that has not heard of the rollback may have opened an old place with a higher version. So of two
  open places the one that a person names counts, if it has entries that the other one lacks.
- The evidence is committed first. So nothing is paid until the rollback is accepted.
- Other places are closed as `cell move` closes them. What only they have is then named, also after a kill.
- Each step may be repeated.

Statements are in `places.sql`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import class_row

from merchant_wallet.audit.rollback.evidence import (
    NO_MERCHANT,
    RollbackEvidence,
    locked,
    record_evidence,
)
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.cells import fence, new_place
from merchant_wallet.merchants.cells.book_placement import end_payouts, list_own_entries
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.cells.moving import SESSION_NAME

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("places.sql"))
MAX_HOPS: Final = 10
"""A cell may have moved several times since the back-up."""


class PlaceRefused(Exception):
    """It is not known where a cell is, or it is not where it was said to be. The text says what to do."""


class KnownCell(NamedTuple):
    """A cell as home has it. `move_address` is the new place of a move that home has."""

    cell_id: int
    name: str
    schema_name: str
    address: str | None
    version: int
    move_address: str | None


class Place(NamedTuple):
    """What the copy of a cell at an address says of itself. `moved_to`: where it has moved to.

    `identity` is the same for two addresses of one schema, while its server runs.
    """

    address: str | None
    url: str
    identity: str
    cell_id: int
    version: int
    is_open: bool
    moved_to: str | None


class RestoredCell(NamedTuple):
    """A cell whose place or version home did not know.

    `left_behind`: the entries that only its other places have, by merchant. `closed`: the orders among them
    for which money was reserved or a transfer signed.
    """

    name: str
    address: str | None
    old_address: str | None
    version: int
    left_behind: dict[int, list[int]]
    closed: dict[int, list[int]]


async def find_evidence(
    home: Connection, reached: Collection[int], at_ms: int, *, directory: Directory
) -> list[RollbackEvidence]:
    """The evidence that closed places give: cells that were not reached, because they have moved."""
    await directory.refresh_with(home)
    for cell in directory.list():
        if cell.is_home or cell.cell_id in reached:
            continue
        place = await look(cell.url, None)
        if place is None or place.cell_id != cell.cell_id:
            continue
        known = await _read(home, cell.cell_id)
        # Home may have heard of the move since the place was chosen.
        if known is not None and cell.url == _find_url(directory, known) and _is_ahead(known, place):
            return [make_evidence(known, place, at_ms)]
    return []


def _find_url(directory: Directory, known: KnownCell) -> str:
    place = (known.cell_id, known.name, known.schema_name, known.address, known.version, True)
    return directory.make_cell(*place).url


def _is_ahead(known: KnownCell, place: Place) -> bool:
    """Whether the copy where home says has seen more than home: a later step, or the end of a move."""
    return place.version > known.version or (place.moved_to is not None and not place.is_open)


def make_evidence(known: KnownCell, place: Place, at_ms: int) -> RollbackEvidence:
    """The evidence that a place gives. Pure."""
    went = f", and has moved to {place.moved_to}" if place.moved_to else ""
    cause = (
        f"home was rolled back: it knows version {known.version} of cell {known.name}, which has version"
        f" {place.version}{went}"
    )
    return RollbackEvidence(NO_MERCHANT, "home", "behind", cause, at_ms)


async def look(url: str, address: str | None) -> Place | None:
    """What is at a place. None if nothing answers there, or no cell is there."""
    try:
        async with await db.connect(url) as connection:
            row = await (await connection.execute(QUERIES["read_state"].text)).fetchone()
            if row is None:
                return None
            identity, cell_id, version, is_open = row
            moved_to = await fence.read_moved_to(connection)
            return Place(address, url, identity, cell_id, version, is_open, moved_to)
    except (
        psycopg.OperationalError,
        psycopg.errors.UndefinedTable,
        psycopg.errors.InsufficientPrivilege,
    ):
        return None


async def restore_places(
    home: Connection,
    home_url: str,
    urls: Mapping[str, str],
    typed: Mapping[str, str],
    by: Auditor,
    progress: Callable[[str], None],
) -> list[RestoredCell]:
    """Let home know where its cells are.

    `urls` are those of this program's settings, `typed` the places that a person names, by cell.

    Raises PlaceRefused, psycopg.Error.
    """
    cells = await _list(home)
    known = [
        home_url,
        *urls.values(),
        *(address for cell in cells for address in (cell.address, cell.move_address)),
    ]
    servers = find_servers(known)
    restored = []
    for name in typed.keys() - {cell.name for cell in cells}:
        restored.append(await _add(home, home_url, name, typed[name], by))
    for cell in cells:
        here = await look(_make_url(home_url, cell.address, cell.schema_name), cell.address)
        if here is not None and here.cell_id != cell.cell_id:
            here = None
        places: list[Place] = []
        strange: list[str] = []
        if here is not None and (cell.name in typed or _is_ahead(cell, here)):
            places, strange = await _follow(home_url, servers, cell, here)
        if cell.name in typed:
            found = await _check_typed(home, home_url, cell, places, typed[cell.name])
        else:
            found = _choose(cell, places, strange)
        if found is not None:
            others = [place for place in places if place.identity != found.identity]
            is_moved = found.address != cell.address and (here is None or here in others)
            restored.append(await _write(home, cell, found, others, is_moved, by, progress))
    return restored


def find_servers(urls: Iterable[str | None]) -> frozenset[str]:
    """The servers of connection strings, as they are connected to. Pure."""
    servers = set()
    for named in (conninfo_to_dict(url) for url in urls if url is not None and db.names_place(url)):
        # An address of the network is used instead of the name.
        servers.update(str(named.get("hostaddr") or named.get("host") or "").split(","))
    return frozenset(servers)


async def _follow(
    home_url: str, servers: Collection[str], cell: KnownCell, here: Place
) -> tuple[list[Place], list[str]]:
    """The places of a cell, from the one that home says on, and those on servers that nobody knows."""
    found, waiting, strange = [here], [here.moved_to, cell.move_address], []
    seen = {cell.address}
    while waiting and len(seen) <= MAX_HOPS:
        address = waiting.pop()
        if not address or address in seen:
            continue
        seen.add(address)
        if not find_servers([address]) <= set(servers):
            strange.append(address)
            continue
        place = await look(_make_url(home_url, address, cell.schema_name), address)
        if place is not None and place.cell_id == cell.cell_id:
            found.append(place)
            waiting.append(place.moved_to)
    return found, strange


def _choose(cell: KnownCell, places: Sequence[Place], strange: Sequence[str]) -> Place | None:
    """The place of a cell that is not what home says. None if there are none. Pure. Raises PlaceRefused."""
    if strange:
        raise PlaceRefused(_describe_strange(cell, strange[-1]))
    if not places:
        return None
    best = max(places, key=lambda place: (place.version, place.is_open))
    if not best.is_open:
        raise PlaceRefused(_describe_closed(cell, best))
    return best


def _describe_strange(cell: KnownCell, address: str) -> str:
    return (
        f"An old place of cell {cell.name} says that the cell has moved to {address}. Home knows no such"
        " server, so it is not asked: it would get the password. If that is right, name the place:"
        f" --cell-url {cell.name}=URL."
    )


def _describe_closed(cell: KnownCell, last: Place) -> str:
    where = f"Cell {cell.name} has moved since home's back-up, and is closed at {last.address or 'home'}."
    typed = f"--cell-url {cell.name}=URL"
    if not last.moved_to:
        return f"{where} Say where it is now: {typed}."
    return (
        f"{where} No open copy of it answers at {last.moved_to}: start that server. If it is lost for good,"
        f" name the place that is to be opened: {typed}."
    )


async def _check_typed(
    home: Connection, home_url: str, cell: KnownCell, places: Sequence[Place], typed: str
) -> Place | None:
    """The place that a person names. None if it is what home says. Raises PlaceRefused."""
    address = db.strip_identity(typed)
    place = await look(_make_url(home_url, address, cell.schema_name, typed), address)
    if place is None or place.cell_id != cell.cell_id:
        raise PlaceRefused(f"Cell {cell.name} is not at {address}, or its server does not answer.")
    if address == cell.address and place.is_open and place.version == cell.version:
        return None
    others = [other for other in places if other.identity != place.identity]
    rivals = [other for other in others if other.is_open and other.version >= place.version]
    for rival in rivals:
        if not await _has_more(home, place, rival):
            raise PlaceRefused(
                f"Home knows a newer copy of cell {cell.name}. It is open at {rival.address or 'home'}, and"
                f" has all entries that are at {address}."
            )
    is_newer = place.version > cell.version or (place.is_open and place.version == cell.version)
    # An open place with a lower version is right if the one that home knows is closed.
    if not (is_newer or rivals or (place.is_open and others)):
        raise PlaceRefused(
            f"Home knows a newer copy of cell {cell.name} than the one at {address}: its version is"
            f" {cell.version}, that one's {place.version}{'' if place.is_open else ', closed'}."
        )
    return place


async def _has_more(home: Connection, place: Place, other: Place) -> bool:
    """Whether a place has an entry that another one lacks, in a book that has not left the cell since."""
    async with (
        await db.connect(place.url, SESSION_NAME) as here,
        await db.connect(other.url, SESSION_NAME) as there,
    ):
        longer = await _find_longer(here, there)
    values = {"merchant_ids": list(longer)}
    known = {row[0] for row in await (await home.execute(QUERIES["list_known"].text, values)).fetchall()}
    return any(is_there or merchant_id not in known for merchant_id, is_there in longer.items())


async def _leave(
    cell: KnownCell, other: Place, there: Connection, version: int, progress: Callable[[str], None]
) -> dict[int, list[int]]:
    """Close another place of a cell, and return what only its copies of books have.

    A book that is not in the cell any more is in another one, or counts as lost (see `book_placement`).
    """
    async with await db.connect(other.url, SESSION_NAME) as old:
        await fence.close_copy(old, cell.cell_id, version)
        await fence.drain(old, cell.schema_name, progress)
        longer = [number for number, is_there in (await _find_longer(old, there)).items() if is_there]
        return {number: await list_own_entries(old, there, number) for number in longer}


async def _require_right_to_end(cell: KnownCell, other: Place) -> None:
    """Check that the sessions at an open place can be seen and ended. Raises PlaceRefused."""
    async with await db.connect(other.url, SESSION_NAME) as old:
        users = [user for (user,) in await (await old.execute(QUERIES["list_strangers"].text)).fetchall()]
    if users:
        raise PlaceRefused(
            f"Cell {cell.name} is also open at {other.address or 'home'}. The sessions there of"
            f" {', '.join(users)} can't be ended. Give the owner of home's tables the roles pg_read_all_stats"
            " and pg_signal_backend there, then run this again."
        )


async def _find_longer(here: Connection, there: Connection) -> dict[int, bool]:
    """The merchants whose newest entry here is not there, and whether their book is."""
    heads = await (await here.execute(QUERIES["list_heads"].text)).fetchall()
    merchant_ids, entry_ids, hashes = ([head[place] for head in heads] for place in range(3))
    values = {"merchant_ids": merchant_ids, "entry_ids": entry_ids, "hashes": hashes}
    return dict(await (await there.execute(QUERIES["find_unknown"].text, values)).fetchall())


async def _write(
    home: Connection,
    cell: KnownCell,
    found: Place,
    others: Sequence[Place],
    is_moved: bool,
    by: Auditor,
    progress: Callable[[str], None],
) -> RestoredCell:
    """Close the other places, open the right one, and tell home. In this order: repeating it goes on."""
    for other in others:
        if other.is_open:
            await _require_right_to_end(cell, other)
    async with locked(home):
        await record_evidence(home, [make_evidence(cell, found, now_ms())])
    known = max(cell.version, *(place.version for place in (found, *others)))
    open_at = [place for place in (found, *others) if place.is_open and place.version == known]
    version = known if open_at == [found] else known + 1
    left: dict[int, list[int]] = {}
    async with await db.connect(found.url, SESSION_NAME) as there:
        for other in others:
            for merchant_id, own in (await _leave(cell, other, there, version, progress)).items():
                left[merchant_id] = sorted({*left.get(merchant_id, ()), *own}, reverse=True)
        if not found.is_open:
            await new_place.make_usable(there, found.url, cell.schema_name)
        if not found.is_open or found.version < version:
            await fence.open_copy(there, cell.cell_id, version)
    values = {"cell_id": cell.cell_id, "version": version, "address": found.address}
    async with locked(home):
        await home.execute(QUERIES["write_place"].text, values)
        if is_moved:
            moved = {**values, "old_address": cell.address}
            await home.execute(QUERIES["write_move"].text, moved)
        closed = {merchant_id: await end_payouts(home, merchant_id, own) for merchant_id, own in left.items()}
        await _record(home, by, cell.name, cell, values, left, closed)
    return RestoredCell(cell.name, found.address, cell.address, version, left, closed)


async def _add(home: Connection, home_url: str, name: str, typed: str, by: Auditor) -> RestoredCell:
    """A cell that was added after the back-up of home. Its schema has the name that `cell add` gives it."""
    schema, address = name.replace("-", "_"), db.strip_identity(typed)
    place = await look(_make_url(home_url, address, schema, typed), address)
    if place is None or not place.is_open:
        raise PlaceRefused(
            f"Home has no cell {name}, and there is no open one in schema {schema} at {address}."
        )
    cell = KnownCell(place.cell_id, name, schema, address, 0, None)
    values = {
        "cell_id": place.cell_id,
        "name": name,
        "schema": schema,
        "address": address,
        "version": place.version,
        "now_ms": now_ms(),
    }
    async with locked(home):
        await record_evidence(home, [make_evidence(cell, place, now_ms())])
        if not (await home.execute(QUERIES["add_cell"].text, values)).rowcount:
            raise PlaceRefused(f"Home has given the number of cell {name}, {place.cell_id}, to another cell.")
        await _record(home, by, name, None, values, {}, {})
    return RestoredCell(name, address, None, place.version, {}, {})


async def _record(
    home: Connection,
    by: Auditor,
    name: str,
    before: KnownCell | None,
    after: Mapping[str, Any],
    left: Mapping[int, Sequence[int]],
    closed: Mapping[int, Sequence[int]],
) -> None:
    told = None if before is None else {"address": before.address, "version": before.version}
    counts = {str(merchant_id): len(own) for merchant_id, own in left.items()}
    facts = {
        "address": after["address"],
        "version": after["version"],
        "leftBehind": counts,
        "closedOrders": sorted(order_id for order_ids in closed.values() for order_id in order_ids),
    }
    await by.author(now_ms()).record(home, "cell.restore_place", f"cell {name}", before=told, after=facts)


def _make_url(home_url: str, address: str | None, schema: str, typed: str | None = None) -> str:
    """The owner of home's tables is the owner there, unless the typed URL names another user."""
    if typed is not None and db.names_user(typed):
        return db.for_writing(db.place(typed, None, schema))
    return db.for_writing(db.place(home_url, address, schema))


async def _list(home: Connection) -> list[KnownCell]:
    async with home.cursor(row_factory=class_row(KnownCell)) as cursor:
        await cursor.execute(QUERIES["list_cells"].text, {"cell_id": None})
        return await cursor.fetchall()


async def _read(home: Connection, cell_id: int) -> KnownCell | None:
    async with home.cursor(row_factory=class_row(KnownCell)) as cursor:
        await cursor.execute(QUERIES["list_cells"].text, {"cell_id": cell_id})
        return await cursor.fetchone()
