"""The master key's uses, and random secrets.

Rules: the master key itself encrypts nothing. Each use has its own key (HKDF-SHA256, RFC 5869) with its own
label. A secret is sealed with AES-256-GCM (NIST SP 800-38D) under a random nonce. It is bound to its place,
so a secret that was moved to another row does not open. Nothing here is logged.
"""

import os
import secrets
import string
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MASTER_KEY_BYTES: Final = 32
APP: Final = "app"
CALLBACK: Final = "callback"

_FORM: Final = b"\x01"
_NONCE_BYTES: Final = 12
TEST_PREFIX: Final = "mk_test_"
LIVE_PREFIX: Final = "mk_live_"
_SECRET_PREFIXES: Final = {TEST_PREFIX: "skTest", LIVE_PREFIX: "skLive"}
"""Letters only: libraries for webhooks may read a secret as Base64."""
_APP_KEY_LENGTH: Final = 20
_SECRET_LENGTH: Final = 32
_SMALL: Final = string.ascii_lowercase + string.digits
_ANY: Final = string.ascii_letters + string.digits


class WrongMasterKey(Exception):
    """A sealed secret does not open: the master key is another one, or the row was changed."""


class Keyring:
    """Everything derived from a master key of 32 random bytes. Raises ValueError for another length."""

    def __init__(self, master_key: bytes) -> None:
        if len(master_key) != MASTER_KEY_BYTES:
            raise ValueError(f"a master key has {MASTER_KEY_BYTES} bytes, not {len(master_key)}")
        self._master_key = master_key
        self._seal = AESGCM(self._expand("seal:merchant-secret", 32))
        self._seal_at = AESGCM(self._expand("seal:place", 32))

    def seal(self, secret: str, merchant_id: int, purpose: str, number: int) -> bytes:
        """Encrypt a merchant's secret, bound to its place: merchant, purpose, number.

        The purpose is APP, CALLBACK or that of a further key.
        """
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._seal.encrypt(nonce, secret.encode(), _place(merchant_id, purpose, number))
        return _FORM + nonce + sealed

    def open(self, sealed: bytes, merchant_id: int, purpose: str, number: int) -> str:
        """Decrypt the secret of this place. Raises WrongMasterKey."""
        form, nonce, body = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            if form != _FORM or len(nonce) != _NONCE_BYTES:
                raise InvalidTag
            return self._seal.decrypt(nonce, body, _place(merchant_id, purpose, number)).decode()
        except InvalidTag:
            raise WrongMasterKey(
                f"The master key does not open the {purpose} secret {number} of merchant {merchant_id}: "
                "it is not the key this database was set up with, or the row was changed."
            ) from None

    def seal_at(self, secret: str, place: str) -> bytes:
        """Encrypt a secret that belongs to no merchant, bound to its place, such as `operator;7;totp`."""
        nonce = os.urandom(_NONCE_BYTES)
        return _FORM + nonce + self._seal_at.encrypt(nonce, secret.encode(), place.encode())

    def open_at(self, sealed: bytes, place: str) -> str:
        """Decrypt the secret of this place. Raises WrongMasterKey."""
        form, nonce, body = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            if form != _FORM or len(nonce) != _NONCE_BYTES:
                raise InvalidTag
            return self._seal_at.decrypt(nonce, body, place.encode()).decode()
        except InvalidTag:
            raise WrongMasterKey(
                f"The master key does not open what is sealed at {place}: "
                "it is not the key this database was set up with, or the row was changed."
            ) from None

    def derive(self, info: str, length: int = 32) -> bytes:
        """Derive a key for another use. A different `info` or length gives unrelated bytes."""
        return self._expand(f"derive:{length}:{info}", length)

    def sandbox_seed(self) -> bytes:
        """The 64-byte BIP32 seed of the sandbox's wallets. Production has its own seed."""
        return self._expand("seed:sandbox", 64)

    def _expand(self, label: str, length: int) -> bytes:
        # The master key is uniformly random. In that case RFC 5869 (3.1) allows no salt.
        info = b"merchant-wallet:" + label.encode()
        return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(self._master_key)


def format_key_purpose(key_no: int) -> str:
    """The purpose for which a secret of this key is sealed. The first key's is APP."""
    return APP if key_no == 1 else f"key-{key_no}"


def generate_app_key(*, sandbox: bool) -> str:
    """A new appKey: 20 characters, the mode's prefix and then a-z and 0-9."""
    prefix = TEST_PREFIX if sandbox else LIVE_PREFIX
    return prefix + _draw(_SMALL, _APP_KEY_LENGTH - len(prefix))


def is_of_other_mode(app_key: str, *, sandbox: bool) -> bool:
    """Whether the appKey's prefix is that of the other mode."""
    return app_key.startswith(LIVE_PREFIX if sandbox else TEST_PREFIX)


def generate_secret(app_key: str = "") -> str:
    """A new secret of 32 letters and digits: 190 bits.

    With an appKey that shows its mode, the secret shows it too, and has 154 bits.
    """
    prefix = next((text for mode, text in _SECRET_PREFIXES.items() if app_key.startswith(mode)), "")
    return prefix + _draw(_ANY, _SECRET_LENGTH - len(prefix))


def _draw(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def _place(merchant_id: int, purpose: str, number: int) -> bytes:
    return f"{merchant_id};{purpose};{number}".encode()
