"""The own PostgreSQL: started, found, killed, taken over and stopped, with real processes."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from tests.fork_server import ForkedProcess, fork_program
from tests.waits import wait_until

from merchant_wallet import postgres
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres import AlreadyRunning, PostgresError, RunningPostgres
from merchant_wallet.postgres.data_folder import DataFolder, is_postmaster
from merchant_wallet.postgres.privileges import Account, become

IS_ROOT = os.geteuid() == 0


def _quiet(_: str) -> None:
    return None


def _start_ordinary_up(folder: Path) -> tuple[subprocess.Popen[str], int, str]:
    """A small `up` that ends with its standard input."""
    program = [sys.executable, str(Path(__file__).with_name("small_up.py")), str(folder)]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid, url = process.stdout.readline().split()
    return process, int(pid), url


def _start_up(folder: Path) -> tuple[ForkedProcess, int, str]:
    """The same in a process that is forked and can only be killed."""
    reading, writing = os.pipe()
    process = fork_program("tests.postgres.small_up", str(folder), output=(writing, sys.stderr.fileno()))
    os.close(writing)
    with open(reading) as output:
        pid, url = output.readline().split()
    return process, int(pid), url


def _kill(process: ForkedProcess) -> None:
    process.kill()
    process.wait_for_state()
    process.end()


def _is_gone(pid: int, folder: Path) -> bool:
    return not is_postmaster(pid, folder / "postgres")


def _wait_until_gone(pid: int, folder: Path) -> None:
    wait_until(lambda: _is_gone(pid, folder), "the server is gone")


def _socket_dir(running: RunningPostgres) -> Path:
    return Path(parse_qs(urlsplit(running.url).query)["host"][0])


def _fetch(url: str, statement: str) -> object:
    with connect_sync(url) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def test_a_fresh_folder_gets_a_durable_unicode_database(fresh_server: RunningPostgres) -> None:
    shown = {
        name: _fetch(fresh_server.url, f"SHOW {name}")
        for name in ("server_encoding", "data_checksums", "fsync", "synchronous_commit", "full_page_writes")
    }
    assert shown == {
        "server_encoding": "UTF8",
        "data_checksums": "on",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
    }
    assert _fetch(fresh_server.url, "SELECT datlocale FROM pg_database WHERE datname = 'wallet'") == "C.UTF-8"


def test_what_was_written_is_there_after_a_restart(made_folder: Path) -> None:
    running = postgres.start(made_folder, _quiet)
    with connect_sync(running.url) as connection:
        connection.execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)")
    running.stop()

    again = postgres.start(made_folder, _quiet)

    assert _fetch(again.url, "SELECT id FROM kept") == 7
    again.stop()


def test_the_services_role_is_no_superuser_and_cannot_read_files(fresh_server: RunningPostgres) -> None:
    assert _fetch(fresh_server.url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        _fetch(fresh_server.url, "SELECT pg_read_file('/etc/passwd')")


def test_nobody_gets_in_without_the_password_or_over_the_network(
    fresh_folder: Path, fresh_server: RunningPostgres
) -> None:
    password = (fresh_folder / "postgres.password").read_text().strip()

    for wrong in (
        fresh_server.url.replace(password, "guess"),
        fresh_server.url.replace(f":{password}", ""),
        fresh_server.url.replace("wallet:", "postgres:"),
    ):
        with pytest.raises(psycopg.OperationalError):
            connect_sync(wrong)
    assert _fetch(fresh_server.url, "SHOW listen_addresses") == ""


def test_secrets_and_the_socket_are_closed_to_others(
    fresh_folder: Path, fresh_server: RunningPostgres
) -> None:
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (
            fresh_folder / "postgres.password",
            fresh_folder / "postgres.log",
            fresh_folder / "postgres",
            _socket_dir(fresh_server),
        )
    ]
    assert modes == [0o600, 0o600, 0o700, 0o700]


def test_a_folder_with_a_space_and_a_very_long_name_works(tmp_path: Path) -> None:
    folder = tmp_path / "my wallet's, folder" / ("long" * 50)

    running = postgres.start(folder, _quiet)

    assert _fetch(running.url, "SELECT 1") == 1
    running.stop()


def test_stopping_ends_the_server_and_removes_its_socket_folder(made_folder: Path) -> None:
    running = postgres.start(made_folder, _quiet)
    socket_dir = _socket_dir(running)
    assert socket_dir.exists()

    running.stop()

    assert _is_gone(running.pid, made_folder)
    assert not socket_dir.exists()
    running.stop()


def test_stopping_does_not_wait_for_idle_sessions(made_folder: Path) -> None:
    running = postgres.start(made_folder, _quiet)
    with connect_sync(running.url) as idle:
        running.stop()
        with pytest.raises(psycopg.OperationalError):
            idle.execute("SELECT 1")


def test_a_server_that_does_not_stop_in_time_is_told_so_and_shut_down_at_once(made_folder: Path) -> None:
    said: list[str] = []
    running = postgres.start(made_folder, said.append)
    # A stopped session can't follow the server's request to end.
    with connect_sync(running.url) as connection:
        session_pid = connection.info.backend_pid
        os.kill(session_pid, signal.SIGSTOP)

        running.stop(timeout_s=0.3)

    assert _is_gone(running.pid, made_folder)
    assert any("immediate shutdown" in line for line in said)


def test_a_second_start_on_the_same_folder_is_refused_and_names_the_first(made_folder: Path) -> None:
    process, pid, url = _start_ordinary_up(made_folder)

    with pytest.raises(AlreadyRunning, match=str(process.pid)) as refused:
        postgres.start(made_folder, _quiet)

    assert refused.value.pid == process.pid
    assert _fetch(url, "SELECT 1") == 1
    process.communicate("\n")
    assert _is_gone(pid, made_folder)


def test_a_server_that_outlived_its_killed_owner_is_taken_over_and_stopped(made_folder: Path) -> None:
    process, pid, url = _start_up(made_folder)
    _kill(process)
    assert not _is_gone(pid, made_folder)
    said: list[str] = []

    running = postgres.start(made_folder, said.append)

    assert (running.pid, running.url) == (pid, url)
    assert "taking over" in said[0]
    assert _fetch(running.url, "SELECT 1") == 1
    running.stop()
    assert _is_gone(pid, made_folder)
    assert not _socket_dir(running).exists()


def test_a_server_whose_socket_was_swept_away_is_started_anew(made_folder: Path) -> None:
    process, pid, url = _start_up(made_folder)
    _kill(process)
    shutil.rmtree(parse_qs(urlsplit(url).query)["host"][0])

    running = postgres.start(made_folder, _quiet)

    assert running.pid != pid
    assert _fetch(running.url, "SELECT 1") == 1
    running.stop()


def test_a_killed_server_recovers_what_was_committed(made_folder: Path) -> None:
    process, pid, url = _start_up(made_folder)
    with connect_sync(url) as connection:
        connection.execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (7)")
    old_socket_dir = Path(parse_qs(urlsplit(url).query)["host"][0])
    _kill(process)
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(pid, made_folder)

    running = postgres.start(made_folder, _quiet)

    assert _fetch(running.url, "SELECT id FROM kept") == 7
    assert not old_socket_dir.exists()
    running.stop()


def test_a_note_with_another_process_id_in_it_is_no_hindrance(made_folder: Path) -> None:
    process, pid, _ = _start_up(made_folder)
    _kill(process)
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(pid, made_folder)
    note = made_folder / "postgres" / "postmaster.pid"
    owner = note.stat()
    # A process of the same user. For another user's process, PostgreSQL itself knows that it is not its own.
    drop = become(Account(owner.st_uid, owner.st_gid), keep_search=False) if IS_ROOT else None
    bystander = subprocess.Popen(["sleep", "300"], preexec_fn=drop)
    note.write_text("\n".join([str(bystander.pid), *note.read_text().splitlines()[1:]]) + "\n")

    running = postgres.start(made_folder, _quiet)

    assert _fetch(running.url, "SELECT 1") == 1
    assert bystander.poll() is None
    running.stop()
    bystander.kill()
    bystander.wait()


def test_a_start_that_broke_off_is_made_anew(open_folder: Path) -> None:
    (open_folder / "postgres.new").mkdir(parents=True)
    (open_folder / "postgres.new" / "PG_VERSION").write_text("18")

    running = postgres.start(open_folder, _quiet)

    assert _fetch(running.url, "SELECT 1") == 1
    assert not (open_folder / "postgres.new").exists()
    running.stop()


def test_a_process_that_ends_without_stopping_leaves_no_server(made_folder: Path) -> None:
    process, pid, _ = _start_ordinary_up(made_folder)

    process.communicate("\n")

    assert process.returncode == 0
    assert _is_gone(pid, made_folder)


def test_the_terminals_interrupt_does_not_reach_the_server(fresh_server: RunningPostgres) -> None:
    assert os.getsid(fresh_server.pid) == fresh_server.pid
    assert os.getpgid(fresh_server.pid) != os.getpgid(0)


def test_a_server_that_cannot_start_says_why_and_frees_the_folder(made_folder: Path) -> None:
    postgres.start(made_folder, _quiet).stop()

    with pytest.raises(PostgresError, match="max_connections"):
        postgres.start(made_folder, _quiet, overrides={"max_connections": "none"})

    postgres.start(made_folder, _quiet).stop()


def test_a_running_server_is_found_by_its_folder(made_folder: Path) -> None:
    assert postgres.locate(made_folder) is None

    process, pid, url = _start_up(made_folder)
    assert postgres.locate(made_folder) == url

    _kill(process)
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(pid, made_folder)
    assert postgres.locate(made_folder) is None


def test_a_stopped_server_is_not_found(made_folder: Path) -> None:
    postgres.start(made_folder, _quiet).stop()

    assert postgres.locate(made_folder) is None


def test_a_dead_process_and_a_foreign_one_are_no_server(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)

    assert folder.live_pid() is None
    assert not is_postmaster(os.getpid(), folder.cluster)
    assert not is_postmaster(0, folder.cluster)


def test_each_side_has_a_role_that_is_not_the_owner(
    fresh_folder: Path, fresh_server: RunningPostgres
) -> None:
    urls = (fresh_server.url, fresh_server.web_url, fresh_server.worker_url)
    assert [_fetch(url, "SELECT current_user") for url in urls] == ["wallet", "wallet_web", "wallet_worker"]
    passwords = {path.name: path.read_text() for path in fresh_folder.glob("postgres.*password")}
    assert sorted(passwords) == [
        "postgres.backup.password",
        "postgres.password",
        "postgres.web.password",
        "postgres.worker.password",
    ]
    assert len(set(passwords.values())) == 4
    assert {stat.S_IMODE((fresh_folder / name).stat().st_mode) for name in passwords} == {0o600}
    rights = "rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls"
    for url in urls[1:]:
        assert _fetch(url, f"SELECT {rights} FROM pg_roles WHERE rolname = current_user") is False
        assert _fetch(url, "SELECT pg_has_role('wallet', 'member')") is False
        assert not any(password.strip() in _log(fresh_folder) for password in passwords.values())


def _log(folder: Path) -> str:
    return (folder / "postgres.log").read_text()


def test_a_start_that_broke_off_while_it_made_the_roles_is_made_up_for(made_folder: Path) -> None:
    postgres.start(made_folder, _quiet).stop()
    # The role exists, but its password was not stored yet.
    (made_folder / "postgres.worker.password").unlink()

    again = postgres.start(made_folder, _quiet)

    assert _fetch(again.worker_url, "SELECT current_user") == "wallet_worker"
    assert _fetch(again.web_url, "SELECT current_user") == "wallet_web"
    again.stop()
