"""What `doctor` says of the database's server, its clock and roles, of the programs that run, and of the
disks of this machine.

Rules: the judges are pure, so that each fault can be tried. In the sandbox, where no money can be lost, most
faults are hints.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from merchant_wallet.base.clock import MAX_SKEW_MS, find_skew_ms
from merchant_wallet.base.connection_limits import COMMANDS, SERVE_CONNECTIONS, WORK_CONNECTIONS
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.session_settings import is_replaced
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.source_addresses import INNER, NOBODY, Network, is_trusted
from merchant_wallet.base.version import read_version
from merchant_wallet.cli.findings import Finding, fetch

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost", "")
CHECKED_MODES: Final = ("verify-ca", "verify-full")
MIN_FREE_BYTES: Final = 2**30
MIN_FREE_SHARE: Final = 0.05
GOOD_FREE_SHARE: Final = 0.15
FULL_SHARE: Final = 0.9
BACKUP_SECTION: Final = "docs/operating.md, Back-up and restore"
SEPARATE: Final = (
    "give each side its own role: run `merchant-wallet migrate --web-role ROLE --worker-role ROLE`,"
    " then name these roles in the URLs of `serve` and `work`"
)
NAME_ROLES: Final = "name the sides' own roles in the URLs of `serve` and `work`, and restart these"
READ_ONLY_DEFAULT: Final = "default_transaction_read_only"
TRUE: Final = ("on", "true", "yes", "1")


_SESSIONS: Final = {"web": SERVE_CONNECTIONS, "worker": WORK_CONNECTIONS}
"""The most sessions of one program of each side."""
_WITHOUT: Final = {
    "web": "no `serve` runs: merchants get no answer, and no page opens",
    "worker": "no `work` runs: nothing is paid, credited or delivered",
}


class Standby(NamedTuple):
    """A standby that is connected. `lag_ms` is how far it is behind; None if it is not told or idle."""

    name: str
    sync_state: str | None
    lag_ms: int | None


class Limit(NamedTuple):
    """How many sessions a role or the database may have, and has. `side` is the role's; None for all."""

    kind: str
    name: str
    side: str | None
    most: int
    used: int


async def check_server(conn: Any, settings: Settings) -> AsyncIterator[Finding]:
    """The connection, how texts are stored, what the server promises, and its standbys."""
    parameters = conn.info.get_parameters()
    mode = parameters.get("sslmode", "prefer")
    yield judge_tls(conn.info.host, conn.pgconn.ssl_in_use, mode, is_live=not settings.sandbox)
    (encoding, order) = (await fetch(conn, "read_texts"))[0]
    yield judge_texts(encoding, order, is_ordered=not await _list_unordered(conn))
    yield judge_session_defaults(await fetch(conn, "list_session_defaults"))
    told = dict(await fetch(conn, "list_server_settings"))
    yield judge_durability(told, is_live=not settings.sandbox)
    standbys = [Standby(*row) for row in await fetch(conn, "list_standbys")]
    yield judge_standbys(
        told["synchronous_standby_names"],
        standbys,
        is_live=not settings.sandbox,
        hosts=count_hosts(settings.database_url),
    )


def count_hosts(url: str | None) -> int:
    """How many hosts a URL names. Without a URL it is the own PostgreSQL."""
    # `--help` must not load the driver.
    from merchant_wallet.base.hosts import Hosts

    return 1 if url is None else len(Hosts.of(url).hosts)


async def _list_unordered(conn: Any) -> list[tuple[str, str, str]]:
    from merchant_wallet.postgres.migrate import QUERIES

    rows: list[tuple[str, str, str]] = await (await conn.execute(QUERIES["list_unordered"].text)).fetchall()
    return rows


async def check_programs(conn: Any) -> AsyncIterator[Finding]:
    """The programs that run, and whether the server has room for their connections."""
    from merchant_wallet.processes.instances import list_live

    live = await list_live(conn)
    yield judge_programs([(instance.side, instance.version) for instance in live], read_version())
    yield judge_program_clocks([(str(instance), instance.clock_ahead_ms) for instance in live])
    (most, used) = (await fetch(conn, "count_connections"))[0]
    sees_roles = (await fetch(conn, "may_read_roles"))[0] == (True,)
    limits = [Limit(*row) for row in await fetch(conn, "list_limits")] if sees_roles else []
    yield judge_connections(Counter(instance.side for instance in live), most, used, limits)


