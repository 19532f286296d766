"""`backup`: base back-ups of the own PostgreSQL, what the store has, and restoring it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.base.counted import count_of
from merchant_wallet.base.moments import format_moment
from merchant_wallet.cli import terminal
from merchant_wallet.cli.backup_authenticity import choose_kept, note_strange
from merchant_wallet.cli.backup_drill import describe_hole, verify_in_scratch
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.journals import read_moment
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, find_database, read_settings, run

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.postgres.backups.catalogue import BaseBackup, Catalogue, WalEnd
    from merchant_wallet.postgres.backups.encryption import BackupKey
    from merchant_wallet.postgres.backups.recovery import Restored
    from merchant_wallet.postgres.backups.stores import Store

app = typer.Typer(help="Back up the own PostgreSQL, and restore it to a moment.")

COLUMNS: Final = terminal.Table("name", "endedMs", "storedBytes", "timeline", "restorableToMs")
BOOK_COLUMNS: Final = terminal.Table("merchantId", "ok", "entries", "headHash")
MEGABYTE: Final = 10**6
NEVER_RESTORED: Final = "keys/signed.jsonl"
MAX_MISSING_S: Final = "60"

NameOption = Annotated[
    str | None,
    typer.Option("--backup", metavar="NAME", help="A name of `backup list`. Default: the newest that fits."),
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="2026-01-02T03:04:05Z, in UTC. Default: the end of the WAL."),
]
SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system", metavar="ID", help="Which database. Default: that of the data folder, or the only one."
    ),
]
UnauthenticatedOption = Annotated[
    bool,
    typer.Option(
        "--unauthenticated",
        help="Also restore what this master key has not signed: made before back-ups were signed, or with a "
        "lost key. Whoever made it can run commands here, as PostgreSQL's user.",
    ),
]


@app.command()
def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file. It is never overwritten.")],
    as_json: JsonOption = False,
) -> None:
    """Make the key file of back-ups: an identity that restores, and its recipient that only makes them.

    Keep a copy of the file apart from this machine: without it no back-up can be read. A machine that makes
    back-ups and never reads them needs only the line that begins with `age1`.

    \b
    Example:
      merchant-wallet backup key /etc/wallet/backup.key
    """
    from merchant_wallet.base.atomic_files import create_file
    from merchant_wallet.postgres.backups.encryption import make_identity

    identity, recipient = make_identity()
    text = f"# Reads and makes back-ups. Keep a copy elsewhere.\n# recipient: {recipient}\n{identity}\n"
    if not create_file(file, text.encode()):
        raise Failure(f"{file} is there already. A key that is overwritten is every back-up lost.")
    terminal.print_answer({"file": str(file), "recipient": recipient}, as_json)


@app.command()
def create(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Make a base back-up of the PostgreSQL that `up` runs, while it is in use.

    With WALLET_BACKUP_URL `up` itself stores all WAL after it, so that any later moment can be restored. The
    keys of the service are never in a back-up; the answer names what to keep apart.

    \b
    Example:
      merchant-wallet backup create --data /srv/wallet
    """
    settings, (store, keys) = _open(data)
    from merchant_wallet.postgres.backups.base import create_base
    from merchant_wallet.postgres.backups.encryption import SIGNING_KEY
    from merchant_wallet.processes.base import check_master_key
    from merchant_wallet.processes.wal_shipping import find_keyring

    url, keyring = _find_own(settings), find_keyring(settings)
    run(data, lambda session: check_master_key(session.conn, keyring))
    keys = keys.with_signing_key(keyring.derive(SIGNING_KEY))

    progress = terminal.Progress()

    def show(done: int, total: int) -> None:
        progress.show(f"{done // MEGABYTE} MB of about {total // MEGABYTE} MB")

    try:
        made = create_base(url, store, keys, show)
    finally:
        progress.end()
    run(data, lambda session: _record(session, "backup.created", {"name": made.name}))
    kept = _list_apart(settings)
    terminal.print_answer({**_describe(made), "keepApart": kept}, as_json)
    if not as_json:
        terminal.note(f"Not in the back-up, keep them apart from it: {', '.join(kept) or 'nothing'}.")


