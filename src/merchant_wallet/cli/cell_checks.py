"""What `doctor` says of each apart cell: one line, with the first thing that is wrong. A move has its own."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import psycopg

from merchant_wallet.base.cells import Cell
from merchant_wallet.base.clock import MAX_SKEW_MS, find_skew_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.cli.failures import describe_database_error
from merchant_wallet.cli.findings import Finding, fetch
from merchant_wallet.cli.server_checks import Standby, count_hosts, judge_roles, judge_standbys

MAX_MIRROR_AGE_MS: Final = 30_000
"""A worker renews the copies of rates each second. After a minute the cell exchanges nothing."""


class CellWrong(Exception):
    """Something is wrong with a cell: the text says what, and `advice` what to do."""

    def __init__(self, text: str, advice: str) -> None:
        super().__init__(text)
        self.advice = advice


async def check_cells(home: Any, settings: Settings, url: str) -> AsyncIterator[Finding]:
    """A finding for each apart cell. A cell that is away does not hinder the checks of the others."""
    from merchant_wallet.merchants.cells import citus, moves
    from merchant_wallet.merchants.cells.directory import Directory

    directory = Directory(url, dict(settings.cell_urls))
    await directory.refresh()
    unfollowed = await citus.read_unfollowed(home)
    for cell in directory.list():
        if (cause := unfollowed.get(cell.cell_id)) is not None:
            yield judge_unfollowed(cell, cause)
        elif not cell.is_home:
            yield await _check(home, cell)
    for found in await moves.list_all(home):
        yield judge_move(found)


def judge_unfollowed(cell: Cell, cause: str) -> Finding:
    """Judge a cell that is not where Citus says."""
    return Finding(
        f"cell {cell.name}",
        f"not where Citus says: {cause}",
        f"repair that node, or correct the catalogue with citus_update_node(); `merchant-wallet cell follow"
        f" {cell.name}` looks again, and takes an older copy, too",
    )


def judge_move(found: Any) -> Finding:
    """Judge the move of a cell: whether somebody is at it, and whether anything is left to do."""
    move, age_s = found.move, found.age_ms // 1000
    name, command = f"move of cell {move.name}", f"merchant-wallet cell move {move.name}"
    if move.state == "switched":
        text = f"done {age_s} s ago; the old copy is still there"
        return Finding(name, text, hint=f"when you no longer want it: `{command} --drop-old`")
    text = f"{move.state}, to {move.address}; the last step was {age_s} s ago"
    if found.is_held:
        return Finding(name, f"{text}, and a command is at it")
    return Finding(
        name,
        f"{text}, and no command is at it: the old server keeps all changes since, on its disk",
        f"continue it with `{command}`, or remove the copy with `{command} --undo`",
    )


async def _check(home: Any, cell: Cell) -> Finding:
    from merchant_wallet.base import db

    name = f"cell {cell.name}"
    try:
        if cell.admin_url is not None:
            await _check_coordinator(cell.admin_url)
        async with await db.connect(cell.url) as conn:
            pending = await _check_schema(conn, cell)
            roles = judge_roles(await fetch(conn, "list_side_roles"))
            waiting = await _check_state(home, conn, cell)
            await _check_standbys(conn, cell)
    except psycopg.Error as error:
        if (found := db.explain_error(error)) is None:
            raise
        return Finding(name, f"away: {found.what}", f"{found.advice} WALLET_CELL_URLS may name its address")
    except CellWrong as wrong:
        return Finding(name, str(wrong), wrong.advice)
    return Finding(name, f"answers; {pending}; {waiting}; {roles.text}", hint=roles.hint)


async def _check_coordinator(url: str) -> None:
    from merchant_wallet.base import db

    try:
        await (await db.connect(url)).close()
    except psycopg.OperationalError as error:
        raise CellWrong(
            f"the coordinator of Citus is away: {describe_database_error(error)}",
            "start it: until then nobody follows a node's failover, and no table can be changed",
        ) from error


async def _check_schema(conn: Any, cell: Cell) -> str:
    from merchant_wallet.postgres.migrate import list_pending

    row = await (await conn.execute("select to_regclass('cell_state') is not null")).fetchone()
    if row != (True,):
        advice = "correct WALLET_CELL_URLS: the address leads to another database"
        raise CellWrong(f"there is no cell in schema {cell.schema}", advice)
    if missing := await asyncio.to_thread(list_pending, cell.url, schema=cell.schema):
        raise CellWrong(f"missing migrations: {', '.join(missing)}", "run `merchant-wallet migrate`")
    return "all migrations applied"


async def _check_standbys(conn: Any, cell: Cell) -> None:
    told = dict(await fetch(conn, "list_server_settings"))
    standbys = [Standby(*row) for row in await fetch(conn, "list_standbys")]
    names = told["synchronous_standby_names"]
    finding = judge_standbys(names, standbys, is_live=False, hosts=count_hosts(cell.url))
    if finding.advice is not None:
        raise CellWrong(finding.text, finding.advice)


def _judge_moved(cell: Cell, version: int, address: str | None) -> CellWrong:
    """Home was restored to before a move of the cell."""
    known = f"home knows version {cell.version} of it, here it has version {version}"
    command = "merchant-wallet book accept-rollback --reason TEXT"
    if address:
        return CellWrong(f"moved to {address}; {known}", f"home was rolled back: `{command}`")
    return CellWrong(
        f"closed or moved; {known}",
        f"home was rolled back: `{command} --cell-url {cell.name}=URL` with the URL where it is now",
    )


async def _check_state(home: Any, conn: Any, cell: Cell) -> str:
    from merchant_wallet.book.nonce_partitions import list_nonce_days
    from merchant_wallet.merchants.cells import inspection
    from merchant_wallet.merchants.cells.fence import read_moved_to

    state = await inspection.read_state(home, conn, cell.cell_id)
    moved_to = await read_moved_to(conn)
    if state.fence is not None and (
        state.fence[1] > cell.version or (moved_to is not None and not state.fence[2])
    ):
        raise _judge_moved(cell, state.fence[1], moved_to)
    if state.fence != (cell.cell_id, cell.version, True) or not cell.is_open:
        said = f"the cell says {state.fence}, home says {(cell.cell_id, cell.version, cell.is_open)}"
        raise CellWrong(
            f"closed, or it has moved: {said} (id, version, open)",
            "if the cell is not being moved, correct WALLET_CELL_URLS: it may lead to the old place",
        )
    skew_ms = abs(find_skew_ms(state.home_before_ms, state.now_ms, state.home_after_ms))
    if skew_ms > MAX_SKEW_MS:
        raise CellWrong(f"its clock is {skew_ms} ms away from home's", "set both machines' clocks by NTP")
    today = state.now_ms // DAY_MS
    if missing := {today, today + 1} - set(await list_nonce_days(conn)):
        days = "today's" if today in missing else "tomorrow's"
        raise CellWrong(f"no partition for {days} nonces", "start `work`: it creates them")
    if state.waiting:
        raise CellWrong(
            f"changes of {count_of(state.waiting, 'merchant')} wait to be carried there",
            "start `work`: it carries them each second",
        )
    if state.mirror_age_ms > MAX_MIRROR_AGE_MS:
        raise CellWrong(
            f"its copies of rates are {state.mirror_age_ms} ms old; a minute old, they are not used",
            "start `work`: it renews them each second",
        )
    merchants = count_of(state.merchants, "merchant")
    return f"{merchants}, copies of rates {state.mirror_age_ms} ms old, no change waits"