async def check_disks(settings: Settings) -> Finding:
    """The disks below the data folder and the checkpoints. The database's own may be elsewhere."""
    folders = {folder for folder in (settings.data, settings.checkpoint_folder) if folder.exists()}
    found = {folder: await asyncio.to_thread(shutil.disk_usage, folder) for folder in sorted(folders)}
    return judge_disks({folder: (usage.free, usage.total) for folder, usage in found.items()})


def judge_sources(sources: Iterable[tuple[str, int, int]], trusted: tuple[Network, ...]) -> Finding:
    """Judge where requests came from. Of each source: how many requests, and of how many merchants."""
    # `--help` must not load the log.
    from merchant_wallet.base.trusted_proxies import NAME_PROXY, SET_HEADER, UNREADABLE

    seen = [(source, count, merchants) for source, count, merchants in sources]
    total = sum(count for _, count, _ in seen)
    unread = sum(count for source, count, _ in seen if source == NOBODY)
    if unread:
        text = f"{unread} of {total} requests of the last day have no address: {UNREADABLE}"
        return Finding("sources", text, SET_HEADER)
    own = [(source, count) for source, count, _ in seen if is_trusted(source, trusted)]
    if own:
        text = f"{sum(count for _, count in own)} of {total} requests of the last day came from {own[0][0]}"
        return Finding(
            "sources", f"{text}, a trusted proxy, for itself or without saying for whom", hint=SET_HEADER
        )
    # One address for several merchants: of all requests, or inside the network, it is likely a proxy.
    shared = [
        (source, merchants)
        for source, _, merchants in seen
        if merchants > 1 and (is_trusted(source, INNER) or (not trusted and len(seen) == 1))
    ]
    if shared:
        source, merchants = shared[0]
        whole = "all requests of" if len(seen) == 1 else "requests of"
        return Finding("sources", f"{whole} {merchants} merchants came from {source}", hint=NAME_PROXY)
    requests, addresses = count_of(total, "request"), count_of(len(seen), "address", "addresses")
    return Finding("sources", f"{requests} of the last day came from {addresses}")


def judge_tls(host: str, is_encrypted: bool, mode: str, *, is_live: bool) -> Finding:
    """Judge how the database is reached. `mode` is libpq's `sslmode`."""
    if host.startswith("/") or host in LOOPBACK:
        return Finding("tls", "the database is reached inside this machine")
    if not is_encrypted:
        text = f"the connection to {host} is not encrypted: passwords and books cross in the clear"
        advice = "turn on ssl in PostgreSQL, and add sslmode=verify-full to WALLET_DATABASE_URL"
        return Finding("tls", text, advice) if is_live else Finding("tls", text, hint=advice)
    if mode not in CHECKED_MODES:
        text = f"the connection to {host} is encrypted, but nothing proves that it leads there"
        hint = "add sslmode=verify-full and sslrootcert=FILE to WALLET_DATABASE_URL"
        return Finding("tls", text, hint=hint)
    return Finding("tls", f"the connection to {host} is encrypted, and its certificate was checked")


def judge_texts(encoding: str, order: str, *, is_ordered: bool) -> Finding:
    """Judge whether the database can store every name, and whether a beginning is a range of its indexes.

    `is_ordered`: the texts that are searched so have the order of bytes.
    """
    # `--help` must not load the driver.
    from merchant_wallet.postgres.migrate import ENCODING

    text = f"{encoding}, in the order of {order}"
    if encoding != ENCODING:
        advice = f"dump the database, create it anew with `encoding '{ENCODING}' template template0`, restore"
        return Finding("texts", f"{text}: a name in another script fails with 50000", advice)
    if is_ordered:
        return Finding("texts", text)
    hint = (
        "a search for a beginning may find less, because a dump of a database in another order was restored:"
        " restore it into one that was created with `locale_provider libc lc_collate 'C' template template0`"
    )
    return Finding("texts", text, hint=hint)


