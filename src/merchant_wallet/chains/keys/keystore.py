"""The private keys of the platform: a file for each family's hot wallet, and one for the deposit addresses'
seed.

Rules:
- Only the owner can read the folder (0700, files 0600), and each file is encrypted (see `secret_storage`).
- A file is written whole or not at all, and it is never replaced: an overwritten key is lost money.
- An open keystore holds all keys, so only the signer opens it. The web side never imports this.
- No repr, error text or log line shows a secret.
"""

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from coincurve import PrivateKey

from merchant_wallet.base.addresses import ExtendedPrivateKey, derive_account, keccak256
from merchant_wallet.base.atomic_files import create_file
from merchant_wallet.base.chains import CHAINS, COIN_TYPES, KEY_NAMES
from merchant_wallet.base.mounted_secrets import OWNER_ADVICE
from merchant_wallet.chains.keys.secret_storage import SCRYPT_COST, StorageRefused, read_address, seal, unseal
from merchant_wallet.chains.signer import Source

FOLDER: Final = "keys"
SEED: Final = "seed"
JOURNAL: Final = "signed.jsonl"
NAMES: Final = (*KEY_NAMES, SEED)
"""The possible names in a keystore. Each is a file with this name and `.json`."""
MIN_PASSPHRASE_CHARS: Final = 12

_SEED_BYTES: Final = 64
_KEY_BYTES: Final = 32
_BRANCHES: Final = (0, 1)


class KeystoreError(Exception):
    """The keystore can't be opened or written. The text is a sentence without a secret."""


class Keystore:
    """The keys in memory. `hot_keys`: the 32-byte secret of each family's hot wallet, by the key's name.

    Without a seed nothing can be swept.
    """

    __slots__ = ("_hot_keys", "_seed", "folder")

    def __init__(self, folder: Path, hot_keys: Mapping[str, bytes], seed: bytes | None = None) -> None:
        self.folder = folder
        self._hot_keys = dict(hot_keys)
        self._seed = seed

    def __repr__(self) -> str:
        return f"Keystore({str(self.folder)!r}, {sorted(self._hot_keys)})"

    def wallets(self) -> dict[str, bytes]:
        """The address of each family's hot wallet, by the key's name."""
        return {name: _address_of(secret) for name, secret in self._hot_keys.items()}

    def hot_key(self, chain: str) -> PrivateKey | None:
        """The key of a chain's hot wallet, if there is one."""
        secret = self._hot_keys.get(CHAINS[chain].family.key_name) if chain in CHAINS else None
        return None if secret is None else PrivateKey(secret)

    def deposit_key(self, chain: str, source: Source) -> PrivateKey | None:
        """The key of a deposit address. None without a seed, for another chain or for a path that has
        no key.
        """
        if self._seed is None or chain not in CHAINS or source.branch not in _BRANCHES:
            return None
        try:
            account = derive_account(self._seed, CHAINS[chain].family.coin_type, source.account)
            return PrivateKey(account.child(source.branch).child(source.index).secret)
        except ValueError:
            return None

    def account(self, account_no: int) -> dict[str, str]:
        """The extended public keys of an account, by the key's name. Empty without a seed."""
        return {} if self._seed is None else dict(self.derive_accounts(account_no, 1))[account_no]

    def derive_accounts(self, first: int, count: int) -> Iterator[tuple[int, dict[str, str]]]:
        """Account numbers from `first` on, with the extended public key of each family by the key's name.

        Raises KeystoreError.
        """
        if self._seed is None:
            raise KeystoreError(f"There is no seed in {self.folder}, so no account can be derived here.")
        master = ExtendedPrivateKey.from_seed(self._seed).child(44, hardened=True)
        coins = {name: master.child(coin, hardened=True) for name, coin in COIN_TYPES.items()}
        for account in range(first, first + count):
            yield (
                account,
                {name: key.child(account, hardened=True).public().text() for name, key in coins.items()},
            )


def open_keystore(folder: Path, passphrase: str) -> Keystore:
    """All keys of a folder. Raises KeystoreError."""
    if not list_addresses(folder):
        raise KeystoreError(f"There are no keys in {folder}: make them with `merchant-wallet keys create`.")
    _require_private(folder)
    if not (folder / JOURNAL).exists():
        raise KeystoreError(
            f"The record of signatures, {folder / JOURNAL}, is missing. Restore it: without it a payment "
            "could be signed again. Create an empty one only for keys that have never signed."
        )
    opened = {name: _open(folder, name, passphrase) for name in NAMES if _path(folder, name).exists()}
    seed = opened.pop(SEED, None)
    return Keystore(folder, opened, seed)


