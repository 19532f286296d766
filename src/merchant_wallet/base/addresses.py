"""Wallet addresses: their written forms, and their derivation from extended keys.

Rules:
- Inside the service an address is its 20 bytes, which are the same on all chains. The written form is parsed
  and formatted only at the edge. It depends on the chain's family (see `chains`).
- An EVM address in mixed case must have its EIP-55 checksum. A TRON address is base58check of 0x41 and the 20
  bytes.
- Deposit addresses are the keys /0/i (BIP32, BIP44) below an account's extended public key. The merchant's
  own address is /1/0. So no private key is needed to give out addresses.
- Nothing here logs or prints a private key.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from merchant_wallet.base.chains import CHAINS, EVM, TRON, Family
from merchant_wallet.base.invisible_text import drop_invisible, note_invisible
from merchant_wallet.base.user_input import InvalidInput

if TYPE_CHECKING:
    from coincurve import PublicKey

ZERO: Final = bytes(20)
# In the sandbox, a payout to the first address fails, and one to the second takes a minute.
SANDBOX_FAILING: Final = bytes.fromhex("000000000000000000000000000000000000dead")
SANDBOX_SLOW: Final = bytes.fromhex("000000000000000000000000000000000000beef")

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS: Final = {character: value for value, character in enumerate(_ALPHABET)}
_LOWER_HEX: Final = frozenset("0123456789abcdef")
_TRON_PREFIX: Final = b"\x41"
_TRON_LENGTH: Final = 34
_XPUB_LENGTH: Final = 111
_XPUB_VERSION: Final = bytes.fromhex("0488b21e")
_HARDENED: Final = 2**31
_CURVE_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_CACHED_FORMS: Final = 8192
"""Each function below caches so many results, in up to 1.5 MiB. A result costs 6 to 15 microseconds."""


def keccak256(message: bytes) -> bytes:
    """The original Keccak-256 that all chains here use. NIST's SHA3-256 differs."""
    # Imported here and below where it is needed: the settings need this module, and so does every `--help`.
    from Crypto.Hash import keccak

    return keccak.new(digest_bits=256, data=message).digest()


def encode_base58check(payload: bytes) -> str:
    """Base58 of `payload` and its 4-byte double SHA-256 checksum."""
    checked = payload + _checksum(payload)
    number = int.from_bytes(checked, "big")
    digits = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_ALPHABET[digit])
    leading_zeros = len(checked) - len(checked.lstrip(b"\0"))
    return "1" * leading_zeros + "".join(reversed(digits))


def decode_base58(text: str) -> int:
    """The number that a base58 text writes. Raises ValueError."""
    number = 0
    for character in text:
        digit = _DIGITS.get(character)
        if digit is None:
            raise InvalidInput(character, "is not a base58 character")
        number = number * 58 + digit
    return number


