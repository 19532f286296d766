"""When root runs `up`: the system user of each side, and the owners of files.

- The web side and the worker side run as two different users. Neither is root or PostgreSQL's user.
- They are WALLET_WEB_USER and WALLET_WORKER_USER, else two free user numbers. If the data folder belongs to
  an ordinary user, both sides run as that user, who can later run the service without root.
- Keystore and checkpoints belong to the worker side. Of these the web side can only read checkpoints.
- Secrets from root's files are passed in the environment: the master key to both sides, passphrase and
  checkpoint key only to the worker side.
- When an ordinary user runs `up`, both sides run as that user, and this module does nothing.
"""

import dataclasses
import os
import pwd
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

import merchant_wallet
from merchant_wallet.base.config import (
    ConfigError,
    load_key_file,
    load_or_create_master_key,
)
from merchant_wallet.base.setting_sources import put_into_environment
from merchant_wallet.base.settings import Settings
from merchant_wallet.postgres.privileges import (
    CAP_NET_BIND_SERVICE,
    Account,
    become,
    can_keep,
    can_keep_search,
    can_read,
)
from merchant_wallet.processes.signers import find_keys_folder, read_passphrase

log = structlog.get_logger("up")

FIRST_ID: Final = 60_706
PAIRS: Final = 238
"""The numbers 60706 to 61181, which neither distributions nor systemd use."""
MIN_UNPRIVILEGED_PORT: Final = 1024
NO_HOME: Final = "/nonexistent"
ROOT_ONLY: Final = ("WALLET_WEB_USER", "WALLET_WORKER_USER")
CHECKPOINTS_MODE: Final = 0o2750
CHECKPOINT_MODE: Final = 0o640


@dataclass(frozen=True, slots=True)
class SideUser:
    """The user of one side, and the capabilities of root that it keeps."""

    account: Account
    groups: tuple[int, ...] = ()
    keep_search: bool = False
    keep_bind: bool = False

    def drop(self) -> Callable[[], None]:
        """A `preexec_fn` that turns a child into this user."""
        return become(
            self.account, keep_search=self.keep_search, keep_bind=self.keep_bind, groups=self.groups
        )


@dataclass(frozen=True, slots=True)
class SideUsers:
    """The users of both sides."""

    web: SideUser
    worker: SideUser

    @property
    def group(self) -> int:
        """The group of both sides: it may connect to the own PostgreSQL and read checkpoints."""
        return self.web.account.gid

    def of(self, side: str) -> SideUser:
        """The user of `serve` or of `work`."""
        return self.web if side == "serve" else self.worker


def choose_users(settings: Settings) -> SideUsers | None:
    """The users of both sides if root runs `up`, else None. Raises ConfigError."""
    named = (settings.web_user, settings.worker_user)
    if os.geteuid() != 0:
        if any(named):
            raise ConfigError("WALLET_WEB_USER and WALLET_WORKER_USER are for `up` as root alone.")
        return None
    web, worker = (
        find_account(name) if name else derived
        for name, derived in zip(named, _derive(settings.data.absolute().resolve()), strict=True)
    )
    return SideUsers(SideUser(web), SideUser(worker, groups=(web.gid,)))


def find_account(name: str) -> Account:
    """The account of a user's name or number. Raises ConfigError."""
    try:
        entry = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        if name.isdecimal() and int(name) < 2**32 - 1:
            return Account(int(name), int(name))
        raise ConfigError(f"There is no user {name} on this machine.") from None
    return Account(entry.pw_uid, entry.pw_gid)


def _derive(data: Path) -> tuple[Account, Account]:
    """For an ordinary user's folder its owner, twice. For root's folder two numbers derived from its path."""
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return (Account(owner.st_uid, owner.st_gid),) * 2
    first = zlib.crc32(os.fsencode(data)) % PAIRS
    for pair in range(first, first + PAIRS):
        numbers = [FIRST_ID + 2 * (pair % PAIRS) + which for which in (0, 1)]
        if not any(_is_listed(number) for number in numbers):
            web, worker = (Account(number, number) for number in numbers)
            return web, worker
    raise ConfigError("No two user numbers are free: set WALLET_WEB_USER and WALLET_WORKER_USER.")