def list_addresses(folder: Path) -> dict[str, bytes]:
    """The address that each key file names, read without the passphrase. Raises KeystoreError."""
    found = {}
    for name in NAMES:
        try:
            found[name] = read_address(_path(folder, name).read_bytes())
        except FileNotFoundError:
            continue
        except StorageRefused as error:
            raise KeystoreError(f"{_path(folder, name)}: {error}.") from None
    return found


def check_passphrase(folder: Path, passphrase: str) -> None:
    """Check that a passphrase is long enough and opens the existing keys. Raises KeystoreError."""
    if len(passphrase) < MIN_PASSPHRASE_CHARS:
        raise KeystoreError(
            f"The keystore's passphrase must have at least {MIN_PASSPHRASE_CHARS} characters."
        )
    for name in list_addresses(folder):
        _open(folder, name, passphrase)
        return


def create_key(folder: Path, name: str, passphrase: str, *, cost: int = SCRYPT_COST) -> bytes:
    """Create and store a random key. Returns its address. Raises KeystoreError."""
    secret = secrets.token_bytes(_SEED_BYTES) if name == SEED else PrivateKey().secret
    return store_key(folder, name, secret, passphrase, cost=cost)


def store_key(folder: Path, name: str, secret: bytes, passphrase: str, *, cost: int = SCRYPT_COST) -> bytes:
    """Store an existing key and return its address. Raises KeystoreError, also if the name is taken."""
    address = _check(name, secret)
    # PostgreSQL runs as another user if this is root. It must be able to pass through the data folder.
    folder.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _require_private(folder)
    path = _path(folder, name)
    if path.exists():
        raise KeystoreError(f"There is a key in {path} already; it is not replaced.")
    if not list_addresses(folder):
        # Before the first key, and never again: keys without a record of what they signed are refused.
        create_file(folder / JOURNAL, b"")
    if not create_file(path, seal(secret, passphrase, address, cost=cost) + b"\n"):
        raise KeystoreError(f"There is {path} already; it is not replaced.")
    return address


def read_secret(text: bytes, passphrase: str) -> bytes:
    """The 32 bytes of a key: from 64 hex digits, or from a key file as geth writes it.

    Raises KeystoreError.
    """
    stripped = text.strip()
    try:
        if stripped.startswith(b"{"):
            return unseal(stripped, passphrase)
        secret = bytes.fromhex(stripped.decode("ascii").removeprefix("0x"))
    except StorageRefused as error:
        raise KeystoreError(f"The key file can't be read: {error}.") from None
    except ValueError:
        # The original error would quote the secret.
        secret = b""
    if len(secret) != _KEY_BYTES:
        raise KeystoreError("A key is a key file of version 3, or 64 hexadecimal digits.")
    return secret


def _open(folder: Path, name: str, passphrase: str) -> bytes:
    path = _path(folder, name)
    _require_private(path)
    text = path.read_bytes()
    try:
        secret, named = unseal(text, passphrase), read_address(text)
    except StorageRefused as error:
        raise KeystoreError(f"{path}: {error}.") from None
    if _check(name, secret) != named:
        raise KeystoreError(f"{path} was changed: its key is not the one of the address that it names.")
    return secret


def _check(name: str, secret: bytes) -> bytes:
    """The address of a secret, if its form is right. Raises KeystoreError."""
    if name not in NAMES:
        raise KeystoreError(f"A keystore has no {name!r}; it holds {', '.join(NAMES)}.")
    try:
        if name == SEED:
            return ExtendedPrivateKey.from_seed(secret).public().address()
        return _address_of(secret)
    except ValueError:
        raise KeystoreError(f"That is no key for {name}.") from None


def _address_of(secret: bytes) -> bytes:
    if len(secret) != _KEY_BYTES:
        raise ValueError("a private key has 32 bytes")
    return keccak256(PrivateKey(secret).public_key.format(compressed=False)[1:])[12:]


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _require_private(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        mode = 700 if path.is_dir() else 600
        raise KeystoreError(f"{path} can be read by others: chmod {mode} it ({OWNER_ADVICE}).")
