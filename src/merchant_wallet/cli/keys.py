"""`keys`: create, import and show the keys of the hot wallets and of the deposit addresses.

Rules:
- A private key is read from standard input only. An argument could be seen by every process of the machine.
- No private key is ever printed.
- The passphrase comes from the settings, or is typed at a terminal.
- Only public keys are stored in the database.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.base.chains import KEY_NAMES
from merchant_wallet.base.settings import Settings
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.options import DataOption, JsonOption, KeyName, ReasonOption
from merchant_wallet.cli.session import Session, find_actor, find_database, read_running, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from merchant_wallet.chains.keys.keystore import Keystore

app = typer.Typer(help="Create, import and show the keys that pay and that receive.", no_args_is_help=True)

ACCOUNTS: Final = 1000
"""How many merchants' accounts are derived ahead by default."""
BATCH_SIZE: Final = 100
MAX_INPUT_BYTES: Final = 65_536
BACK_UP: Final = (
    "Back up the folder and its passphrase now, in two different places. Without both, the money at these "
    "addresses is lost. Never restore an older copy of signed.jsonl: it tells the signer what it has paid."
)
LATER: Final = (
    "No database is running, so no accounts were derived and the audit log has no entry. Run "
    "`merchant-wallet keys derive` when the database runs."
)
UNLOGGED: Final = "No database is running, so the audit log has no entry."

CountOption = Annotated[
    int, typer.Option("--count", min=1, max=100_000, help="How many merchants' accounts to derive ahead.")
]


