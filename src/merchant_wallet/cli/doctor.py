"""`doctor`: check whether everything is in place, and if not, say what to do.

Rules:
- Each check says in one line what it saw, and what to do if that is wrong. Nothing is changed.
- A check that depends on a failed one is left out.
- A hint says what could be better. It does not make the result wrong.
"""

import asyncio
import os
import platform
import shlex
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import typer

from merchant_wallet.base.chains import CODES
from merchant_wallet.base.config import NODE_SETTINGS, has_master_key
from merchant_wallet.base.outbound import Destination, Untrusting
from merchant_wallet.base.setting_sources import LINKS_ADVICE, list_service_links
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.cli.failures import REFUSED, Failure, explain
from merchant_wallet.cli.findings import Finding, fetch
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.server_checks import (
    check_disks,
    check_programs,
    check_server,
    judge_roles,
    judge_skew,
    judge_sources,
)
from merchant_wallet.cli.session import find_database, read_running
from merchant_wallet.cli.terminal import print_document, show_value

app = typer.Typer()

MIN_VERSION: Final = 150_000
REBUILD: Final = (
    "use the distribution's Python, or build one with pyenv and"
    ' PYTHON_CONFIGURE_OPTS="--enable-optimizations --with-lto"; then delete .venv and run `make setup`'
)
ROLLBACK_ADVICE: Final = (
    "enter what was lost into the books (docs/operating.md, Back-up and restore), then run "
    "`merchant-wallet book accept-rollback --reason TEXT`, which finds moved cells and books again"
)
REPLACED_ADVICE: Final = (
    "nothing is signed on this chain: move on to the new contract "
    "(docs/chains.md, If the issuer replaces the token)"
)
PERSONAL: Final = (
    "who has two accounts can decide alone what needs two people: disable the second one, "
    "unless several people read this mailbox"
)


