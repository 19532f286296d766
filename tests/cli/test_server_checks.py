"""`doctor` about servers, programs and disks: each fault that an auditor would name, as tables."""

import asyncio
from ipaddress import ip_network
from pathlib import Path

import psycopg
from tests.clusters import lone_cluster
from tests.rows import each_row

from merchant_wallet.base.connection_limits import COMMANDS, SERVE_CONNECTIONS, WORK_CONNECTIONS
from merchant_wallet.base.db import connect
from merchant_wallet.cli.findings import fetch
from merchant_wallet.cli.server_checks import (
    Limit,
    Standby,
    judge_connections,
    judge_disks,
    judge_durability,
    judge_program_clocks,
    judge_programs,
    judge_session_defaults,
    judge_sources,
    judge_standbys,
    judge_texts,
    judge_tls,
)

GOOD = {"fsync": "on", "full_page_writes": "on", "data_checksums": "on", "synchronous_standby_names": ""}
GIB = 2**30


@each_row(
    ("host", "is_encrypted", "mode", "is_live", "word"),
    [
        ("/run/postgresql", False, "prefer", True, "ok"),
        ("127.0.0.1", False, "prefer", True, "ok"),
        ("db.internal", False, "prefer", True, "wrong"),
        ("db.internal", False, "prefer", False, "hint"),
        ("db.internal", True, "require", True, "hint"),
        ("db.internal", True, "verify-full", True, "ok"),
    ],
)
def test_books_cross_a_network_only_encrypted_and_to_a_proven_server(
    host: str, is_encrypted: bool, mode: str, is_live: bool, word: str
) -> None:
    assert judge_tls(host, is_encrypted, mode, is_live=is_live).word == word


@each_row(
    ("encoding", "is_ordered", "word"),
    [
        ("UTF8", True, "ok"),
        # A dump of the own PostgreSQL, restored into a database with another order.
        ("UTF8", False, "hint"),
        ("LATIN1", True, "wrong"),
        ("SQL_ASCII", False, "wrong"),
    ],
)
def test_the_database_stores_every_script_and_finds_a_beginning(
    encoding: str, is_ordered: bool, word: str
) -> None:
    assert judge_texts(encoding, "en_US.UTF-8", is_ordered=is_ordered).word == word


@each_row(
    ("default", "word", "said"),
    [
        (("work_mem", "64MB", "this database"), "ok", "no default of the database or of a role is replaced"),
        (("statement_timeout", "5s", "role wallet_web"), "ok", "statement_timeout = 5s (role wallet_web)"),
        (("default_transaction_read_only", "off", "this database"), "ok", "no default"),
        (("default_transaction_read_only", "on", "role wallet"), "hint", "no default"),
    ],
)
def test_defaults_are_named_with_whom_they_concern(
    default: tuple[str, str, str], word: str, said: str
) -> None:
    finding = judge_session_defaults([default])
    assert finding.word == word
    assert said in finding.text
    if word == "hint":
        assert "default_transaction_read_only is on for role wallet, and this is kept" in str(finding.hint)


@each_row(
    ("changed", "is_live", "word"),
    [
        ({}, True, "ok"),
        ({"fsync": "off"}, True, "wrong"),
        ({"full_page_writes": "off"}, True, "wrong"),
        ({"fsync": "off"}, False, "hint"),
        ({"data_checksums": "off"}, True, "hint"),
    ],
)
def test_a_commit_must_survive_a_crash(changed: dict[str, str], is_live: bool, word: str) -> None:
    assert judge_durability(GOOD | changed, is_live=is_live).word == word


@each_row(
    ("names", "standbys", "is_live", "word", "said"),
    [
        ("", [], True, "hint", "back-ups are all that is left"),
        ("", [], False, "ok", "none"),
        ("ANY 1 (b, c)", [], True, "wrong", "commits wait for a synchronous standby"),
        ("ANY 1 (b, c)", [Standby("d", "async", 4)], True, "wrong", "none is connected"),
        ("", [Standby("b", "async", 4)], True, "hint", "may lose the last operations"),
        ("ANY 1 (b, c)", [Standby("b", "quorum", 4)], True, "ok", "b (quorum, 4 ms behind)"),
    ],
)
def test_a_failover_must_not_lose_what_was_answered(
    names: str, standbys: list[Standby], is_live: bool, word: str, said: str
) -> None:
    finding = judge_standbys(names, standbys, is_live=is_live)
    assert finding.word == word
    assert said in finding.text


@each_row(
    ("names", "standbys", "is_live", "word"),
    [
        ("", [Standby("b", "async", 4)], True, "wrong"),
        ("", [], False, "wrong"),
        ("ANY 1 (b, c)", [Standby("b", "quorum", 4)], True, "ok"),
    ],
)
def test_who_names_several_hosts_for_a_failover_needs_a_synchronous_standby(
    names: str, standbys: list[Standby], is_live: bool, word: str
) -> None:
    assert judge_standbys(names, standbys, is_live=is_live, hosts=3).word == word


