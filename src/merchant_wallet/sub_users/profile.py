"""What a sub-user may change on the wallet page besides limits and PIN: its name and the page's language.

Rules: answers to merchants contain the name, so its change locks the book and moves its version. The language
is the page's alone.
"""

import unicodedata
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.signing import find_hidden_field
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.sub_users.controls import SubUserUnknown, lock_book

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("profile.sql"))
MAX_NAME: Final = 128
LANGUAGES: Final = ("en", "zh-CN")

NO_NAME: Final = "A name has 1 to 128 characters."
UNPRINTABLE: Final = (
    "A name has no invisible characters, none that control text and none that change its direction."
)
UNSIGNABLE: Final = "This can't be a name. Please choose another one."


class NameRefused(ValueError):
    """The name is not allowed. The text is a sentence for the page."""


async def rename(conn: Connection, merchant_id: int, user_id: int, username: str) -> str:
    """Change a sub-user's name and return it as it is stored. Raises NameRefused, SubUserUnknown."""
    name = parse_name(username)
    async with conn.transaction():
        await lock_book(conn, merchant_id)
        await _write(conn, "write_username", merchant_id, user_id, name)
    return name


async def set_language(conn: Connection, merchant_id: int, user_id: int, language: str | None) -> None:
    """Store the language of the page; None: the browser's. Raises ValueError, SubUserUnknown."""
    if language is not None and language not in LANGUAGES:
        raise ValueError(f"language: one of {', '.join(LANGUAGES)}")
    await _write(conn, "write_language", merchant_id, user_id, language)


def parse_name(text: str) -> str:
    """The name as it is stored: Unicode NFC, single spaces, none at the ends. Raises NameRefused."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if not 1 <= len(name) <= MAX_NAME:
        raise NameRefused(NO_NAME)
    # `isprintable` refuses control characters and the class Cf, which has all marks of direction.
    if not name.isprintable():
        raise NameRefused(UNPRINTABLE)
    # Answers contain the name. An MD5 signature of such an answer could be used as that of a request.
    if find_hidden_field({"username": name}) is not None:
        raise NameRefused(UNSIGNABLE)
    return name


async def _write(conn: Connection, query: str, merchant_id: int, user_id: int, value: str | None) -> None:
    values = {"merchant_id": merchant_id, "user_id": user_id, "value": value}
    if not (await conn.execute(QUERIES[query].text, values)).rowcount:
        await refuse_closed(conn, merchant_id)
        raise SubUserUnknown(f"Merchant {merchant_id} has no sub-user with the userId {user_id}.")
