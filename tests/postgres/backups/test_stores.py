"""Objects in a folder and in a bucket of an S3-compatible server: whole or not at all, listed in order."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest
from tests.rows import each_row

from merchant_wallet.postgres.backups import s3_store
from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone, StoreAway
from merchant_wallet.postgres.backups.stores import MAX_DEPTH, Store, open_store

LONG = bytes(range(256)) * 80_000
LISTED = (
    b'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<IsTruncated>false</IsTruncated><Contents><Key>7//x</Key><Size>1</Size><ETag>x</ETag>"
    b"<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>"
)


BUSY_ANSWERS: Final = 12
"""More than the six that a store was asked before."""
SLOW_DOWN = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message><RequestId>1</RequestId></Error>"
)


class Answers(BaseHTTPRequestHandler):
    """A bucket that answers what a test wants."""

    def answer(self, status: int, content: bytes, tag: str = "x", place: str = "") -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{tag}"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if place:
            self.send_header("Content-Range", place)
        self.end_headers()
        try:
            self.wfile.write(content)
        except ConnectionError:
            # The reader wants only the headers of a long object.
            self.close_connection = True

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def serve(bucket: type[Answers], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the bucket answer, and lead the variables to it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name, text in (("ENDPOINT_URL", address), ("REGION", "x"), ("ACCESS_KEY_ID", "x")):
            monkeypatch.setenv(f"AWS_{name}", text)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def write_half(store: Store) -> None:
    """Begin to write an object, and fail."""
    with store.write("1/base/half") as target:
        target.write(LONG)
        raise ValueError("interrupted")


def test_an_object_is_read_as_it_was_written(store_url: str) -> None:
    store = open_store(store_url)
    store.put("1/wal/a", b"first")
    store.put("1/wal/a", b"second")
    with store.write("1/base/long") as target:
        for start in range(0, len(LONG), 2**20):
            target.write(LONG[start : start + 2**20])

    with store.read("1/wal/a") as source:
        assert source.read() == b"second"
    with store.read("1/base/long") as source:
        begin = source.read(1000)
        assert begin + source.read() == LONG


def test_a_list_has_the_objects_of_one_folder_in_order(store_url: str) -> None:
    store = open_store(store_url)
    for name in ("1/wal/b", "1/wal/a", "1/base/c", "12/wal/d"):
        store.put(name, b"x")

    assert [found.name for found in store.list_objects("1/wal")] == ["1/wal/a", "1/wal/b"]
    assert [found.name for found in store.list_objects("1")] == ["1/base/c", "1/wal/a", "1/wal/b"]
    assert [found.size for found in store.list_objects()] == [1, 1, 1, 1]


def test_an_object_whose_writing_fails_does_not_appear(store_url: str) -> None:
    store = open_store(store_url)
    with pytest.raises(ValueError, match="interrupted"):
        write_half(store)

    assert store.list_objects() == []


def test_removed_objects_are_gone_and_removing_them_again_is_no_error(store_url: str) -> None:
    store = open_store(store_url)
    store.put("1/wal/a", b"x")
    store.put("1/wal/b", b"x")
    store.delete(["1/wal/a"])
    store.delete(["1/wal/a"])

    assert [found.name for found in store.list_objects()] == ["1/wal/b"]
    with pytest.raises(ObjectGone), store.read("1/wal/a"):
        pass


def test_a_folder_that_is_not_mounted_is_away_and_is_not_created(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "mount"))

    for act in (lambda: store.put("1/wal/a", b"x"), store.list_objects):
        with pytest.raises(StoreAway, match="is not there: mount it, or create it"):
            act()
    assert not (tmp_path / "mount").exists()


def test_a_folder_in_which_others_nest_names_without_end_is_listed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("7/wal/a", b"x")
    deep = os.open(tmp_path, os.O_DIRECTORY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=deep)
        above, deep = deep, os.open("d" * 250, os.O_DIRECTORY, dir_fd=deep)
        os.close(above)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
    os.close(deep)
    assert "7/wal/a" in [found.name for found in store.list_objects()]
    assert len(store.list_objects()) <= MAX_DEPTH + 1


def test_a_bucket_that_does_not_exist_is_named(
    s3_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in s3_environment.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(StoreAway, match=r"s3://nothing/here: it answers NoSuchBucket: The specified bucket"):
        open_store("s3://nothing/here").put("1/wal/a", b"x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreAway, match=r"it answers SignatureDoesNotMatch: The request signature[^<]*\.$"):
        open_store("s3://wallet/here").put("1/wal/a", b"x")


def test_a_key_for_which_a_bucket_can_not_be_listed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bucket(Answers):
        def do_GET(self) -> None:
            self.answer(200, LISTED)

    with serve(Bucket, monkeypatch), pytest.raises(StoreAway, match=r'"7//x".* Remove that object'):
        open_store("s3://wallet").list_objects()


def test_a_request_is_repeated_while_the_store_asks_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(s3_store, "MAX_PAUSE_S", 0.002)
    begun: list[str] = []

    class Bucket(Answers):
        def do_GET(self) -> None:
            begun.append(self.path)
            if len(begun) <= BUSY_ANSWERS:
                self.answer(503, SLOW_DOWN)
            else:
                self.answer(200, b"content")

    with serve(Bucket, monkeypatch):
        with open_store("s3://wallet").read("7/wal/a") as source:
            assert source.read() == b"content"
        assert len(begun) == BUSY_ANSWERS + 1
        begun.clear()
        impatient = open_store("s3://wallet", patience_s=0)
        with pytest.raises(StoreAway, match="answers SlowDown: Please reduce"), impatient.read("7/wal/a"):
            pass


def test_a_long_object_is_read_in_ranges_and_no_other_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(s3_store, "PART_BYTES", 1_000_000)
    asked: list[str] = []
    tags = ["first"]

    class Bucket(Answers):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            asked.append(wanted or "all")
            if wanted is None:
                self.answer(200, LONG, tags[0])
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            part = LONG[int(first) : int(last) + 1]
            self.answer(206, part, tags[-1], f"bytes {first}-{last}/{len(LONG)}")

    with serve(Bucket, monkeypatch):
        store = open_store("s3://wallet")
        with store.read("7/base/x/data.age") as source:
            begin = source.read(10)
            assert begin + source.read() == LONG
        assert len(asked) == 1 + -(-len(LONG) // 1_000_000)
        tags.append("second")
        with pytest.raises(ObjectGone, match="was replaced"), store.read("7/base/x/data.age") as source:
            source.read()


@each_row(
    ("given", "said"),
    [
        ("AWS_ACCESS_KEY_ID", "set AWS_SECRET_ACCESS_KEY."),
        ("AWS_SECRET_ACCESS_KEY", "set AWS_ACCESS_KEY_ID."),
        ("", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."),
    ],
)
def test_a_missing_variable_of_the_key_is_named(
    monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store.example.com")
    for name in s3_store.KEY_PAIR:
        monkeypatch.delenv(name, raising=False)
        if name == given:
            monkeypatch.setenv(name, "x")
    with pytest.raises(BackupError, match=f"{said}$"):
        open_store("s3://wallet/here")


def test_plain_http_is_for_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store.example.com")
    with pytest.raises(BackupError, match="must be https://"):
        open_store("s3://wallet/here")


@each_row("url", ["backups", "ftp://host/x", "https://host/x"])
def test_a_place_that_is_neither_folder_nor_bucket_is_refused(url: str) -> None:
    with pytest.raises(BackupError, match="give /a/folder or s3://bucket/prefix"):
        open_store(url)