def test_programs_of_two_versions_are_named() -> None:
    assert judge_programs([], "2.0").text == "none runs"
    assert judge_programs([("web", "2.0"), ("web", "2.0"), ("worker", "2.0")], "2.0").word == "ok"
    mixed = judge_programs([("web", "1.0"), ("web", "2.0")], "2.0")
    assert (mixed.word, mixed.text) == ("hint", "web 1 × 1.0, web 1 × 2.0; this command is 2.0")
    assert judge_programs([("web", "1.0")], "2.0").word == "hint"


def test_a_side_that_nobody_runs_is_missed() -> None:
    assert "nothing is paid" in str(judge_programs([("web", "2.0")], "2.0").hint)
    assert "no answer" in str(judge_programs([("worker", "2.0")], "2.0").hint)


@each_row(
    ("ahead_ms", "word"),
    [(None, "ok"), (0, "ok"), (1_000, "ok"), (1_001, "wrong"), (-3_600_000, "wrong")],
)
def test_a_program_whose_clock_differs_from_the_databases_is_named(ahead_ms: int | None, word: str) -> None:
    finding = judge_program_clocks([("web 1.0 on near (pid 3)", 5), ("web 1.0 on far (pid 7)", ahead_ms)])
    assert finding.word == word
    assert "near" not in finding.text
    if ahead_ms == -3_600_000:
        assert finding.text == "web 1.0 on far (pid 7) is 3600 s behind the database"


def test_the_server_has_room_for_the_programs_that_run() -> None:
    needed = 2 * SERVE_CONNECTIONS + WORK_CONNECTIONS + COMMANDS
    sides = {"web": 2, "worker": 1}
    assert judge_connections(sides, most=needed, used=10).word == "ok"
    assert judge_connections(sides, most=needed - 1, used=10).word == "hint"
    assert judge_connections({}, most=100, used=91).word == "wrong"


@each_row(
    ("limit", "word", "said"),
    [
        (Limit("role", "work", "worker", WORK_CONNECTIONS, 10), "ok", "need up to"),
        (Limit("role", "work", "worker", 40, 10), "hint", "the role work has 10 of 40, and needs up to 57"),
        (Limit("role", "work", "worker", 10, 10), "wrong", "`alter role work connection limit 57`"),
        (Limit("database", "pay", None, 100, 10), "hint", "`alter database pay connection limit 137`"),
    ],
)
def test_a_role_or_a_database_may_have_fewer_sessions_than_the_server(
    limit: Limit, word: str, said: str
) -> None:
    # Starved of sessions, a program can't say that it runs.
    for running in ({"web": 1, "worker": 1}, {}):
        finding = judge_connections(running, 400, 20, [limit])
        assert finding.word == word
        assert said in f"{finding.text} {finding.advice} {finding.hint}"


def test_sessions_of_other_roles_are_counted_without_a_right_to_look_at_them() -> None:
    with lone_cluster() as server, psycopg.connect(server.url()), psycopg.connect(server.url()):
        server.execute("create role plain login")

        async def count() -> int:
            async with await connect(server.url().replace("postgres@", "plain@")) as conn:
                return int((await fetch(conn, "count_connections"))[0][1])

        assert asyncio.run(count()) >= 3


@each_row(
    ("free", "total", "word"),
    [(50, 100, "ok"), (10, 100, "hint"), (4, 100, "wrong"), (0.5, 2, "wrong"), (3, 10, "ok")],
)
def test_a_full_disk_is_seen_before_it_is_full(free: float, total: float, word: str) -> None:
    found = judge_disks({Path("/srv"): (int(free * GIB), int(total * GIB))})
    assert (found.word, found.text) == (word, f"/srv has {free:.1f} GiB free, {free / total:.0%}")


def test_nothing_is_said_of_folders_that_are_not_there() -> None:
    assert judge_disks({}).text == "no folder yet"


def test_where_requests_come_from_shows_what_is_wrong_with_a_proxy() -> None:
    trusted = (ip_network("10.0.0.0/8"),)
    sound = judge_sources([("192.0.2.7", 5, 1), ("198.51.100.7", 2, 2)], trusted)
    assert (sound.word, sound.text) == ("ok", "7 requests of the last day came from 2 addresses")
    assert judge_sources([], trusted).word == "ok"
    unread = judge_sources([("192.0.2.7", 5, 1), ("::", 2, 1)], trusted)
    assert (unread.word, unread.text[:40]) == ("wrong", "2 of 7 requests of the last day have no ")
    silent = judge_sources([("192.0.2.7", 5, 1), ("10.0.0.5", 2, 1)], trusted)
    assert silent.word == "hint"
    assert "2 of 7 requests of the last day came from 10.0.0.5, a trusted proxy" in silent.text
    unnamed = judge_sources([("10.0.0.5", 9, 2)], ())
    assert unnamed.word == "hint"
    assert "WALLET_TRUSTED_PROXIES" in str(unnamed.hint)
    assert judge_sources([("10.0.0.5", 9, 1)], ()).word == "ok"
    in_front = judge_sources([("192.0.2.7", 5, 1), ("172.16.0.4", 9, 2)], trusted)
    assert (in_front.word, in_front.text) == ("hint", "requests of 2 merchants came from 172.16.0.4")
