"""A secret behind a passphrase: Web3 Secret Storage, version 3, as geth writes its key files.

Rules:
- Pure, except for the random bytes of `seal`.
- Other programs' files may use scrypt or PBKDF2. Ours use scrypt.
- The memory and time that a file asks for are limited before they are spent.
- No error text holds a part of a secret or a passphrase.
"""

import hmac
import secrets
import uuid
from typing import Final

import msgspec
from Crypto.Protocol.KDF import scrypt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from merchant_wallet.base.addresses import keccak256

VERSION: Final = 3
SCRYPT_COST: Final = 2**18
"""scrypt's N for our files: 256 MiB and about a second for each guess."""

_BLOCK_SIZE: Final = 8
_DERIVED_BYTES: Final = 32
_SALT_BYTES: Final = 32
_IV_BYTES: Final = 16
_MAX_SCRYPT_BYTES: Final = 2**30
_MAX_PARALLELISM: Final = 16
_MAX_ROUNDS: Final = 10_000_000
_MAX_SECRET_BYTES: Final = 64


class StorageRefused(ValueError):
    """The text is no secret of this form, or the passphrase is wrong. The text says which."""


class _CipherParams(msgspec.Struct, frozen=True):
    iv: str


class _Derivation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of scrypt or PBKDF2, with the names of the standard."""

    dklen: int
    salt: str
    n: int | None = None
    r: int | None = None
    p: int | None = None
    c: int | None = None
    prf: str | None = None


class _Crypto(msgspec.Struct, frozen=True):
    cipher: str
    cipherparams: _CipherParams
    ciphertext: str
    kdf: str
    kdfparams: _Derivation
    mac: str


class _Sealed(msgspec.Struct, frozen=True, omit_defaults=True):
    version: int
    crypto: _Crypto
    id: str | None = None
    address: str | None = None


def seal(secret: bytes, passphrase: str, address: bytes, *, cost: int = SCRYPT_COST) -> bytes:
    """The JSON document with `secret` encrypted by `passphrase`. `address` can be read without it."""
    salt, iv = secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(_IV_BYTES)
    derivation = _Derivation(_DERIVED_BYTES, salt.hex(), n=cost, r=_BLOCK_SIZE, p=1)
    key = _derive("scrypt", derivation, passphrase)
    ciphertext = _encipher(key, iv, secret)
    crypto = _Crypto(
        "aes-128-ctr", _CipherParams(iv.hex()), ciphertext.hex(), "scrypt", derivation, _mac(key, ciphertext)
    )
    return msgspec.json.encode(_Sealed(VERSION, crypto, str(uuid.uuid4()), address.hex()))


def unseal(text: bytes, passphrase: str) -> bytes:
    """The secret of a document. Raises StorageRefused."""
    crypto = _read(text).crypto
    iv, ciphertext = _hex(crypto.cipherparams.iv, "iv"), _hex(crypto.ciphertext, "ciphertext")
    if crypto.cipher != "aes-128-ctr" or len(iv) != _IV_BYTES:
        raise StorageRefused("the file is not encrypted with aes-128-ctr")
    if not 0 < len(ciphertext) <= _MAX_SECRET_BYTES:
        raise StorageRefused(f"a secret has at most {_MAX_SECRET_BYTES} bytes")
    key = _derive(crypto.kdf, crypto.kdfparams, passphrase)
    if not hmac.compare_digest(_mac(key, ciphertext), crypto.mac.lower()):
        raise StorageRefused("the passphrase is wrong, or the file was changed")
    return _encipher(key, iv, ciphertext)


def read_address(text: bytes) -> bytes:
    """The address that a document names. It is not proven. Raises StorageRefused."""
    named = (_read(text).address or "").removeprefix("0x")
    address = _hex(named, "address")
    if len(address) != 20:
        raise StorageRefused("the file names no address")
    return address


def _read(text: bytes) -> _Sealed:
    try:
        sealed = msgspec.json.decode(text, type=_Sealed)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise StorageRefused("not a key file of the Web3 Secret Storage form") from None
    if sealed.version != VERSION:
        raise StorageRefused(f"the file is of version {sealed.version}, not {VERSION}")
    return sealed


def _derive(name: str, asked: _Derivation, passphrase: str) -> bytes:
    salt = _hex(asked.salt, "salt")
    if asked.dklen != _DERIVED_BYTES:
        raise StorageRefused(f"the derived key must have {_DERIVED_BYTES} bytes")
    if name == "scrypt":
        return _scrypt(asked, salt, passphrase)
    if name == "pbkdf2" and asked.prf == "hmac-sha256" and 0 < (asked.c or 0) <= _MAX_ROUNDS:
        return PBKDF2HMAC(SHA256(), _DERIVED_BYTES, salt, asked.c or 0).derive(passphrase.encode())
    raise StorageRefused("the key is derived in a way that is not known, or out of bounds")


def _scrypt(asked: _Derivation, salt: bytes, passphrase: str) -> bytes:
    n, r, p = asked.n or 0, asked.r or 0, asked.p or 0
    in_bounds = n >= 2 and n & (n - 1) == 0 and r >= 1 and 1 <= p <= _MAX_PARALLELISM
    if not in_bounds or 128 * n * r > _MAX_SCRYPT_BYTES:
        raise StorageRefused("scrypt's parameters are out of bounds")
    # OpenSSL's scrypt refuses the parameters of the standard's own example.
    return scrypt(passphrase, salt, _DERIVED_BYTES, n, r, p)


def _encipher(key: bytes, iv: bytes, content: bytes) -> bytes:
    """AES in counter mode. Encryption and decryption are the same."""
    cipher = Cipher(AES(key[:16]), CTR(iv)).encryptor()
    return cipher.update(content) + cipher.finalize()


def _mac(key: bytes, ciphertext: bytes) -> str:
    return keccak256(key[16:32] + ciphertext).hex()


def _hex(text: str, name: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise StorageRefused(f"the file's {name} is not hexadecimal") from None