def decode_base58check(text: str) -> bytes:
    """The payload of a base58check text.

    Raises ValueError. Callers limit the length, since the cost grows with its square.
    """
    number = decode_base58(text)
    leading_zeros = len(text) - len(text.lstrip("1"))
    checked = bytes(leading_zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    payload = checked[:-4]
    if len(checked) < 4 or _checksum(payload) != checked[-4:]:
        raise ValueError("the base58 checksum does not match")
    return payload


@lru_cache(maxsize=_CACHED_FORMS)
def to_eip55(address: bytes) -> str:
    """The EVM form of 20 bytes, with its checksum in the case of the letters (EIP-55)."""
    _check_size(address)
    return _write_eip55(address)


def _write_eip55(address: bytes) -> str:
    digits = address.hex()
    case = keccak256(digits.encode()).hex()
    return "0x" + "".join(d.upper() if c > "7" else d for d, c in zip(digits, case, strict=False))


@lru_cache(maxsize=_CACHED_FORMS)
def to_tron(address: bytes) -> str:
    """The TRON form of 20 bytes: 34 characters that begin with T."""
    _check_size(address)
    return encode_base58check(_TRON_PREFIX + address)


@lru_cache(maxsize=_CACHED_FORMS)
def parse_evm(text: str) -> bytes:
    """The 20 bytes of `0x` and 40 hex digits, in lower case or with a correct EIP-55 checksum.

    Raises ValueError.
    """
    digits = text[2:]
    if len(text) != 42 or not text.startswith("0x") or not _LOWER_HEX.issuperset(digits.lower()):
        raise ValueError(f"an EVM address is 0x and 40 hex digits{note_invisible(text)}")
    address = bytes.fromhex(digits)
    if not _LOWER_HEX.issuperset(digits) and _write_eip55(address) != text:
        raise ValueError("the EIP-55 checksum does not match the case of the letters")
    return address


@lru_cache(maxsize=_CACHED_FORMS)
def parse_tron(text: str) -> bytes:
    """The 20 bytes of a TRON address in base58check. Raises ValueError."""
    if len(text) != _TRON_LENGTH or not text.startswith("T"):
        raise ValueError(f"a TRON address is 34 base58 characters that begin with T{note_invisible(text)}")
    payload = decode_base58check(text)
    if len(payload) != 21 or payload[:1] != _TRON_PREFIX:
        raise ValueError("the address is not one of the TRON main network")
    return payload[1:]


def parse_address(chain: str, text: str) -> bytes:
    """The 20 bytes of an address in the form of `chain`. Raises ValueError if it is not valid there."""
    return parse_evm(text) if CHAINS[chain].family is EVM else parse_tron(text)


def format_address(chain: str, address: bytes) -> str:
    """The form of 20 bytes on `chain`."""
    return to_eip55(address) if CHAINS[chain].family is EVM else to_tron(address)


def fold_address(chain: str, text: str) -> str:
    """The form in which a valid address is compared: an EVM address in lower case."""
    return text.lower() if CHAINS[chain].family is EVM else text


def parse_wallet_address(text: str) -> tuple[Family, bytes]:
    """The family of chains of an address, by its form, and its 20 bytes. Raises ValueError."""
    if text.startswith("0x"):
        return EVM, parse_evm(text)
    return TRON, parse_tron(text)


def parse_pasted_address(text: str) -> tuple[Family, bytes]:
    """As `parse_wallet_address`, for what a person pasted: what can't be seen is no part of it."""
    return parse_wallet_address(drop_invisible(text))


@dataclass(frozen=True, slots=True)
class ExtendedPublicKey:
    """A BIP32 extended public key: it gives all addresses below it, but can't spend from them."""

    key: bytes
    chain_code: bytes
    depth: int = 0
    parent_fingerprint: bytes = bytes(4)
    child_number: int = 0

    @classmethod
    def parse(cls, text: str) -> "ExtendedPublicKey":
        """Parse an `xpub…` text (BIP32, serialization format). Raises ValueError."""
        raw = decode_base58check(text) if len(text) == _XPUB_LENGTH else b""
        if len(raw) != 78 or raw[:4] != _XPUB_VERSION:
            raise ValueError("not an extended public key (xpub)")
        if raw[4] == 0 and any(raw[5:13]):
            raise ValueError("an extended public key of depth 0 cannot have a parent")
        # The curve library would also accept other encodings of a point. Only a compressed one is valid here.
        _point(raw[45:])
        return cls(raw[45:], raw[13:45], raw[4], raw[5:9], int.from_bytes(raw[9:13], "big"))

    def text(self) -> str:
        """The `xpub…` form."""
        head = self.depth.to_bytes(1, "big") + self.parent_fingerprint + self.child_number.to_bytes(4, "big")
        return encode_base58check(_XPUB_VERSION + head + self.chain_code + self.key)

    def child(self, number: int) -> "ExtendedPublicKey":
        """The child with this number below 2**31. Raises ValueError. There are no hardened children here."""
        if not 0 <= number < _HARDENED:
            raise ValueError("a public key has no hardened children")
        tweak, chain_code = _split_hmac(self.chain_code, self.key + number.to_bytes(4, "big"))
        key = _point(self.key).add(tweak).format()
        return ExtendedPublicKey(key, chain_code, self.depth + 1, fingerprint_of(self.key), number)

    def address(self) -> bytes:
        """The 20 bytes of this key's address, on any chain."""
        return keccak256(_point(self.key).format(compressed=False)[1:])[12:]


@dataclass(frozen=True, slots=True)
class ExtendedPrivateKey:
    """A BIP32 extended private key, for the signer and to derive accounts. Its repr shows no secret."""

    secret: bytes = field(repr=False)
    chain_code: bytes = field(repr=False)
    depth: int = 0
    parent_fingerprint: bytes = bytes(4)
    child_number: int = 0

    @classmethod
    def from_seed(cls, seed: bytes) -> "ExtendedPrivateKey":
        """The master key of a seed of 16 to 64 bytes. Raises ValueError."""
        if not 16 <= len(seed) <= 64:
            raise ValueError("a seed has 16 to 64 bytes")
        secret, chain_code = _split_hmac(b"Bitcoin seed", seed)
        if not 0 < int.from_bytes(secret, "big") < _CURVE_ORDER:
            raise ValueError("this seed has no master key")
        return cls(secret, chain_code)

    def child(self, number: int, *, hardened: bool = False) -> "ExtendedPrivateKey":
        """The child with this number below 2**31, hardened or not. Raises ValueError."""
        if not 0 <= number < _HARDENED:
            raise ValueError("a child's number is below 2**31")
        own_public = self.public().key
        index = (number + _HARDENED * hardened).to_bytes(4, "big")
        tweak, chain_code = _split_hmac(
            self.chain_code, (b"\0" + self.secret if hardened else own_public) + index
        )
        tweak_number = int.from_bytes(tweak, "big")
        secret = (tweak_number + int.from_bytes(self.secret, "big")) % _CURVE_ORDER
        if tweak_number >= _CURVE_ORDER or secret == 0:
            raise ValueError("this child does not exist; take the next number")
        return ExtendedPrivateKey(
            secret.to_bytes(32, "big"),
            chain_code,
            self.depth + 1,
            fingerprint_of(own_public),
            int.from_bytes(index, "big"),
        )

    def public(self) -> ExtendedPublicKey:
        """The extended public key of this key."""
        from coincurve import PrivateKey

        key = PrivateKey(self.secret).public_key.format()
        return ExtendedPublicKey(key, self.chain_code, self.depth, self.parent_fingerprint, self.child_number)


def derive_account(seed: bytes, coin_type: int, account: int) -> ExtendedPrivateKey:
    """The account key m/44'/coin_type'/account' of a seed (BIP44). Raises ValueError."""
    key = ExtendedPrivateKey.from_seed(seed)
    for number in (44, coin_type, account):
        key = key.child(number, hardened=True)
    return key


def derive_account_xpub(seed: bytes, coin_type: int, account: int) -> str:
    """The extended public key of `derive_account`, as text. It is enough to give out deposit addresses."""
    return derive_account(seed, coin_type, account).public().text()


def address_of_child(xpub: str, index: int) -> bytes:
    """The 20 bytes of deposit address /0/`index` below an account's extended public key.

    Raises ValueError.
    """
    return _receiving_key(xpub).child(index).address()


def address_of_merchant(xpub: str) -> bytes:
    """The 20 bytes of address /1/0 below an account's extended public key: the merchant's own.

    Raises ValueError.
    """
    return ExtendedPublicKey.parse(xpub).child(1).child(0).address()


def fingerprint_of(public_key: bytes) -> bytes:
    """The first 4 bytes of HASH160 of a compressed public key. A BIP32 child names its parent by them."""
    from Crypto.Hash import RIPEMD160

    return RIPEMD160.new(hashlib.sha256(public_key).digest()).digest()[:4]


@lru_cache(maxsize=4096)
def _receiving_key(xpub: str) -> ExtendedPublicKey:
    return ExtendedPublicKey.parse(xpub).child(0)


def _point(key: bytes) -> "PublicKey":
    """A point of the curve. Raises ValueError.

    The curve's library is imported only here and for private keys: reading settings needs only addresses.
    """
    from coincurve import PublicKey

    return PublicKey(key)


def _split_hmac(key: bytes, message: bytes) -> tuple[bytes, bytes]:
    digest = hmac.digest(key, message, "sha512")
    return digest[:32], digest[32:]


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]


def _check_size(address: bytes) -> None:
    if len(address) != 20:
        raise ValueError("an address has 20 bytes")