@app.command()
def create(count: CountOption = ACCOUNTS, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Create the keys that do not exist yet, print their addresses, and derive accounts for future
    merchants.

    A key that exists stays. Without a running database run `keys derive` later for the accounts.

    \b
    Examples:
      WALLET_KEYSTORE_PASSPHRASE_FILE=/etc/wallet/passphrase merchant-wallet keys create
      merchant-wallet keys create --count 5000 --data /srv/wallet
    """
    from merchant_wallet.chains.keys.keystore import NAMES, check_passphrase, create_key, list_addresses
    from merchant_wallet.processes.signers import find_keys_folder

    settings = read_running(data)
    folder = find_keys_folder(settings)
    missing = [name for name in NAMES if name not in list_addresses(folder)]
    if not missing:
        raise Failure(f"All keys are in {folder} already; `keys derive` adds accounts to the pool.", REFUSED)
    passphrase = ask_passphrase(settings, confirm=True)
    check_passphrase(folder, passphrase)
    for name in missing:
        terminal.note(f"Creating the key {name} ...")
        create_key(folder, name, passphrase)
    # Printed now: the keys exist, even if the rest fails.
    terminal.note(BACK_UP)
    derived = 0
    if _record_if_possible(settings, "keys.create", "keystore", {"made": missing, **_describe(folder)}):
        derived = _derive(settings, passphrase, count)
    else:
        terminal.note(LATER)
    terminal.print_answer({**_describe(folder), "accountsDerived": derived}, as_json)


@app.command("import")
def import_(
    name: Annotated[
        KeyName,
        typer.Argument(
            metavar="CHAIN",
            help=f"Whose hot wallet: {' or '.join(KEY_NAMES)}.",
        ),
    ],
    file_passphrase: Annotated[
        typer.FileText | None,
        typer.Option(
            "--file-passphrase",
            metavar="PATH",
            help="File with the passphrase of the key file typed in. Default: the keystore's own.",
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a hot wallet's key from standard input: a geth key file (version 3), or 64 hex digits.

    \b
    Example:
      merchant-wallet keys import ERC20 < UTC--2026-01-01T00-00-00Z--0123abcd
    """
    import psycopg

    from merchant_wallet.base.config import ConfigError
    from merchant_wallet.chains.keys.keystore import check_passphrase, list_addresses, read_secret, store_key
    from merchant_wallet.cli.hot_wallet_checks import describe_code
    from merchant_wallet.processes.signers import find_keys_folder

    settings = read_running(data)
    folder = find_keys_folder(settings)
    typed = sys.stdin.buffer.read(MAX_INPUT_BYTES)
    passphrase = ask_passphrase(settings, confirm=True)
    check_passphrase(folder, passphrase)
    own = file_passphrase.read().rstrip("\r\n") if file_passphrase else passphrase
    store_key(folder, name, read_secret(typed, own), passphrase)
    described = _describe(folder)
    terminal.print_answer(described, as_json)
    terminal.note(BACK_UP)
    for sentence in asyncio.run(describe_code(settings, name, list_addresses(folder)[name])):
        terminal.note(sentence)
    try:
        if not _record_if_possible(settings, "keys.import", f"wallet {name}", {"address": described[name]}):
            terminal.note(UNLOGGED)
    except (psycopg.Error, ConfigError) as error:
        # The key is stored, and a second import would be refused.
        terminal.note(f"The key is imported, but the audit log could not be written: {error}")


@app.command()
def derive(count: CountOption = ACCOUNTS, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Derive more accounts for future merchants, from the seed in the keystore.

    Only public keys go into the database.

    \b
    Example:
      merchant-wallet keys derive --count 5000
    """
    settings = read_running(data)
    passphrase = ask_passphrase(settings)

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.chains.keys.keystore import open_keystore
        from merchant_wallet.processes.signers import find_keys_folder

        keystore = open_keystore(find_keys_folder(settings), passphrase)
        return {"accountsDerived": await _fill_pool(session, keystore, count), **await _level(session)}

    terminal.print_answer(run(data, act), as_json)


@app.command("show-addresses")
def show_addresses(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show the hot wallets' addresses, as the key files name them. This needs no passphrase.

    \b
    Example:
      merchant-wallet keys show-addresses --json
    """
    from merchant_wallet.chains.keys.keystore import list_addresses
    from merchant_wallet.processes.signers import find_keys_folder

    settings = read_running(data)
    folder = find_keys_folder(settings)
    if not list_addresses(folder):
        raise Failure(f"There are no keys in {folder}: create them with `merchant-wallet keys create`.")
    terminal.print_answer(_describe(folder), as_json)


@app.command()
def release(
    order_id: Annotated[int, typer.Argument(metavar="ORDER", min=1, help="The withdrawal's orderId.")],
    reason: ReasonOption,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the signer sign an order again. It refuses because it has signed the order with another nonce or
    another expiry.

    Do this only if nothing that was signed for the order can still be paid. Look on the chain first: the
    order could be paid twice. The recipient and the amount stay as they were signed.

    \b
    Example:
      merchant-wallet keys release 8589934597 --reason "cancel transaction used nonce 12, block 19000000"
    """
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.chains.keys.keystore import JOURNAL, list_addresses
    from merchant_wallet.chains.keys.signing_journal import Release, SigningJournal
    from merchant_wallet.chains.signer import SigningRefused
    from merchant_wallet.processes.signers import find_keys_folder

    folder = find_keys_folder(read_running(data))
    if not list_addresses(folder):
        raise Failure(f"There are no keys in {folder}.")
    word = Release(now_ms(), order_id, find_actor(), reason)
    try:
        SigningJournal(folder / JOURNAL, 0, 0).release(word)
    except SigningRefused as refused:
        raise Failure(f"Not released: {refused}.") from refused
    terminal.print_answer({"orderId": order_id, "released": True}, as_json)


def _describe(folder: "Path") -> dict[str, Any]:
    from merchant_wallet.base.addresses import format_address
    from merchant_wallet.chains.keys.keystore import SEED, list_addresses

    found = list_addresses(folder)
    return {
        "folder": str(folder),
        **{chain: format_address(chain, found[chain]) if chain in found else None for chain in KEY_NAMES},
        "seed": SEED in found,
    }


def ask_passphrase(settings: Settings, *, confirm: bool = False) -> str:
    """The keystore's passphrase from the settings, or typed at the terminal. Raises Failure."""
    from merchant_wallet.processes.signers import read_passphrase

    found = read_passphrase(settings)
    if found is not None:
        return found
    if not sys.stdin.isatty():
        raise Failure(
            "The keystore's passphrase is not known: set WALLET_KEYSTORE_PASSPHRASE_FILE.", CANNOT_RUN
        )
    typed: str = typer.prompt(
        "Passphrase of the keystore", hide_input=True, confirmation_prompt=confirm, err=True
    )
    return typed


def _record_if_possible(settings: Settings, action: str, subject: str, after: dict[str, Any]) -> bool:
    """Record a change of the keystore in the audit log. False if no database runs, as before the first
    start.
    """
    try:
        find_database(settings)
    except Failure:
        return False

    async def act(session: Session) -> None:
        await session.author().afterwards.record(session.conn, action, subject, after=after)

    run(settings.data, act)
    return True


def _derive(settings: Settings, passphrase: str, count: int) -> int:
    from merchant_wallet.chains.keys.keystore import open_keystore
    from merchant_wallet.processes.signers import find_keys_folder

    keystore = open_keystore(find_keys_folder(settings), passphrase)

    async def act(session: Session) -> int:
        return await _fill_pool(session, keystore, count)

    return run(settings.data, act)


async def _fill_pool(session: Session, keystore: "Keystore", count: int) -> int:
    """Add `count` accounts to the xpub_pool, a hundred at a time. Raises Failure."""
    from merchant_wallet.merchants import xpub_pool

    given = await xpub_pool.find_first_and_last(session.conn)
    for edge in given:
        if dict(keystore.derive_accounts(edge.account_no, 1)) != {edge.account_no: edge.xpubs}:
            raise Failure("The database's accounts are from a seed of another keystore. Nothing was added.")
    progress = terminal.Progress()
    accounts = keystore.derive_accounts(given[-1].account_no + 1 if given else 0, count)
    for done, batch in enumerate(_in_batches(accounts)):
        async with session.conn.transaction():
            await xpub_pool.add(session.conn, batch)
            added = {"from": batch[0][0], "upTo": batch[-1][0]}
            await session.author().record(session.conn, "keys.derive", "accounts for merchants", after=added)
        progress.show(f"{done * BATCH_SIZE + len(batch)} of {count} accounts derived")
    progress.end()
    return count


def _in_batches(
    accounts: "Iterator[tuple[int, dict[str, str]]]",
) -> "Iterator[list[tuple[int, dict[str, str]]]]":
    from itertools import islice

    while batch := list(islice(accounts, BATCH_SIZE)):
        yield batch


async def _level(session: Session) -> dict[str, int]:
    from merchant_wallet.merchants import xpub_pool

    level = await xpub_pool.read_size(session.conn)
    return {"accounts": level.accounts, "freeAccounts": level.free}
