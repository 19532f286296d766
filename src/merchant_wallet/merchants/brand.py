"""How a merchant's wallet pages look: colour, logo, and where its customers open their wallets.

Rules:
- An uploaded picture is never served as it came. It is decoded within limits and encoded again as a PNG of
  at most 512 pixels, without anything but its pixels.
- A logo is named by the SHA-256 of its file. Uploading changes no page: the setting `brand-logo` does, and
  that takes two people.
- Uploads are decoded on a thread of their own, and icons are drawn on another one: nobody's page waits for
  an upload. The library is imported when the first one comes.
"""

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NewType

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("brand.sql"))
MAX_UPLOAD_BYTES: Final = 1_048_576
MAX_FILE_BYTES: Final = 262_144
MAX_PIXELS: Final = 16_000_000
MAX_SCANS: Final = 100
"""A JPEG is a number of scans, and each costs time for all of its pixels. Usual ones have at most a dozen."""
MAX_SCANNED_PIXELS: Final = 200_000_000
"""Pixels times scans: ten scans of 16 million pixels take half a second, a hundred take five."""
MIN_SIDE: Final = 48
SIDES: Final = (512, 384, 256, 128)
"""The longest side of the stored picture: the first that keeps the file below its limit."""
MAX_UPLOADS_A_DAY: Final = 50
MAX_UPLOADS_EVER: Final = 500
"""A logo is kept as long as a proposal or the audit log may show it, so their number is limited."""
FORMATS: Final = ("PNG", "JPEG")
_JPEG_START: Final = b"\xff\xd8"
_JPEG_SCAN: Final = b"\xff\xda"

NO_PICTURE: Final = "This is not a PNG or JPEG picture."
TOO_LARGE: Final = "This picture is too large: at most 1 MB and 16 million pixels."
TOO_MANY_SCANS: Final = "This picture takes too long to read. Save it again as PNG."
TOO_SMALL: Final = "This picture is too small: each side needs at least 48 pixels."
TOO_MANY: Final = "Too many logos were uploaded today. Try again tomorrow."
TOO_MANY_EVER: Final = "This merchant has had 500 logos. Only an earlier file can be uploaded again."

_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="pictures")
_ICON_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="icons")


EncodedLogo = NewType("EncodedLogo", bytes)
"""A picture as `encode_logo` makes it. Nothing else is stored."""


class LogoRefused(ValueError):
    """This file can't be a logo. The text is a sentence for the page."""


class Brand(msgspec.Struct, frozen=True):
    """The look of a merchant's wallet pages. None: the platform's own."""

    name: str
    brand_colour: str | None = None
    brand_logo: str | None = None
    customer_url: str | None = None


async def read_brand(conn: Connection, merchant_id: int) -> Brand:
    """The look of one merchant's wallet pages. `conn` is to home."""
    async with conn.cursor(row_factory=class_row(Brand)) as cursor:
        await cursor.execute(QUERIES["read_brand"].text, {"merchant_id": merchant_id})
        return await cursor.fetchone() or Brand("")


async def encode_in_thread(upload: bytes) -> EncodedLogo:
    """`encode_logo` off the event loop. It may take seconds, so the caller holds no connection."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, encode_logo, upload)


async def add_logo(
    conn: Connection, merchant_id: int, content: EncodedLogo, *, actor: str, at_ms: int
) -> str:
    """Store an encoded picture. Returns the digest, the value of the setting. Raises LogoRefused."""
    digest = hashlib.sha256(content).hexdigest()
    if await read_logo(conn, digest) is not None:
        return digest
    await _check_count(conn, merchant_id, at_ms)
    values = {"digest": digest, "merchant_id": merchant_id, "content": content, "at_ms": at_ms}
    await conn.execute(QUERIES["insert_logo"].text, {**values, "actor": actor})
    return digest


async def _check_count(conn: Connection, merchant_id: int, at_ms: int) -> None:
    values = {"merchant_id": merchant_id, "since_ms": at_ms - DAY_MS}
    row = await (await conn.execute(QUERIES["count_logos"].text, values)).fetchone()
    assert row is not None
    of_today, ever = row
    if of_today >= MAX_UPLOADS_A_DAY:
        raise LogoRefused(TOO_MANY)
    if ever >= MAX_UPLOADS_EVER:
        raise LogoRefused(TOO_MANY_EVER)


async def read_logo(conn: Connection, digest: str) -> bytes | None:
    """The file of a logo, or None."""
    row = await (await conn.execute(QUERIES["read_logo"].text, {"digest": digest})).fetchone()
    return None if row is None else bytes(row[0])


def encode_logo(upload: bytes) -> EncodedLogo:
    """A PNG file with the pixels of an uploaded picture and nothing else. Blocking. Raises LogoRefused."""
    from PIL import Image, UnidentifiedImageError

    if len(upload) > MAX_UPLOAD_BYTES:
        raise LogoRefused(TOO_LARGE)
    scans = upload.count(_JPEG_SCAN) if upload.startswith(_JPEG_START) else 1
    if scans > MAX_SCANS:
        raise LogoRefused(TOO_MANY_SCANS)
    try:
        with Image.open(BytesIO(upload), formats=FORMATS) as opened:
            # Only the head was read so far. A small file may be a huge picture.
            if opened.width * opened.height > MAX_PIXELS:
                raise LogoRefused(TOO_LARGE)
            if opened.width * opened.height * scans > MAX_SCANNED_PIXELS:
                raise LogoRefused(TOO_MANY_SCANS)
            if min(opened.size) < MIN_SIDE:
                raise LogoRefused(TOO_SMALL)
            pixels = opened.convert("RGBA")
    except LogoRefused:
        raise
    except Image.DecompressionBombError:
        raise LogoRefused(TOO_LARGE) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        raise LogoRefused(NO_PICTURE) from None
    for side in SIDES:
        content = _encode(pixels, side)
        if len(content) <= MAX_FILE_BYTES:
            return content
    raise LogoRefused(TOO_LARGE)


def _encode(pixels: Any, side: int) -> EncodedLogo:
    from PIL import Image

    smaller = pixels.copy()
    smaller.thumbnail((side, side), Image.Resampling.LANCZOS)
    # A new picture has the pixels alone: no comments, profiles or places.
    bare = Image.frombytes("RGBA", smaller.size, smaller.tobytes())
    out = BytesIO()
    bare.save(out, "PNG", optimize=True)
    return EncodedLogo(out.getvalue())


async def make_icon(logo: bytes, side: int, ground: str) -> bytes:
    """A square PNG with the logo in the middle, for the start screens of phones."""
    return await asyncio.get_running_loop().run_in_executor(_ICON_THREAD, draw_icon, logo, side, ground)


@lru_cache(maxsize=64)
def draw_icon(logo: bytes, side: int, ground: str) -> bytes:
    """The same, here and now. Systems cut icons to circles, so a fifth of each side stays free."""
    from PIL import Image

    with Image.open(BytesIO(logo), formats=("PNG",)) as opened:
        mark = opened.convert("RGBA")
    free = round(side * 0.6)
    scale = free / max(mark.size)
    mark = mark.resize(
        (max(1, round(mark.width * scale)), max(1, round(mark.height * scale))), Image.Resampling.LANCZOS
    )
    icon = Image.new("RGBA", (side, side), ground)
    icon.alpha_composite(mark, ((side - mark.width) // 2, (side - mark.height) // 2))
    out = BytesIO()
    icon.convert("RGB").save(out, "PNG", optimize=True)
    return out.getvalue()