def _is_listed(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True


def give_files(settings: Settings, users: SideUsers) -> None:
    """Make the worker side the owner of keystore, checkpoints and archive. The web side may read the last 2.

    In an ordinary user's folder that user becomes the owner of files that root made there. Raises OSError.
    """
    worker = users.worker.account
    _give_all(find_keys_folder(settings), worker)
    _give_all(settings.checkpoint_folder, Account(worker.uid, users.group), CHECKPOINTS_MODE, CHECKPOINT_MODE)
    if settings.archive_dir is None:
        # A command of root may make the first file later. It then belongs to the folder's owner.
        settings.archive_folder.mkdir(parents=True, exist_ok=True)
    _give_all(settings.archive_folder, Account(worker.uid, users.group), CHECKPOINTS_MODE, CHECKPOINT_MODE)
    if settings.data.is_dir() and (owner := settings.data.stat()).st_uid != 0:
        _give_roots_files(settings.data, Account(owner.st_uid, owner.st_gid))


def _give_all(
    folder: Path, account: Account, folder_mode: int | None = None, file_mode: int | None = None
) -> None:
    """Change the owner of a folder and its files. A link to a file elsewhere is not followed."""
    if not folder.is_dir():
        return
    for _, _, names, descriptor in os.fwalk(folder.resolve(), follow_symlinks=False):
        for name in names:
            _give_file(name, descriptor, account, file_mode)
        os.fchown(descriptor, account.uid, account.gid)
        if folder_mode is not None:
            os.fchmod(descriptor, folder_mode)


def _give_roots_files(folder: Path, account: Account) -> None:
    """Change the owner of root's files directly in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in os.listdir(descriptor):
            found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_uid == 0:
                _give_file(name, descriptor, account, None)
    finally:
        os.close(descriptor)


def _give_file(name: str, folder: int, account: Account, mode: int | None) -> None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        # A link or a socket, or it is gone: not ours.
        return
    try:
        found = os.fstat(file)
        # A file with a second hard link may be somebody else's file, linked here to change its owner.
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            os.fchown(file, account.uid, account.gid)
            if mode is not None:
                os.fchmod(file, mode)
    finally:
        os.close(file)


def grant_capabilities(settings: Settings, users: SideUsers) -> SideUsers:
    """The same users with the capabilities that they need here. Raises ConfigError.

    CAP_DAC_READ_SEARCH lets them read a program or data folder that is closed to them, as for PostgreSQL.
    CAP_NET_BIND_SERVICE lets them listen on a port below 1024.
    """
    modules = (merchant_wallet.__file__, os.__file__)
    program = [Path(sys.executable), Path(sys.executable).resolve(), *map(Path, modules)]
    own = [folder for folder in (settings.checkpoint_folder, find_keys_folder(settings)) if folder.is_dir()]
    web = _grant_capabilities(users.web, program, settings.port)
    return SideUsers(web, _grant_capabilities(users.worker, [*program, *own], settings.metrics_port))


def _grant_capabilities(user: SideUser, needed: Sequence[Path], port: int) -> SideUser:
    reaches = _can_read(user, needed)
    if not reaches and not can_keep_search():
        raise ConfigError(
            f"A side runs as user {user.account.uid}, who cannot read {', '.join(map(str, needed))}, and root"
            " can't pass on CAP_DAC_READ_SEARCH here. Move the program and the data folder to folders that"
            " every user may enter, or run chmod o+x on the folders above them."
        )
    if not reaches:
        log.warning(
            "a side may read every file of this machine, since what it needs is closed to its user",
            user=user.account.uid,
            needed=[str(path) for path in needed],
        )
    binds = 0 < port < MIN_UNPRIVILEGED_PORT and can_keep(CAP_NET_BIND_SERVICE)
    return dataclasses.replace(user, keep_search=not reaches, keep_bind=binds)


def can_web_read(folder: Path, users: SideUsers) -> bool:
    """Whether the web side can open a folder by its path. Raises ConfigError."""
    return users.web.keep_search or _can_read(users.web, [folder])


def _can_read(user: SideUser, paths: Sequence[Path]) -> bool:
    try:
        return can_read(user.account, paths)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(
            f"root cannot become user {user.account.uid} here ({error}). Set WALLET_WEB_USER and "
            "WALLET_WORKER_USER to users that this machine has, or run `up` as an ordinary user."
        ) from error


def make_environment(settings: Settings, environment: Mapping[str, str], side: str) -> dict[str, str]:
    """The environment of a side that can't read root's files. Raises ConfigError, KeystoreError."""
    master_key = settings.master_key or load_or_create_master_key(settings.data)
    told = put_into_environment(environment, with_file=True)
    told |= {
        "HOME": NO_HOME,
        "WALLET_MASTER_KEY": master_key.hex(),
        "WALLET_CHECKPOINT_DIR": str(settings.checkpoint_folder.absolute()),
        "WALLET_ARCHIVE_DIR": str(settings.archive_folder.absolute()),
    }
    if side == "work":
        told |= _make_worker_environment(settings)
    return {name: text for name, text in told.items() if name not in ROOT_ONLY}


def _make_worker_environment(settings: Settings) -> dict[str, str]:
    key = settings.checkpoint_key or load_key_file(settings.checkpoint_key_path, "checkpoint key")
    told = {"WALLET_CHECKPOINT_KEY": key.hex()}
    # The sandbox has no keystore to open.
    if not settings.sandbox and (passphrase := read_passphrase(settings)) is not None:
        # Cleared, because the file setting has priority over the passphrase.
        told |= {"WALLET_KEYSTORE_PASSPHRASE": passphrase, "WALLET_KEYSTORE_PASSPHRASE_FILE": ""}
    if settings.signer_socket is not None:
        told["WALLET_SIGNER_SOCKET"] = str(settings.signer_socket.absolute())
    return told
