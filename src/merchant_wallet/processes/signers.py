"""Opens the signer of the settings: one in this process with the keys, or a client of a signer process.

Rules: the worker side, the signer process and commands about keys import this. The web side never does, so it
has no code that can open a key. Passphrases and keys are in no message.
"""

from pathlib import Path

from merchant_wallet.base.chain_settings import ChainSettings
from merchant_wallet.base.chains import CHAINS, EVM, Chain
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.mounted_secrets import MODE_ADVICE, is_mounted_secret
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.keys.keystore import FOLDER, KeystoreError, open_keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.signer_socket import RemoteSigner
from merchant_wallet.chains.keys.signing_rules import ChainLimits, SigningRules
from merchant_wallet.chains.signer import SeededSigner

NO_SIGNER = (
    "Nothing can be paid without a signer: set WALLET_KEYSTORE_PASSPHRASE_FILE for a keystore in the data "
    "folder (made by `merchant-wallet keys create`), or WALLET_SIGNER_SOCKET for a `merchant-wallet signer`."
)


def require_signer(settings: Settings) -> None:
    """Raises ConfigError if real payments have no signer."""
    named = (settings.signer_socket, settings.keystore_passphrase_file, settings.keystore_passphrase)
    if not settings.sandbox and not any(named):
        raise ConfigError(NO_SIGNER)


def open_signer(settings: Settings) -> SeededSigner:
    """The signer of the worker side. Raises ConfigError, KeystoreError."""
    if settings.signer_socket is not None:
        return RemoteSigner(settings.signer_socket)
    passphrase = read_passphrase(settings)
    if passphrase is None:
        raise ConfigError(NO_SIGNER)
    return open_local_signer(settings, passphrase)


def open_local_signer(settings: Settings, passphrase: str) -> LocalSigner:
    """A signer with the keys of the data folder. Raises KeystoreError."""
    return LocalSigner(open_keystore(find_keys_folder(settings), passphrase), make_rules(settings))


def make_rules(settings: Settings) -> SigningRules:
    """The rules of the settings for what a signer signs."""
    return SigningRules(
        chains={code: _make_limits(CHAINS[code], settings.chains[code]) for code in settings.shown_chains},
        payment_limit_units=settings.signer_payment_limit,
        hour_limit_units=settings.signer_hour_limit,
    )


def _make_limits(chain: Chain, settings: ChainSettings) -> ChainLimits:
    # Only EVM chains sign their chain id.
    chain_id = settings.chain_id if chain.family is EVM else 0
    cold, rescue = frozenset(settings.cold_addresses), frozenset(settings.rescue_addresses)
    return ChainLimits(settings.token, settings.fee_cap, chain_id, chain.base_units, cold, rescue)


def find_keys_folder(settings: Settings) -> Path:
    """Where the keystore is."""
    return settings.data / FOLDER


def read_passphrase(settings: Settings) -> str | None:
    """The keystore's passphrase from the settings, None if there is none. Raises KeystoreError."""
    path = settings.keystore_passphrase_file
    if path is None:
        return settings.keystore_passphrase
    try:
        if path.stat().st_mode & 0o077 and not is_mounted_secret(path):
            raise KeystoreError(
                f"The passphrase file {path} can be read by others: chmod 600 it ({MODE_ADVICE})."
            )
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise KeystoreError(f"The passphrase file {path} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise KeystoreError(f"The passphrase file {path} is not UTF-8 text.") from None
