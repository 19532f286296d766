"""The folder of the server's socket: nobody else can put a socket there, or redirect the service."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from merchant_wallet.postgres.data_folder import (
    PORT,
    PostgresError,
    clear_socket_dir,
    remove_socket_dir,
    require_private,
)
from merchant_wallet.postgres.privileges import find_nobody

SOCKET = f".s.PGSQL.{PORT}"


def make_open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def make_open_to_the_group(path: Path) -> None:
    path.mkdir()
    path.chmod(0o770)


def make_link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    (elsewhere / SOCKET).touch()
    path.symlink_to(elsewhere)


def make_file(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize("make", [make_open_to_all, make_open_to_the_group, make_link, make_file])
def test_what_others_could_write_to_or_have_put_there_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "sockets"
    make(path)
    with pytest.raises(PostgresError, match="is not a private folder"):
        clear_socket_dir(path, None)


def test_the_private_folder_is_cleared_and_a_missing_one_made(tmp_path: Path) -> None:
    path = tmp_path / "sockets"
    for _ in range(2):
        clear_socket_dir(path, None)
        assert path.stat().st_mode & 0o777 == 0o700
        assert list(path.iterdir()) == []
        (path / SOCKET).touch()
    # As it is when the group of web and worker may enter.
    path.chmod(0o2710)
    clear_socket_dir(path, None)
    assert list(path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    account = find_nobody()
    path = tmp_path / "sockets"
    path.mkdir(mode=0o700)
    with pytest.raises(PostgresError, match="is not a private folder"):
        clear_socket_dir(path, account)
    os.chown(path, account.uid, account.gid)
    clear_socket_dir(path, account)
    require_private(path, account.uid)
    with pytest.raises(PostgresError, match="is not a private folder"):
        require_private(path, 0)


def test_nothing_is_removed_through_a_link(tmp_path: Path) -> None:
    path = tmp_path / "sockets"
    make_link(path)
    remove_socket_dir(path)
    assert (tmp_path / "elsewhere" / SOCKET).exists()
    assert path.is_symlink()
