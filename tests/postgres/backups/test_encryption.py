"""Sealed objects: only the identity opens them, and none that was cut, changed, swapped or renamed."""

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.postgres.backups.place import make_key
from tests.rows import each_row

from merchant_wallet.postgres.backups.encryption import (
    HEADER_BYTES,
    MAX_RECIPIENTS,
    SEALED_OVERHEAD_BYTES,
    BackupKey,
    make_identity,
    parse_keys,
    read_key_file,
)
from merchant_wallet.postgres.backups.errors import BackupError, StoreAway

CONTENT = os.urandom(300_000)
NAME = "1/wal/a.age"


def open_object(key: BackupKey, name: str, sealed: bytes) -> bytes:
    """The content of an object."""
    return key.open(name, io.BytesIO(sealed), len(CONTENT))


def test_the_recipient_alone_seals_and_does_not_open() -> None:
    identity, recipient = make_identity()
    sealing, opening = (
        parse_keys(text, "test").with_signing_key(bytes(32)) for text in (recipient, identity)
    )
    sealed = sealing.seal(NAME, CONTENT)

    assert open_object(opening, NAME, sealed) == CONTENT
    for key in (sealing, opening.for_sealing()):
        with pytest.raises(BackupError, match="has no identity"):
            open_object(key, NAME, sealed)


def test_a_key_file_alone_signs_nothing_and_opens_nothing_that_was_signed() -> None:
    key = make_key()
    alone = replace(key, signing_key=None)
    with pytest.raises(BackupError, match="signed with a key of the master key"):
        alone.seal(NAME, CONTENT)
    with pytest.raises(BackupError, match="signed with a key of the master key"):
        open_object(alone, NAME, key.seal(NAME, CONTENT))


def test_no_key_shows_its_secrets() -> None:
    key = make_key()
    assert not any(secret in repr(key) for secret in (*key.identities, repr(key.signing_key)))


def test_another_key_opens_nothing() -> None:
    with pytest.raises(BackupError, match="encrypted for another key"):
        open_object(make_key(), NAME, make_key().seal(NAME, CONTENT))


@each_row("length", [0, 10, 150, 250, 300, 65_000, 66_000, 131_400, 299_999])
def test_an_object_that_was_cut_is_refused(length: int) -> None:
    key = make_key()
    with pytest.raises(BackupError, match="damaged"):
        open_object(key, NAME, key.seal(NAME, CONTENT)[:length])


def test_an_object_whose_chunks_were_swapped_is_refused() -> None:
    key = make_key()
    sealed = key.seal(NAME, bytes(300_000))
    chunk = 65_552
    first = len(sealed) - 300_000 % 65_536 - 16 - 4 * chunk
    begin, a, b, rest = (
        sealed[:first],
        sealed[first : first + chunk],
        sealed[first + chunk : first + 2 * chunk],
        sealed[first + 2 * chunk :],
    )
    with pytest.raises(BackupError, match="damaged"):
        open_object(key, NAME, begin + b + a + rest)


@each_row(
    "header",
    [
        b"age-encryption.org/v1\n" + b"-> X25519 x\n" * 30_000,
        b"age-encryption.org/v1\n-> X25519 " + b"x" * 300_000 + b"\n--- ",
        b"age-encryption.org/v2\n--- " + b"x" * 300_000,
        b"-----BEGIN AGE ENCRYPTED FILE-----\n--- " + b"x" * 300_000,
        b"x" * 300_000,
    ],
)
def test_an_object_without_an_early_end_of_its_header_is_read_no_further(header: bytes) -> None:
    source = io.BytesIO(header)
    with pytest.raises(BackupError, match="damaged"):
        make_key().open_stream(NAME, source, io.BytesIO())
    assert source.tell() <= 2 * HEADER_BYTES


def test_an_object_is_read_no_further_than_its_content_may_be_long() -> None:
    key = make_key()
    source = io.BytesIO(key.seal(NAME, bytes(10 * len(CONTENT))))
    with pytest.raises(BackupError, match="has more than"):
        key.open(NAME, source, 100)
    assert source.tell() < 2 * SEALED_OVERHEAD_BYTES
    # What is as long as it may be is opened, however the source splits it.
    assert key.open(NAME, Trickle(key.seal(NAME, bytes(70_000))), 70_000) == bytes(70_000)


class Trickle(io.BytesIO):
    """Gives a few bytes for each read, as a connection may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(100, size if size and size > 0 else 100))


def test_a_key_file_has_no_more_recipients_than_a_header_has_room_for() -> None:
    recipients = [make_identity()[1] for _ in range(MAX_RECIPIENTS)]
    identity = make_key().identities[0]
    key = parse_keys("\n".join([identity, *recipients[1:]]), "test").with_signing_key(bytes(32))
    assert open_object(key, NAME, key.seal(NAME, CONTENT)) == CONTENT
    with pytest.raises(BackupError, match="more than 20 keys"):
        parse_keys("\n".join([identity, *recipients]), "test")


def test_every_changed_byte_is_found() -> None:
    key = make_key()
    sealed = key.seal(NAME, b"forty-two")
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(BackupError):
            open_object(key, NAME, bytes(changed))


def test_an_object_that_takes_the_place_of_another_is_refused() -> None:
    key = make_key()
    with pytest.raises(BackupError, match=r"1/wal/b.age contains another object, 1/wal/a.age"):
        open_object(key, "1/wal/b.age", key.seal(NAME, CONTENT))


def test_the_error_of_a_store_is_not_taken_for_damage() -> None:
    class Broken:
        def read(self, size: int = -1, /) -> bytes:
            raise StoreAway("the store is away")

    key = make_key()
    with pytest.raises(StoreAway, match="the store is away"):
        key.open_stream(NAME, Broken(), io.BytesIO())
    with pytest.raises(StoreAway, match="the store is away"):
        key.seal_stream(NAME, Broken(), io.BytesIO())


def test_a_key_file_that_everybody_reads_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"# ours\n{make_identity()[0]}\n")
    file.chmod(0o604)
    with pytest.raises(BackupError, match="chmod 600"):
        read_key_file(file)
    file.chmod(0o600)
    assert read_key_file(file).identities


@each_row("text", ["", "# nothing\n", "password", "AGE-SECRET-KEY-1WRONG", "age1wrong"])
def test_a_file_without_good_keys_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BackupError) as refused:
        parse_keys(text, "backup.key")
    assert "backup.key" in str(refused.value)
    assert "1WRONG" not in str(refused.value)