@app.command("list")
def list_backups(system: SystemOption = None, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the base back-ups, and up to which moment each can be restored. No key is needed.

    \b
    Example:
      merchant-wallet backup list --data /srv/wallet --json
    """
    settings = read_settings(data)
    store = _open_store(settings)
    found = _read_catalogue(settings, store, system)
    ends = [(base, found.find_end(base)) for base in found.bases]
    bases = [
        {**_describe(base), "restorableToMs": end.until_ms, "hole": describe_hole(end)} for base, end in ends
    ]
    document = {"system": found.system, "unfinished": len(found.unfinished), "backups": bases}
    terminal.print_list(document, "backups", COLUMNS, as_json)
    for base, end in ends:
        if end.hole is not None:
            terminal.note(f"From {base.name}: {end.hole}.")


@app.command()
def prune(
    keep: Annotated[int, typer.Option("--keep", min=1, metavar="N", help="Keep the newest N base back-ups.")],
    system: SystemOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove older base back-ups, and the WAL that only they need.

    Every moment since the oldest back-up that is kept can still be restored. Nothing is removed while there
    are fewer than N. Give it the key file with the identity and the master key: then only authentic back-ups
    are counted. Without them the names count, which others may have made.

    \b
    Example:
      merchant-wallet backup prune --keep 7 --data /srv/wallet
    """
    settings = read_settings(data)
    store = _open_store(settings)
    found = _read_catalogue(settings, store, system)
    kept = choose_kept(settings, store, found, keep)
    superseded = found.list_superseded(kept)
    store.delete(superseded)
    document = {"kept": [base.name for base in kept or found.bases], "removedObjects": len(superseded)}
    terminal.print_answer(document, as_json)


@app.command()
def restore(
    to: ToOption = None,
    backup: NameOption = None,
    system: SystemOption = None,
    unauthenticated: UnauthenticatedOption = False,
    up_to_hole: Annotated[
        bool,
        typer.Option("--up-to-hole", help="If WAL is missing in the store, restore what is before it."),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore a database into a data folder that has none: to the end of the WAL, or to a moment.

    A folder with a live server, or with a database, is refused. Nothing else in the folder is touched: its
    checkpoints and its `keys/signed.jsonl` must stay the newest ones. Nothing is paid before
    `book accept-rollback`. Only what was signed with the installation's master key is restored, so put that
    key there first. Settings of PostgreSQL are the program's, never those of the back-up. If WAL is missing
    in the store, the command says what can't be restored, and asks.

    \b
    Examples:
      merchant-wallet backup restore --data /srv/wallet
      merchant-wallet backup restore --data /srv/wallet --to 2026-01-02T03:04:05Z
    """
    from merchant_wallet.postgres.backups.recovery import choose_base
    from merchant_wallet.postgres.backups.recovery import restore as restore_files

    to_ms = read_moment(to, "--to")
    settings, (store, keys) = _open(data)
    found = _read_catalogue(settings, store, system)
    base = choose_base(found, backup, to_ms)
    keys = _choose_keys(settings, keys, unauthenticated=unauthenticated)
    if to_ms is None and not up_to_hole:
        _ask_about_hole(found.find_end(base))
    progress = terminal.Progress()
    try:
        done = restore_files(settings.data, store, keys, found, base, to_ms, progress.show)
    finally:
        progress.end()
    missing = _list_missing(settings)
    document = {
        **_describe_restored(done),
        "hole": describe_hole(done.end),
        "authenticated": not unauthenticated,
        "missing": missing,
    }
    terminal.print_answer(document, as_json)
    if not as_json:
        _note_next(settings, missing)


@app.command()
def verify(
    to: ToOption = None,
    backup: NameOption = None,
    system: SystemOption = None,
    scratch: Annotated[
        Path | None,
        typer.Option(
            "--scratch", metavar="DIR", help="Where the copy is made. Default: the temporary folder."
        ),
    ] = None,
    unauthenticated: UnauthenticatedOption = False,
    max_missing: Annotated[
        str,
        typer.Option(
            "--max-missing",
            metavar="SECONDS",
            help="How much may be missing at the end; `off` for any. Not judged with --to or --backup.",
        ),
    ] = MAX_MISSING_S,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore into a scratch folder, replay every book there, and say how much is lost.

    The copy is compared with the checkpoints, and with the live database if it runs, as it was when this
    began. It is removed at the end. Exit status 1 if a book is wrong, or if more is missing than
    `--max-missing`. A success is recorded in the live database, and counts for the alert.

    \b
    Examples:
      merchant-wallet backup verify --data /srv/wallet
      merchant-wallet backup verify --data /srv/wallet --to 2026-01-02T03:04:05Z --json
    """
    to_ms, most_s = read_moment(to, "--to"), _read_bound(max_missing)
    settings, (store, keys) = _open(data)
    found = _read_catalogue(settings, store, system)
    keys = _choose_keys(settings, keys, unauthenticated=unauthenticated)
    is_newest = to_ms is None and backup is None
    document = verify_in_scratch(
        settings, store, keys, found, backup, to_ms, scratch, most_s if is_newest else None
    )
    document["authenticated"] = not unauthenticated
    terminal.print_answer(document if as_json else _spell_losses(document), as_json)
    if not as_json:
        terminal.print_table(BOOK_COLUMNS, document["books"], follows=True)
    if document["ok"] and is_newest and document["comparedWithLive"] is not None:
        facts = {"name": document["backup"], "system": found.system}
        run(data, lambda session: _record(session, "backup.verified", facts))
    if not document["ok"]:
        raise typer.Exit(REFUSED)


def _ask_about_hole(end: "WalEnd") -> None:
    """Ask whether to restore only what is before a hole. Raises Failure."""
    if end.hole is None:
        return
    terminal.note(f"{end.hole}. What can be restored ends at {format_moment(end.until_ms)}.")
    if not sys.stdin.isatty():
        raise Failure("To restore what is before that, give --up-to-hole. Nothing was done.", REFUSED)
    typer.confirm("Restore what is before that?", abort=True, err=True)


def _read_bound(text: str) -> int | None:
    """The seconds of `--max-missing`. None: off."""
    if text == "off":
        return None
    if not text.isdecimal():
        raise typer.BadParameter("--max-missing takes seconds, or off.")
    return int(text)


def _spell_losses(document: dict[str, Any]) -> dict[str, Any]:
    """The same with what is lost in words."""
    spelt = {
        name: "nothing is missing"
        if not loss["lostEntries"]
        else f"{count_of(loss['lostEntries'], 'entry', 'entries')} of {count_of(loss['lostBooks'], 'book')}"
        f" missing, {loss['lostSeconds']} s"
        for name, loss in document.items()
        if name.startswith("comparedWith") and loss is not None
    }
    return {**document, **spelt}


def _note_next(settings: "Settings", missing: list[str]) -> None:
    import shlex

    folder = shlex.quote(str(settings.data))
    if missing:
        terminal.note(f"Put back from where you keep them, before anything starts: {', '.join(missing)}.")
    terminal.note(
        f"Next: `up --data {folder} --database-only`; then `doctor` and `book verify`, which say what is "
        "lost; enter it; `book accept-rollback --reason ...`, and nothing is paid before. Never put back an "
        f"older {NEVER_RESTORED}. Then make a new base back-up."
    )


def _open(data: Path | None) -> "tuple[Settings, tuple[Store, BackupKey]]":
    from merchant_wallet.processes.wal_shipping import open_destination

    settings = read_settings(data)
    return settings, open_destination(settings)


def _choose_keys(settings: "Settings", keys: "BackupKey", *, unauthenticated: bool) -> "BackupKey":
    from merchant_wallet.processes.wal_shipping import add_signing_key

    return keys.without_authentication() if unauthenticated else add_signing_key(settings, keys)


def _open_store(settings: "Settings") -> "Store":
    from merchant_wallet.postgres.backups.stores import open_store

    if settings.backup_url is None:
        raise Failure("Name the store in WALLET_BACKUP_URL: /a/folder or s3://bucket/prefix.", CANNOT_RUN)
    return open_store(settings.backup_url, settings.outbound)


def _find_own(settings: "Settings") -> str:
    """The URL of the running own PostgreSQL, as the role of back-ups. Raises Failure."""
    from merchant_wallet import postgres

    if settings.database_url is not None:
        raise Failure(
            "`backup create` backs up the PostgreSQL that `up` runs by itself. WALLET_DATABASE_URL names "
            "another one: back that one up with its own tools, such as pgBackRest.",
            CANNOT_RUN,
        )
    url = postgres.locate(settings.data, postgres.BACKUP_ROLE)
    return url if url is not None else find_database(settings)


def _read_catalogue(settings: "Settings", store: "Store", system: str | None) -> "Catalogue":
    """What the store has of one database: the named one, else the data folder's, else the only one."""
    from merchant_wallet.postgres.backups.catalogue import list_systems, read_catalogue
    from merchant_wallet.postgres.data_folder import read_system

    systems, strange = list_systems(store)
    wanted = system or read_system(settings.data)
    if wanted not in systems:
        wanted = system or (systems[0] if len(systems) == 1 else None)
    if wanted is None and systems:
        each = "; ".join(_describe_system(read_catalogue(store, one)) for one in systems)
        raise Failure(f"The store has several databases. Name one with --system: {each}.")
    if wanted not in systems:
        raise Failure("The store has no such back-ups. `merchant-wallet backup create` makes one.")
    found = read_catalogue(store, wanted)
    note_strange((*strange, *found.strange))
    return found


def _describe_system(found: "Catalogue") -> str:
    if not found.bases:
        return f"{found.system} (no base back-up)"
    base = found.sort_bases()[-1]
    until = format_moment(found.find_end(base).until_ms)
    return f"{found.system} (newest {base.name}, {-(-base.size // MEGABYTE)} MB, restorable to {until})"


def _describe(base: "BaseBackup") -> dict[str, Any]:
    return {
        "name": base.name,
        "endedMs": base.completed.ended_ms,
        "storedBytes": base.size,
        "timeline": base.completed.timeline,
    }


def _describe_restored(done: "Restored") -> dict[str, Any]:
    return {
        "backup": done.base.name,
        "timeline": done.end.timeline,
        "lastCommitMs": done.last_commit_ms,
    }


def _list_apart(settings: "Settings") -> list[str]:
    """What a restore on a new machine needs besides the back-up."""
    from merchant_wallet.base.config import MASTER_KEY_FILE
    from merchant_wallet.processes.signers import find_keys_folder

    folder = settings.data
    wanted = (
        folder / MASTER_KEY_FILE,
        settings.checkpoint_key_path,
        settings.checkpoint_folder,
        find_keys_folder(settings),
    )
    return [str(path) for path in wanted if path.exists()]


def _list_missing(settings: "Settings") -> list[str]:
    """What the service needs and this folder lacks."""
    from merchant_wallet.base.config import MASTER_KEY_FILE, has_master_key

    missing = []
    if not has_master_key(settings):
        missing.append(str(settings.data / MASTER_KEY_FILE))
    if settings.checkpoint_key is None and not settings.checkpoint_key_path.exists():
        missing.append(str(settings.checkpoint_key_path))
    if not settings.checkpoint_folder.is_dir():
        missing.append(str(settings.checkpoint_folder))
    return missing


async def _record(session: Session, action: str, facts: dict[str, str]) -> None:
    await session.author().afterwards.record(session.conn, action, f"backup {facts['name']}", after=facts)
