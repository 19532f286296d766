"""Passwords: what is good enough, how they are kept, how one is compared.

Rules: kept as Argon2id (RFC 9106) with the parameters of the OWASP Password Storage Cheat Sheet: 19 MiB, two
passes, one lane. Hashing takes a processor for a while, so from the event loop it runs on two threads of its
own and no more: a flood of attempts waits in line there and the rest of the machine goes on. A password is
never logged.
"""

import asyncio
import secrets
import unicodedata
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

_COMMON: Final = (
    "administrator password passw0rd p@ssw0rd 1234567890 0123456789 9876543210 iloveyou trustno1 changeme"
    " football baseball sunshine princess superman merchant operator whatever 12345678 letmein welcome"
    " default 1234567 qwerty qwertz azerty asdfgh zxcvbn 1q2w3e monkey dragon secret wallet master shadow"
    " 123456 654321 111111 000000 admin login 12345 test user 1234 abc 123"
)
"""What the lists of stolen passwords are made of; the longest first.

A password that is nothing but these is as good as known.
"""

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


def check_password(password: str, name: str) -> None:
    """See that a password is good enough for the operator of this name. Raises PasswordRefused. Pure."""
    if len(password) < MIN_LENGTH:
        raise PasswordRefused(f"A password has at least {MIN_LENGTH} characters.")
    if len(password) > MAX_LENGTH:
        raise PasswordRefused(f"A password has at most {MAX_LENGTH} characters.")
    small = _normal(password).casefold()
    # A name of one or two letters is inside of nearly everything.
    if len(name) > 2 and name.casefold() in small:
        raise PasswordRefused("A password can't contain the operator's name.")
    if len(set(small)) < _LEAST_KINDS:
        raise PasswordRefused(f"A password has at least {_LEAST_KINDS} different characters.")
    if _is_common(small):
        raise PasswordRefused("This password is among those that are tried first; choose another one.")


def _is_common(small: str) -> bool:
    """Whether nothing is left once common words, and a few marks around them, are taken out."""
    left = small
    for word in _COMMON.split():
        left = left.replace(word, "")
    return len(left.strip("!?.,;:-_ #$*+0123456789")) < 2


def _to_bytes(password: str) -> bytes:
    # What a form brings may be any text; one that is no Unicode is simply nobody's password.
    return _normal(password).encode("utf-8", "surrogatepass")


def _normal(password: str) -> str:
    # The same password typed on another keyboard may be other code points (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)
