"""Passwords: what is good enough, how they are kept, how one is compared.

Rules: kept as Argon2id (RFC 9106) with the parameters of the OWASP Password Storage Cheat Sheet: 19 MiB, two
passes, one lane. Hashing takes a processor for a while, so from the event loop it runs on two threads of its
own and no more: a flood of attempts waits in line there and the rest of the machine goes on. A password is
never logged.
"""

import asyncio
import re
import secrets
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

MIN_LENGTH: Final = 12
MAX_LENGTH: Final = 200
_ALPHABET: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits, without those that look like others."""
_GENERATED_LENGTH: Final = 20
_LEAST_KINDS: Final = 5
"""Fewer different characters than that are one pattern repeated."""

_LEAST_GUESSES: Final = 10**10
"""A password that a guesser with lists finds sooner is too easy (zxcvbn's highest class begins here)."""
_JUDGED_LENGTH: Final = 48
"""The guesses are counted for so many characters; judging more takes long and changes nothing."""
_OUR_WORDS: Final = ("merchant", "wallet", "console", "operator")
_SHORTEST_WORD: Final = 3

_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1, type=Type.ID)
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="password")
_NOBODYS: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyB0aGlzIQ$v6lL5mnHx2p5FD4HYk8P2ZpkL6zVWqyiK0H0mZ9Fq0w"
)
"""A hash that no known password has, to spend the same time on a name that does not exist."""


class PasswordRefused(ValueError):
    """A password is not good enough; the text is a sentence that says why."""


def hash_password(password: str) -> str:
    """The text to be kept for a password. Takes some hundredths of a second of a processor."""
    return _HASHER.hash(_to_bytes(password))


def verify_password(kept: str | None, password: str) -> bool:
    """Whether it is the password; None stands for nobody's and costs the same."""
    try:
        _HASHER.verify(kept or _NOBODYS, _to_bytes(password))
    except (VerificationError, InvalidHashError):
        return False
    return kept is not None


async def hash_aside(password: str) -> str:
    """`hash_password` off the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, hash_password, password)


async def verify_aside(kept: str | None, password: str) -> bool:
    """`verify_password` off the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, verify_password, kept, password)


def generate_password() -> str:
    """A new random password of 20 characters: 116 bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_GENERATED_LENGTH))


async def check_aside(password: str, name: str, further: str = "") -> None:
    """`check_password` off the event loop."""
    await asyncio.get_running_loop().run_in_executor(_THREADS, check_password, password, name, further)


def check_password(password: str, name: str, further: str = "") -> None:
    """See that a password is good enough for the operator of this name. Raises PasswordRefused. Pure.

    `further` is other text that a guesser knows of the person, as the merchant's name. Words of name and
    `further`, and the service's own, count for nothing. Takes up to some tenths of a second of a processor.
    """
    if len(password) < MIN_LENGTH:
        raise PasswordRefused(f"A password has at least {MIN_LENGTH} characters.")
    if len(password) > MAX_LENGTH:
        raise PasswordRefused(f"A password has at most {MAX_LENGTH} characters.")
    small = _normal(password).casefold()
    # A name of one or two letters is inside of nearly everything.
    if len(name) >= _SHORTEST_WORD and name.casefold() in small:
        raise PasswordRefused("A password can't contain the operator's name.")
    if len(set(small)) < _LEAST_KINDS:
        raise PasswordRefused(f"A password has at least {_LEAST_KINDS} different characters.")
    if _count_guesses(password, [*_list_words(f"{name} {further}"), *_OUR_WORDS]) < _LEAST_GUESSES:
        raise PasswordRefused("This password is among those that are tried first; choose another one.")


def _list_words(text: str) -> list[str]:
    """The words of a name, each long enough to be one."""
    return [word for word in re.split(r"[\W_]+", _normal(text).casefold()) if len(word) >= _SHORTEST_WORD]


def _count_guesses(password: str, known: Sequence[str]) -> int:
    """About how many guesses what is left stands when the known words are taken out."""
    # Its lists take some tenths of a second to load, and few commands need them. It has no types of its own.
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]

    left = _normal(password)
    for word in known:
        left = re.sub(re.escape(word), "", left, flags=re.IGNORECASE)
    return int(zxcvbn(left[:_JUDGED_LENGTH])["guesses"]) if left else 0


def _to_bytes(password: str) -> bytes:
    # What a form brings may be any text; one that is no Unicode is simply nobody's password.
    return _normal(password).encode("utf-8", "surrogatepass")


def _normal(password: str) -> str:
    # The same password typed on another keyboard may be other code points (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)