@app.command()
def doctor(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Check set-up, database, standbys, roles, programs, clock, keys, chains, payouts, disks and cells.

    Exit status 1 if something is wrong; each such line says what to do. Hints do not change the status.

    \b
    Example:
      merchant-wallet doctor --data /srv/wallet
    """
    findings = asyncio.run(_examine(data))
    sound = all(finding.advice is None for finding in findings)
    if as_json:
        print_document({"ok": sound, "checks": [_document(finding) for finding in findings]})
    else:
        print_findings(findings)
    if not sound:
        raise typer.Exit(REFUSED)


def _document(finding: Finding) -> dict[str, object]:
    return {
        "name": finding.name,
        "ok": finding.advice is None,
        "text": finding.text,
        "advice": finding.advice,
        "hint": finding.hint,
    }


def print_findings(findings: list[Finding]) -> None:
    """Print a line for each check, and below it what to do."""
    for finding in findings:
        typer.echo(f"{finding.word:<5}  {finding.name}: {show_value('', finding.text)}")
        for what_to_do in (finding.advice, finding.hint):
            if what_to_do is not None:
                typer.echo(f"       -> {show_value('', what_to_do)}")


async def _examine(data: Path | None) -> list[Finding]:
    """Run every check that is possible, in order. After an expected error the list ends."""
    findings: list[Finding] = []
    checks = _check_all(data)
    stage = _ORDER[0]
    try:
        async for finding in checks:
            findings.append(finding)
            stage = _NEXT.get(finding.name, finding.name)
    except Exception as error:
        if (ended := _judge_end(stage, error)) is None:
            raise
        findings.append(ended)
    return findings


def _judge_end(stage: str, error: Exception) -> Finding | None:
    """Judge the error that ended the checks at a stage. None if it is a fault of ours."""
    import psycopg

    from merchant_wallet.base.db import explain_error

    if isinstance(error, psycopg.Error) and (found := explain_error(error)):
        return Finding(stage, found.what, found.advice)
    failure = explain(error)
    if failure is None:
        return None
    return Finding(stage, failure.text, _ADVICE.get(stage, "check whether the database still answers"))


_ORDER: Final = (
    "python",
    "configuration",
    "database",
    "tls",
    "texts",
    "durability",
    "standbys",
    "migrations",
    "roles",
    "programs",
    "program clocks",
    "connections",
    "clock",
    "master key",
    "keys",
    "chains",
    "nonces",
    "checkpoints",
    "payouts",
    "disk",
)
_NEXT: Final = dict(pairwise(_ORDER))
_ADVICE: Final = {
    "configuration": "correct that setting, then run doctor again",
    "database": "start the service, or set WALLET_DATABASE_URL or --data",
    "migrations": "run `merchant-wallet migrate` with the version of the program that uses this database",
    "keys": "restore the keystore, or create one with `merchant-wallet keys create`",
    "master key": "set WALLET_MASTER_KEY, or name the data folder with the master.key of this database",
}


async def _check_all(data: Path | None) -> AsyncIterator[Finding]:
    from merchant_wallet.base import db
    from merchant_wallet.cli.archive_checks import check_archive
    from merchant_wallet.cli.backup_checks import check_backup
    from merchant_wallet.cli.cell_checks import check_cells
    from merchant_wallet.cli.cold_checks import check_cold, check_rescues
    from merchant_wallet.cli.hot_wallet_checks import check_hot_wallets
    from merchant_wallet.cli.keystore_checks import check_keys
    from merchant_wallet.cli.merchant_move_checks import check_merchant_moves
    from merchant_wallet.cli.notification_checks import check_notifications
    from merchant_wallet.cli.screening_checks import check_screening
    from merchant_wallet.postgres.jobs import list_all
    from merchant_wallet.processes.python_build import runs_optimised

    yield judge_build(optimised=runs_optimised())
    settings = read_running(data)
    yield _check_configuration(settings)
    if (outbound := check_outbound(settings)) is not None:
        yield await check_proxies(outbound, settings)
    url = find_database(settings)
    async with await db.connect(url) as conn:
        yield _check_version(conn.info.server_version)
        async for finding in check_server(conn, settings):
            yield finding
        migrations = await _check_migrations(url)
        yield migrations
        if migrations.advice is None:
            yield await _check_roles(conn)
            async for finding in check_programs(conn):
                yield finding
        yield await _check_clock(conn)
        if migrations.advice is None:
            yield await _check_master_key(conn, settings)
            yield await check_keys(conn, settings)
            yield await _check_nodes(settings)
            async for finding in check_hot_wallets(conn, settings):
                yield finding
            yield await _check_nonces(conn)
            yield await _check_checkpoints(conn, settings, url)
            yield await _check_payouts(conn)
            async for finding in check_cold(conn, settings):
                yield finding
            async for finding in check_rescues(conn):
                yield finding
            async for finding in check_screening(conn, settings):
                yield finding
            yield await check_disks(settings)
            yield await check_notifications(conn, settings)
            yield judge_accounts(await fetch(conn, "list_shared_emails"))
            yield judge_sources(await fetch(conn, "list_sources"), settings.trusted_proxies)
            async for finding in check_archive(conn, settings, url):
                yield finding
            async for finding in check_cells(conn, settings, url):
                yield finding
            async for finding in check_merchant_moves(conn):
                yield finding
            async for finding in check_backup(conn, settings):
                yield finding
            for job in await list_all(conn):
                yield Finding("job", str(job))


def judge_build(*, optimised: bool) -> Finding:
    """Judge whether this Python was built with optimisations."""
    version = platform.python_version()
    if optimised:
        return Finding("python", f"{version}, built with optimisation")
    return Finding(
        "python", f"{version}, built without optimisation: a fifth fewer requests a second", hint=REBUILD
    )


def _check_configuration(settings: Settings) -> Finding:
    folder = f"data folder {shlex.quote(str(settings.data))}" if settings.data.exists() else "no data folder"
    links = list_service_links(os.environ)
    hint = f"links of Kubernetes are ignored ({', '.join(links)}): {LINKS_ADVICE}" if links else None
    if settings.sandbox:
        return Finding("configuration", f"{folder}, sandbox: no real money moves", hint=hint)
    named = [(code, settings.chains[code].rpc) for code in settings.open_chains]
    nodes = ", ".join(f"{chain} over {len(urls)} node(s)" for chain, urls in named)
    if not nodes:
        text = "WALLET_SANDBOX is false, and no chain has a node"
        return Finding("configuration", text, f"set {NODE_SETTINGS}")
    if hint is None and not settings.invoice_issuer:
        hint = "closed months issue invoices without an issuer: set WALLET_INVOICE_ISSUER"
    return Finding("configuration", f"{folder}, live: real USDT, {nodes}", hint=hint)


def check_outbound(settings: Settings) -> Finding | None:
    """Whom connections to others trust, and their proxies. None if nothing is set and nothing is wrong."""
    outbound = settings.outbound
    try:
        outbound.tls()
    except Untrusting as error:
        return Finding("outbound", str(error), "correct WALLET_CA_FILE, SSL_CERT_FILE or SSL_CERT_DIR")
    parts = [] if outbound.ca_file is None else [f"also the certificates of {outbound.ca_file} are trusted"]
    parts += [
        f"{one} through {proxy.name}" for one in Destination if (proxy := outbound.find_way(one)) is not None
    ]
    return Finding("outbound", ", ".join(parts)) if parts else None


async def check_proxies(outbound: Finding, settings: Settings) -> Finding:
    """The finding about connections to others, with the proxies that can't be reached from here."""
    failures = [] if outbound.advice else await settings.outbound.try_proxies()
    if not failures:
        return outbound
    advice = "correct WALLET_PROXIES, or let this machine reach the proxy"
    return Finding("outbound", "; ".join((outbound.text, *failures)), advice)


def _check_version(version: int) -> Finding:
    text = f"PostgreSQL {version // 10_000}.{version % 10_000} answers"
    advice = None if version >= MIN_VERSION else "move the database to PostgreSQL 15 or newer"
    return Finding("database", text, advice)


async def _check_migrations(url: str) -> Finding:
    from merchant_wallet.postgres.migrate import find_pending
    from merchant_wallet.postgres.migration_files import Kind, read_migrations

    pending = await asyncio.to_thread(find_pending, url)
    if missing := [migration.name for migration in pending if migration.kind is not Kind.CONTRACT]:
        return Finding("migrations", f"missing: {', '.join(missing)}", "run `merchant-wallet migrate`")
    if pending:
        text = f"all that this version needs; {len(pending)} contraction(s) wait"
        hint = "when every program is of this version, run `merchant-wallet migrate`"
        return Finding("migrations", text, hint=hint)
    return Finding("migrations", f"all {len(read_migrations())} applied")


async def _check_roles(conn: Any) -> Finding:
    if (await fetch(conn, "may_read_roles"))[0] == (False,):
        return Finding("roles", "this is the role of one side, which can't see the roles of the other")
    return judge_roles(await fetch(conn, "list_side_roles"))


def judge_accounts(shared: Sequence[tuple[Sequence[str]]]) -> Finding:
    """Judge whether accounts are personal. `shared` are the accounts that have one e-mail address. Pure."""
    if not shared:
        return Finding("accounts", "no two accounts have one e-mail address")
    named = "; ".join(" and ".join(names) for (names,) in shared)
    return Finding("accounts", f"one e-mail address for several accounts: {named}", hint=PERSONAL)


async def _check_clock(conn: Any) -> Finding:
    from merchant_wallet.base.clock import now_ms

    before_ms = now_ms()
    row = (await fetch(conn, "read_clock"))[0]
    after_ms = now_ms()
    return judge_skew(before_ms, row[0], after_ms)


async def _check_master_key(conn: Any, settings: Settings) -> Finding:
    from merchant_wallet.base.config import load_or_create_master_key
    from merchant_wallet.merchants import store
    from merchant_wallet.merchants.keys import Keyring

    merchants = await store.list_merchants(conn)
    if not has_master_key(settings):
        if merchants:
            raise Failure(f"there is no master key in {settings.data}, and WALLET_MASTER_KEY is not set")
        return Finding("master key", "none yet; the first start creates it")
    keyring = Keyring(settings.master_key or load_or_create_master_key(settings.data))
    # The oldest merchant shows whether the key was replaced. The newest shows whether it was created with
    # the key of a wrong folder.
    for merchant in {*merchants[:1], *merchants[-1:]}:
        await store.load(conn, keyring, merchant.merchant_id)
    return Finding("master key", "opens the merchants' secrets" if merchants else "there are no secrets yet")


async def _check_nodes(settings: Settings) -> Finding:
    from merchant_wallet.chains.issuer import describe_successor
    from merchant_wallet.processes.nodes import check_chains, find_successors, open_chain_readers

    if settings.sandbox:
        return Finding("chains", "the sandbox has its own")
    readers = open_chain_readers(settings)
    if not readers:
        # The finding about the configuration has the advice.
        return Finding("chains", "no chain has a node")
    try:
        wrong = await check_chains(readers)
        replaced = {} if wrong else await find_successors(readers)
        hints = [hint for chain in readers for hint in await _list_node_faults(chain, readers[chain])]
    finally:
        for reader in readers.values():
            await reader.close()
    if wrong:
        advice = "correct the settings or the node; nothing is paid until they fit"
        return Finding("chains", "; ".join(wrong), advice)
    if replaced:
        text = "; ".join(f"{chain}: {describe_successor(name)}" for chain, name in replaced.items())
        return Finding("chains", text, REPLACED_ADVICE)
    text = f"chain id, token and clock of {' and '.join(readers)} fit the settings"
    limited = [node for chain in readers for node in settings.chains[chain].nodes if any(node.limits)]
    if limited:
        text += f"; limits of calls: {', '.join(f'{node.name} {node.limits}' for node in limited)}"
    return Finding("chains", text, hint="; ".join(hints) or None)


async def _list_node_faults(chain: str, reader: Any) -> list[str]:
    """What is wrong with single nodes of a chain, though others suffice."""
    faulty = [each for each in await reader.look_at_nodes() if each.failure]
    known = tuple(f"{each.name}: " for each in faulty)
    failures = [each.failure for each in faulty]
    failures += [text for text in await reader.list_failures() if not text.startswith(known)]
    lacks = any(each.head is not None and each.final is None for each in faulty)
    advice = ["docs/chains.md says what a node without a final block lacks"] if lacks else []
    return [f"{chain}, node {failure}" for failure in failures] + advice


async def _check_nonces(conn: Any) -> Finding:
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.book.nonce_partitions import list_nonce_days

    today = now_ms() // DAY_MS
    missing = {today, today + 1} - set(await list_nonce_days(conn))
    if missing:
        days = "today's" if today in missing else "tomorrow's"
        return Finding(
            "nonces", f"no partition for {days} nonces", "start `merchant-wallet up`, `serve` or `work`"
        )
    return Finding("nonces", "the partitions for today and tomorrow exist")


async def _check_checkpoints(conn: Any, settings: Settings, url: str) -> Finding:
    from merchant_wallet.audit.checkpointing.acceptance import EvidenceSources, find_all_evidence
    from merchant_wallet.base.cells import Databases
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.book.checkpoint_keys import load_keys
    from merchant_wallet.chains.keys.keystore import JOURNAL
    from merchant_wallet.merchants.cells import places
    from merchant_wallet.merchants.cells.directory import Directory
    from merchant_wallet.observability import logs
    from merchant_wallet.processes.cell_connections import reach_apart
    from merchant_wallet.processes.signers import find_keys_folder

    folder = settings.checkpoint_folder
    record = find_keys_folder(settings) / JOURNAL
    # The file may belong to the signer's own user.
    cells = Directory(url, dict(settings.cell_urls))
    find_moved = partial(places.find_evidence, directory=cells)
    place = EvidenceSources(folder, record if os.access(record, os.R_OK) else None, find_moved)
    # A cell that is away has a finding of its own. A line in the log would mix with the answer.
    logs.set_up("error", settings.log_format)
    async with reach_apart(cells) as apart:
        evidence = await find_all_evidence(Databases(conn, apart), place, now_ms())
    if evidence:
        more = f" ({len(evidence)} findings in all)" if len(evidence) > 1 else ""
        text = (
            f"the database was rolled back, nothing is paid: {evidence[0].subject}: {evidence[0].cause}{more}"
        )
        return Finding("checkpoints", text, ROLLBACK_ADVICE)
    key = (await load_keys(conn, folder)).public_key
    if key is None:
        return Finding("checkpoints", f"none in {folder} yet; `work` creates them")
    return Finding("checkpoints", f"the database is not behind those in {folder}, signed with {key.hex()}")


async def _check_payouts(conn: Any) -> Finding:
    from merchant_wallet.hot_wallet.stops import find_stop_causes
    from merchant_wallet.withdrawals import payouts

    frozen = await payouts.list_frozen(conn)
    causes = [(chain, cause) for chain in CODES for cause in await find_stop_causes(conn, chain)]
    if not frozen and causes:
        chain, cause = causes[0]
        look = f"`merchant-wallet wallets list`, then `wallets resume {chain}`"
        return Finding(
            "payouts", f"{chain} pays nothing: {cause}", f"make sure that wallet and books agree: {look}"
        )
    if not frozen:
        return Finding("payouts", "none is frozen")
    first = frozen[0]
    order = f"{first.merchant_id} {first.order_id}"
    text = f"{len(frozen)} frozen, the first is merchant and order {order}: {first.cause}"
    look = f"`merchant-wallet withdrawals show {order}`"
    return Finding("payouts", text, f"compare the order with its journal entry: {look}, then `book verify`")