def judge_session_defaults(defaults: Iterable[tuple[str, str, str]]) -> Finding:
    """Say which defaults of server, database and roles are replaced in our sessions, which is no fault, and
    which of them forbid to write. Each has its name, its value, and whom it concerns.
    """
    found = list(defaults)
    replaced = [f"{name} = {value} ({concern})" for name, value, concern in found if is_replaced(name)]
    text = "no default of the database or of a role is replaced"
    if replaced:
        text = f"this program's sessions have values of their own for {', '.join(replaced)}"
    forbidden = [
        concern for name, value, concern in found if name == READ_ONLY_DEFAULT and value.lower() in TRUE
    ]
    hint = (
        f"{READ_ONLY_DEFAULT} is on for {', '.join(forbidden)}, and this is kept: nothing is written in such"
        " sessions. Reset it when it is no longer wanted"
    )
    return Finding("session settings", text, hint=hint if forbidden else None)


def judge_durability(told: Mapping[str, str], *, is_live: bool) -> Finding:
    """Judge whether what was committed survives a crash of the server's machine."""
    off = [name for name in ("fsync", "full_page_writes") if told[name] != "on"]
    if off:
        text = f"{' and '.join(off)} off: a crash may destroy the books"
        advice = f"set {', '.join(f'{name} = on' for name in off)} in postgresql.conf, and restart PostgreSQL"
        return Finding("durability", text, advice) if is_live else Finding("durability", text, hint=advice)
    if told["data_checksums"] != "on":
        hint = "stop PostgreSQL and run `pg_checksums --enable`"
        return Finding("durability", "pages have no checksums: a bad disk is not noticed", hint=hint)
    return Finding("durability", "fsync and full_page_writes on, pages have checksums")


def judge_standbys(names: str, standbys: Sequence[Standby], *, is_live: bool, hosts: int = 1) -> Finding:
    """Judge the server's standbys. `names` is its `synchronous_standby_names`; the URL names so many `hosts`.

    Several hosts are there to follow a failover. In the sandbox, too, it must not lose what was answered.
    """
    named = ", ".join(f"{each.name} ({_describe(each)})" for each in standbys)
    if hosts > 1 and not names:
        text = (
            f"the URL names {hosts} hosts, and synchronous_standby_names is empty: "
            f"a failover loses operations that were answered; standbys: {named or 'none'}"
        )
        advice = f"name standbys in synchronous_standby_names, as deploy/patroni.yml does ({BACKUP_SECTION})"
        return Finding("standbys", text, advice)
    in_step = [each for each in standbys if each.sync_state in ("sync", "quorum")]
    if names and not in_step:
        text = f"commits wait for a synchronous standby ({names}), and none is connected"
        return Finding("standbys", text, "start a standby, or take it out of synchronous_standby_names")
    if not standbys:
        text = "none: if this server is lost, back-ups are all that is left"
        hint = f"add two synchronous standbys ({BACKUP_SECTION})" if is_live else None
        return Finding("standbys", text, hint=hint)
    if not names:
        hint = f"name them in synchronous_standby_names ({BACKUP_SECTION})"
        return Finding("standbys", f"{named}; a failover may lose the last operations", hint=hint)
    return Finding("standbys", named)


def _describe(standby: Standby) -> str:
    state = standby.sync_state or "not told to this role"
    return state if standby.lag_ms is None else f"{state}, {standby.lag_ms} ms behind"


def judge_programs(running: Iterable[tuple[str, str]], own: str) -> Finding:
    """Judge the sides that run, each with its version. `own` is the version of this command."""
    counted = Counter(running)
    if not counted:
        return Finding("programs", "none runs")
    text = ", ".join(f"{side} {count} × {version}" for (side, version), count in sorted(counted.items()))
    sides = {side for side, _ in counted}
    missing = [told for side, told in _WITHOUT.items() if side not in sides]
    if {version for _, version in counted} == {own}:
        return Finding("programs", text, hint=missing[0] if missing else None)
    hint = "restart all with one version, then run `merchant-wallet migrate`"
    return Finding("programs", f"{text}; this command is {own}", hint=hint)


