"""Passwords: how strong they must be, how they are stored and compared.

Rules:
- A password is stored as Argon2id (RFC 9106) with parameters of the OWASP Password Storage Cheat Sheet: 19
  MiB, two passes, one lane.
- Hashing needs a CPU for some time. The event loop hands it to a pool of two threads, so a flood of attempts
  queues there and the rest of the process goes on. How strong a new password is, is judged on a thread of its
  own, so nobody's sign-in waits for it.
- A password is never logged.
"""

import asyncio
import re
import secrets
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

MIN_LENGTH: Final = 12
MAX_LENGTH: Final = 200
_ALPHABET: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits without those that look alike."""
_GENERATED_LENGTH: Final = 20
_MIN_KINDS: Final = 5
"""A password with fewer different characters is a repeated pattern."""

_MIN_GUESSES: Final = 10**10
"""A password that is guessed with fewer guesses is too easy (zxcvbn's highest class begins here)."""
_JUDGED_LENGTH: Final = 48
"""Guesses are counted for this many characters. More would take long and change nothing."""
_READ_SYMBOLS: Final = 3
"""So many different symbols, such as `@`, are read as letters, too. With digits there are 64 ways at most."""
_FIRST_STRANGE: Final = 0x2600
_STRANGE_STEP: Final = 37
"""What further ones are judged as: characters that are in no word and make no sequence."""
_OUR_WORDS: Final = ("merchant", "wallet", "console", "operator")
_MIN_WORD_LENGTH: Final = 3

_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1, type=Type.ID)
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="password")
_JUDGE: Final = ThreadPoolExecutor(1, thread_name_prefix="password strength")
_NOBODYS: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyB0aGlzIQ$v6lL5mnHx2p5FD4HYk8P2ZpkL6zVWqyiK0H0mZ9Fq0w"
)
"""The hash of no known password. Comparing with it makes a name that does not exist take the same time."""


class PasswordRefused(ValueError):
    """The password is not strong enough. The text is a sentence that says why."""


def hash_password(password: str) -> str:
    """The text to store for a password. Takes some hundredths of a second of CPU."""
    return _HASHER.hash(_to_bytes(password))


def verify_password(kept: str | None, password: str) -> bool:
    """Whether the password is right. None stands for an unknown name and takes the same time."""
    try:
        _HASHER.verify(kept or _NOBODYS, _to_bytes(password))
    except (VerificationError, InvalidHashError):
        return False
    return kept is not None


async def hash_in_thread(password: str) -> str:
    """`hash_password` off the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, hash_password, password)


async def verify_in_thread(kept: str | None, password: str) -> bool:
    """`verify_password` off the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, verify_password, kept, password)


def generate_password() -> str:
    """A new random password of 20 characters: 116 bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_GENERATED_LENGTH))


async def check_in_thread(password: str, name: str, further: str = "") -> None:
    """`check_password` off the event loop."""
    await asyncio.get_running_loop().run_in_executor(_JUDGE, check_password, password, name, further)


def check_password(password: str, name: str, further: str = "") -> None:
    """Check that a password is strong enough for the operator of this name. Raises PasswordRefused. Pure.

    `further` is other text that an attacker knows about the person, such as the merchant's name. Words of the
    name, of `further` and of the service itself add no strength. Takes up to some tenths of a second of CPU.
    """
    if len(password) < MIN_LENGTH:
        raise PasswordRefused(f"A password has at least {MIN_LENGTH} characters.")
    if len(password) > MAX_LENGTH:
        raise PasswordRefused(f"A password has at most {MAX_LENGTH} characters.")
    small = _normal(password).casefold()
    # A name of one or two letters is part of nearly every password.
    if len(name) >= _MIN_WORD_LENGTH and name.casefold() in small:
        raise PasswordRefused("A password can't contain the operator's name.")
    if len(set(small)) < _MIN_KINDS:
        raise PasswordRefused(f"A password has at least {_MIN_KINDS} different characters.")
    if _count_guesses(password, [*_list_words(f"{name} {further}"), *_OUR_WORDS]) < _MIN_GUESSES:
        raise PasswordRefused("This password is among those that are tried first; choose another one.")


def _list_words(text: str) -> list[str]:
    """The words of a name that are long enough to matter."""
    return [word for word in re.split(r"[\W_]+", _normal(text).casefold()) if len(word) >= _MIN_WORD_LENGTH]


def _count_guesses(password: str, known: Sequence[str]) -> int:
    """Roughly how many guesses the password needs after the known words are removed."""
    # Loading its word lists takes some tenths of a second, and few commands need them. It has no types of its
    # own.
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]

    left = _normal(password)
    for word in known:
        left = re.sub(re.escape(word), "", left, flags=re.IGNORECASE)
    return int(zxcvbn(bound_ways(left[:_JUDGED_LENGTH]))["guesses"]) if left else 0


def bound_ways(text: str) -> str:
    """The text with a bounded number of ways to read its symbols as letters. Pure.

    Different symbols stay different. Only words that are written with more of them are not seen as words.
    """
    from zxcvbn.matching import L33T_TABLE  # type: ignore[import-untyped]

    # Digits stay: sequences and dates are made of them.
    symbols = {symbol for symbol in chain.from_iterable(L33T_TABLE.values()) if not symbol.isdecimal()}
    found = [symbol for symbol in dict.fromkeys(text) if symbol in symbols][_READ_SYMBOLS:]
    strange = {ord(symbol): _FIRST_STRANGE + _STRANGE_STEP * place for place, symbol in enumerate(found)}
    return text.translate(strange)


def _to_bytes(password: str) -> bytes:
    # A form may send any text. A text that is not Unicode matches no password.
    return _normal(password).encode("utf-8", "surrogatepass")


def _normal(password: str) -> str:
    # Another keyboard may send other code points for the same password (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)
