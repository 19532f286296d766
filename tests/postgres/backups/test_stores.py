"""Objects in a folder and in a bucket of an S3-compatible server: whole or not at all, listed in order."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.rows import each_row

from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone, StoreAway
from merchant_wallet.postgres.backups.stores import MAX_DEPTH, Store, open_store

LONG = bytes(range(256)) * 80_000
LISTED = (
    b'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<IsTruncated>false</IsTruncated><Contents><Key>7//x</Key><Size>1</Size><ETag>x</ETag>"
    b"<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>"
)


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
    with pytest.raises(StoreAway, match=r"s3://nothing/here.*NoSuchBucket"):
        open_store("s3://nothing/here").put("1/wal/a", b"x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreAway, match="SignatureDoesNotMatch"):
        open_store("s3://wallet/here").put("1/wal/a", b"x")


def test_a_key_for_which_a_bucket_can_not_be_listed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bucket(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(LISTED)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name, text in (("ENDPOINT_URL", address), ("REGION", "x"), ("ACCESS_KEY_ID", "x")):
            monkeypatch.setenv(f"AWS_{name}", text)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        with pytest.raises(StoreAway, match=r'"7//x".* Remove that object'):
            open_store("s3://wallet").list_objects()
        server.shutdown()
        thread.join()


def test_plain_http_is_for_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store.example.com")
    with pytest.raises(BackupError, match="must be https://"):
        open_store("s3://wallet/here")


@each_row("url", ["backups", "ftp://host/x", "https://host/x"])
def test_a_place_that_is_neither_folder_nor_bucket_is_refused(url: str) -> None:
    with pytest.raises(BackupError, match="give /a/folder or s3://bucket/prefix"):
        open_store(url)
