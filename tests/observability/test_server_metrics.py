"""What the metrics say of archiving, standbys and the certificate, and who reads the certificate."""

import asyncio
import time
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from tests.authority import Authority

from merchant_wallet.approvals.acts import reports
from merchant_wallet.base.db import connect
from merchant_wallet.base.outbound import PLAIN, Outbound
from merchant_wallet.base.settings import Settings
from merchant_wallet.observability.cell_figures import Sample
from merchant_wallet.observability.server_metrics import read_server
from merchant_wallet.processes.pages_certificate import make_certificate_reader, read_end_ms

NOW_MS = 1_790_000_000_000
# Views of a server that archives and replicates stand before the real ones.
SERVER = """
create temp table pg_stat_archiver as
select now() - interval '20 minutes' as last_archived_time, now() - interval '1 minute' as last_failed_time,
       now() as stats_reset;
create temp table pg_stat_replication as
select * from (values ('db2', 1, interval '90 seconds', '0/1'::pg_lsn), ('db3', 2, null, '0/1'),
                      ('pg_receivewal', 3, null, null)) v (application_name, pid, replay_lag, replay_lsn);
set search_path = pg_temp, public, pg_catalog
"""


def read(url: str, *statements: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """The samples after some statements of the same session."""

    async def run() -> list[Sample]:
        async with await connect(url) as connection:
            await store_certificate(connection)
            for statement in statements:
                await connection.execute(statement.encode())
            return await read_server(connection, NOW_MS, Settings())

    return {(name, labels): value for name, labels, value in asyncio.run(run())}


async def store_certificate(connection: AsyncConnection) -> None:
    """What a worker has read."""
    found = {"pages": {"endsMs": NOW_MS + 86_400_000}}
    await reports.store_reports(connection, reports.CERTIFICATE, found, "worker", NOW_MS)


def test_a_server_without_archiving_and_standbys_shows_none(database_url: str) -> None:
    assert read(database_url) == {("wallet_certificate_left_seconds", ()): 86_400}


def test_archiving_that_fails_and_standbys_that_lag_show_for_how_long(database_url: str) -> None:
    shown = read(database_url, SERVER)
    assert shown["wallet_archiver_behind_seconds", ()] == pytest.approx(1200, abs=60)
    assert shown["wallet_standby_lag_seconds", ("db2",)] == 90
    assert shown["wallet_standby_lag_seconds", ("db3",)] == 0
    assert len(shown) == 4, "who only receives WAL is no standby"
    mended = "update pg_temp.pg_stat_archiver set last_archived_time = now()"
    assert read(database_url, SERVER, mended)["wallet_archiver_behind_seconds", ()] == 0


def test_the_certificate_is_read_as_a_client_sees_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    now_s = time.time()

    async def run() -> tuple[int | None, int | None, int | None]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=authority.serve("localhost"))
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        trusted, unknown = await read_end_ms(url, Outbound(authority.file)), await read_end_ms(url, PLAIN)
        server.close()
        await server.wait_closed()
        return trusted, unknown, await read_end_ms(url, PLAIN)

    trusted, unknown, away = asyncio.run(run())
    assert trusted is not None
    assert trusted / 1000 == pytest.approx(now_s + 86_400, abs=60), "the authority issues for a day"
    assert unknown == 0
    assert away is None


def test_pages_without_tls_have_no_certificate() -> None:
    assert make_certificate_reader(Settings(public_url="http://127.0.0.1:8080")) is None
    assert make_certificate_reader(Settings(public_url="https://wallet.example.com")) is not None
