"""A logo that is uploaded is decoded within limits and stored as a file of our own."""

import io
import struct
import zlib

import pytest
from PIL import Image, PngImagePlugin
from tests.rows import each_row

from merchant_wallet.merchants.brand import (
    MAX_FILE_BYTES,
    MAX_UPLOAD_BYTES,
    NO_PICTURE,
    TOO_LARGE,
    TOO_SMALL,
    LogoRefused,
    draw_icon,
    encode_logo,
)


def draw(kind: str = "PNG", size: tuple[int, int] = (200, 80), **options: object) -> bytes:
    """A picture with a red half and a blue half."""
    picture = Image.new("RGB", size, "red")
    picture.paste("blue", (size[0] // 2, 0, size[0], size[1]))
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def chunks(png: bytes) -> list[bytes]:
    """The names of a PNG's chunks."""
    at, found = 8, []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        found.append(png[at + 4 : at + 8])
        at += 12 + length
    return found


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_becomes_a_png_with_its_pixels_alone(kind: str) -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "<script>alert(1)</script>")
    upload = draw(kind, **({"pnginfo": text} if kind == "PNG" else {"comment": b"<script>"}))
    stored = bytes(encode_logo(upload + b"<html><script>alert(2)</script>"))
    assert b"script" in upload
    assert b"script" not in stored
    assert set(chunks(stored)) == {b"IHDR", b"IDAT", b"IEND"}
    with Image.open(io.BytesIO(stored)) as shown:
        assert (shown.format, shown.size, shown.mode) == ("PNG", (200, 80), "RGBA")


def test_the_same_picture_gives_the_same_file() -> None:
    assert encode_logo(draw()) == encode_logo(encode_logo(draw()))


def test_a_large_picture_is_made_small() -> None:
    with Image.open(io.BytesIO(encode_logo(draw(size=(3000, 1500))))) as shown:
        assert shown.size == (512, 256)
    noise = Image.frombytes("RGB", (600, 600), bytes((n * 7919 >> 3) % 256 for n in range(600 * 600 * 3)))
    out = io.BytesIO()
    noise.save(out, "JPEG")
    assert len(encode_logo(out.getvalue())) <= MAX_FILE_BYTES


def huge_png() -> bytes:
    """A few bytes that say they are 100,000 pixels on each side."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"x"))
        + chunk(b"IEND", b"")
    )


@each_row(
    ("upload", "told"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", NO_PICTURE),
        (b"", NO_PICTURE),
        (draw("GIF"), NO_PICTURE),
        (draw("BMP"), NO_PICTURE),
        (draw()[:120], NO_PICTURE),
        (draw("JPEG")[:300], NO_PICTURE),
        (huge_png(), TOO_LARGE),
        (b"\x89PNG\r\n\x1a\n" + bytes(MAX_UPLOAD_BYTES), TOO_LARGE),
        (draw(size=(400, 20)), TOO_SMALL),
    ],
)
def test_what_is_no_picture_of_a_fair_size_is_refused(upload: bytes, told: str) -> None:
    with pytest.raises(LogoRefused, match=told.split(":")[0]):
        encode_logo(upload)


def repeat_last_scan(jpeg: bytes, times: int) -> bytes:
    """A progressive JPEG whose last scan comes again and again: each time all pixels are worked through."""
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:-2] + jpeg[last:-2] * times + jpeg[-2:]


def test_a_picture_in_a_thousand_scans_is_refused_before_it_is_decoded() -> None:
    jpeg = draw("JPEG", progressive=True)
    assert encode_logo(repeat_last_scan(jpeg, 10))
    with pytest.raises(LogoRefused, match="Save it again as PNG"):
        encode_logo(repeat_last_scan(jpeg, 1000))


def test_a_large_picture_in_many_scans_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jpeg = draw("JPEG", size=(3000, 3000), progressive=True)
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("it was decoded"))
    with pytest.raises(LogoRefused, match="Save it again as PNG"):
        encode_logo(repeat_last_scan(jpeg, 20))


def test_an_icon_is_square_and_leaves_room_to_be_cut_round() -> None:
    with Image.open(io.BytesIO(draw_icon(encode_logo(draw()), 192, "#ffffff"))) as icon:
        assert icon.size == (192, 192)
        assert icon.getpixel((5, 5)) == (255, 255, 255)
        assert icon.getpixel((60, 96)) == (255, 0, 0)