def judge_program_clocks(running: Iterable[tuple[str, int | None]]) -> Finding:
    """Judge the clocks of programs that run: how far each is ahead of the database's, if it is known."""
    far = [(name, ahead_ms) for name, ahead_ms in running if ahead_ms and abs(ahead_ms) > MAX_SKEW_MS]
    if not far:
        return Finding("program clocks", "no program's clock is known to differ from the database's")
    text = ", ".join(
        f"{name} is {abs(ahead_ms) / 1000:.0f} s {'ahead of' if ahead_ms > 0 else 'behind'} the database"
        for name, ahead_ms in far
    )
    advice = "set that machine's clock by NTP; if all say the same, it is the database's machine"
    return Finding("program clocks", text, advice)


def judge_connections(
    sides: Mapping[str, int], most: int, used: int, limits: Iterable[Limit] = ()
) -> Finding:
    """Judge the server's sessions. `most` is what it takes from ordinary users, `limits` are narrower.

    A program that gets no session can't note that it runs, so narrower limits are for one of each at least.
    """
    needed = _count_needed(sides)
    text = f"{used} of {most} in use; the programs that run need up to {needed}"
    advice = "raise max_connections in PostgreSQL, or lower WALLET_CONNECTIONS"
    if used > FULL_SHARE * most:
        return Finding("connections", text, advice)
    least = {side: max(1, sides.get(side, 0)) for side in _SESSIONS}
    short = [(limit, theirs) for limit in limits if (theirs := _count_needed(least, limit.side)) > limit.most]
    if short:
        text += "".join(
            f"; the {limit.kind} {limit.name} has {limit.used} of {limit.most}, and needs up to {theirs}"
            for limit, theirs in short
        )
        raised = "; ".join(
            f"alter {limit.kind} {limit.name} connection limit {theirs}" for limit, theirs in short
        )
        advice = f"as the database's administrator type `{raised}`"
        if any(limit.used > FULL_SHARE * limit.most for limit, _ in short):
            return Finding("connections", text, advice)
    return Finding("connections", text, hint=advice if short or needed > most else None)


def _count_needed(sides: Mapping[str, int], side: str | None = None) -> int:
    """The most sessions of these programs: of one side, or of all with the commands."""
    if side is not None:
        return sides[side] * _SESSIONS[side]
    return sum(sides.get(each, 0) * count for each, count in _SESSIONS.items()) + COMMANDS


def judge_disks(spaces: Mapping[Path, tuple[int, int]]) -> Finding:
    """Judge the free and total bytes of the disks below these folders."""
    text = ", ".join(
        f"{folder} has {free / 2**30:.1f} GiB free, {free / max(total, 1):.0%}"
        for folder, (free, total) in spaces.items()
    )
    scarce = [
        str(folder)
        for folder, (free, total) in spaces.items()
        if free < max(MIN_FREE_BYTES, total * MIN_FREE_SHARE)
    ]
    if scarce:
        return Finding("disk", text, f"make room on the disk of {', '.join(scarce)}")
    little = any(free < total * GOOD_FREE_SHARE for free, total in spaces.values())
    few = f"less than {GOOD_FREE_SHARE:.0%} is free: make room, below {MIN_FREE_SHARE:.0%} it is urgent"
    return Finding("disk", text or "no folder yet", hint=few if little else None)


def judge_roles(found: Sequence[tuple[str, str | None, bool]]) -> Finding:
    """Judge the roles that write to books: each role with its side, and whether it could change entries."""
    strong = sorted({role for role, _, is_strong in found if is_strong})
    if strong:
        # What was done is not said again.
        hint = NAME_ROLES if any(side for _, side, _ in found) else SEPARATE
        return Finding("roles", f"{', '.join(strong)} writes to books and could change entries", hint=hint)
    named = [f"{side} side {role}" for role, side, _ in found if side is not None]
    if not named:
        return Finding("roles", "the sides have no database roles of their own", hint=SEPARATE)
    return Finding("roles", f"{', '.join(named)}; none can change what was written")


def judge_skew(before_ms: int, theirs_ms: int, after_ms: int) -> Finding:
    """Judge the database's clock, which was read between two readings of our own."""
    skew_ms = abs(find_skew_ms(before_ms, theirs_ms, after_ms))
    text = f"{skew_ms} ms away from the database's"
    advice = None if skew_ms <= MAX_SKEW_MS else "set both machines' clocks by NTP"
    return Finding("clock", text, advice)
