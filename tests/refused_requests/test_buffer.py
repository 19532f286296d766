"""Each merchant's last refused requests: what is stored, for how long, and what is never stored."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from psycopg import AsyncConnection
from tests.crash.shop import open_merchant, run
from tests.rows import each_row
from tests.waits import eventually

from merchant_wallet.api.refused_requests.buffer import KEPT, QUERIES, RefusedRequestBuffer
from merchant_wallet.api.refused_requests.listing import RefusedRequest, list_refused
from merchant_wallet.api.refused_requests.redaction import CapturedRequest, read_fields
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import connect
from merchant_wallet.merchants.records import Merchant

PATH = "/merchant/getMerchantBalance"
WRONG = Refusal(40101, "sign does not match the request")
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@dataclass
class Sent:
    """A request as an endpoint sees it."""

    app_key: str
    request_id: str = "req_1"
    source: str = "192.0.2.7"
    content_type: str | None = JSON
    body: bytes = b"{}"
    merchant_id: int | None = None


@asynccontextmanager
async def open_buffer(
    url: str, *, max_waiting: int = 1000
) -> AsyncIterator[tuple[RefusedRequestBuffer, AsyncConnection]]:
    """A buffer whose clock stands still and that writes on demand, and a connection to read with."""
    buffer = RefusedRequestBuffer(partial(connect, url), clock=lambda: 1763712000000, max_waiting=max_waiting)
    async with await connect(url) as conn:
        yield buffer, conn
    await buffer.stop()


async def open_merchants(url: str, *names: str) -> list[Merchant]:
    return [(await open_merchant(url, name)).merchant for name in names]


async def listed(conn: AsyncConnection, merchant: Merchant) -> list[RefusedRequest]:
    return await list_refused(conn, merchant.merchant_id)


def ids(found: list[RefusedRequest]) -> list[str]:
    return [each.request_id for each in found]


def test_a_refused_request_is_kept_with_reason_source_and_fields_in_their_order(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        body = (
            b'{"timestamp":1763712000000,"appKey":"demo","nonceStr":"n1","amount":1.50,"sign":"'
            + b"a" * 32
            + b'"}'
        )
        async with open_buffer(database_url) as (buffer, conn):
            buffer.add(PATH, WRONG, Sent(shop.app_key, body=body))
            assert await listed(conn, shop) == []
            await buffer.flush()
            (kept,) = await listed(conn, shop)
            assert (kept.path, kept.code, kept.msg) == (PATH, 40101, WRONG.msg)
            assert (kept.at_ms, kept.request_id, kept.source) == (1763712000000, "req_1", "192.0.2.7")
            assert list(kept.fields.items()) == [
                ("timestamp", "1763712000000"),
                ("appKey", "demo"),
                ("nonceStr", "n1"),
                ("amount", "1.50"),
                ("sign", "aaaaaaaa"),
            ]
            assert kept.left_out == ["sign"]
            signed = f"{PATH}\namount=1.50\nappKey=demo\nnonceStr=n1\ntimestamp=1763712000000"
            assert kept.signed_text("HMAC") == signed
            assert kept.signed_text("MD5") == "amount=1.50&appKey=demo&nonceStr=n1&timestamp=1763712000000"

    run(scenario())


@each_row(
    ("content_type", "body", "fields", "left_out"),
    [
        (JSON, b'{"a":"1","b":null,"c":"","d":[1]}', '{"a":"1","d":null}', ()),
        (FORM, b"a=1+2&b=%26&c=", '{"a":"1 2","b":"&"}', ()),
        (JSON, b'{"a":"x\\u0000y"}', '{"a":"x\\u0000y"}', ()),
        (JSON, b'{"appSecret":"s3"}', '{"appSecret":null}', ("appSecret",)),
        (JSON, b'{"key":"s3","pinCode":"1"}', '{"key":null,"pinCode":null}', ("key", "pinCode")),
        (JSON, b'{"sign":5}', '{"sign":"5"}', ("sign",)),
        (JSON, b'{"sign":[5]}', '{"sign":null}', ()),
        (JSON, b'{"appKey":"k","shipping":"s"}', '{"appKey":"k","shipping":"s"}', ()),
        (JSON, b"{", "{}", ()),
        ("text/plain", b"a", "{}", ()),
    ],
)  # fmt: skip
def test_what_is_kept_of_a_body(
    content_type: str, body: bytes, fields: str, left_out: tuple[str, ...]
) -> None:
    note = CapturedRequest("k", 1, "r", PATH, 40101, "m", "s", content_type, body)
    assert read_fields(note) == (fields, left_out)
    assert "s3" not in repr(note)


def test_a_request_of_which_a_field_was_left_out_has_no_text_to_sign(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        async with open_buffer(database_url) as (buffer, conn):
            for body in (b'{"a":"1","secret":"s"}', b'{"a":[1]}', b'{"a":"\\u0000"}'):
                buffer.add(PATH, WRONG, Sent(shop.app_key, body=body))
            await buffer.flush()
            texts = [each.signed_text("HMAC") for each in await listed(conn, shop)]
            assert texts == [f"{PATH}\na=\0", None, None]

    run(scenario())


def test_each_merchant_keeps_its_own_last_hundred(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_merchants(database_url, "Shop", "Other")
        async with open_buffer(database_url) as (buffer, conn):
            buffer.add(PATH, WRONG, Sent(other.app_key, "other"))
            for batch in range(3):
                for number in range(60):
                    buffer.add(PATH, WRONG, Sent(shop.app_key, f"r{batch * 60 + number}"))
                await buffer.flush()
            assert ids(await listed(conn, shop)) == [f"r{number}" for number in range(179, 79, -1)]
            assert ids(await listed(conn, other)) == ["other"]
            rows = await (await conn.execute("select count(*) from refused_request")).fetchone()
            assert rows == (KEPT + 1,)
            assert buffer.dropped == 0

    run(scenario())


def test_unsigned_requests_of_a_known_key_push_out_no_signed_one(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        async with open_buffer(database_url, max_waiting=120) as (buffer, conn):
            buffer.add(PATH, Refusal(42200, "insufficient balance"), Sent(shop.app_key, "own", merchant_id=1))
            for number in range(230):
                buffer.add(PATH, WRONG, Sent(shop.app_key, f"r{number}"))
                if number % 115 == 114:
                    await buffer.flush()
            assert ids(await listed(conn, shop))[:2] == ["r229", "r228"]
            signed = await list_refused(conn, shop.merchant_id, is_signed=True)
            unsigned = await list_refused(conn, shop.merchant_id, is_signed=False)
            assert ids(signed) == ["own"]
            assert len(unsigned) == KEPT

    run(scenario())


def test_an_unknown_key_is_nobodys(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        async with open_buffer(database_url) as (buffer, conn):
            buffer.add(PATH, WRONG, Sent("nobody"))
            buffer.add(PATH, WRONG, Sent(shop.app_key))
            await buffer.flush()
            rows = await (await conn.execute("select merchant_id from refused_request")).fetchall()
            assert rows == [(shop.merchant_id,)]

    run(scenario())


def test_a_flood_of_one_merchant_costs_that_merchants_oldest(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_merchants(database_url, "Shop", "Other")
        async with open_buffer(database_url) as (buffer, conn):
            buffer.add(PATH, WRONG, Sent(other.app_key, "other"))
            for number in range(KEPT + 30):
                buffer.add(PATH, WRONG, Sent(shop.app_key, f"r{number}"))
            assert buffer.dropped == 30
            await buffer.flush()
            assert ids(await listed(conn, shop)) == [f"r{number}" for number in range(KEPT + 29, 29, -1)]
            assert ids(await listed(conn, other)) == ["other"]

    run(scenario())


def test_what_waits_is_bounded_over_all_merchants(database_url: str) -> None:
    async def scenario() -> None:
        shop, other, third = await open_merchants(database_url, "Shop", "Other", "Third")
        async with open_buffer(database_url, max_waiting=4) as (buffer, conn):
            for merchant, name in ((shop, "s1"), (shop, "s2"), (other, "o1"), (other, "o2")):
                buffer.add(PATH, WRONG, Sent(merchant.app_key, name))
            buffer.add(PATH, WRONG, Sent(other.app_key, "o3"))
            buffer.add(PATH, WRONG, Sent(third.app_key, "t1"))
            buffer.add(PATH, WRONG, Sent(third.app_key, "t2"))
            assert buffer.dropped == 3
            await buffer.flush()
            found = [ids(await listed(conn, merchant)) for merchant in (shop, other, third)]
            assert found == [["s2"], ["o3", "o2"], ["t2"]]

    run(scenario())


def test_while_the_database_is_away_notes_are_dropped_and_later_ones_kept(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        away = True

        async def connect_or_not() -> AsyncConnection:
            if away:
                raise psycopg.OperationalError("away")
            return await connect(database_url)

        buffer = RefusedRequestBuffer(connect_or_not)
        buffer.add(PATH, WRONG, Sent(shop.app_key, "lost"))
        await buffer.flush()
        assert buffer.dropped == 1
        away = False
        buffer.add(PATH, WRONG, Sent(shop.app_key, "kept"))
        await buffer.stop()
        async with await connect(database_url) as conn:
            assert ids(await listed(conn, shop)) == ["kept"]

    run(scenario())


def test_while_somebody_holds_the_turn_for_long_notes_are_dropped_and_later_ones_kept(
    database_url: str,
) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        async with open_buffer(database_url) as (buffer, conn):
            async with await connect(database_url) as other, other.transaction():
                await other.execute(QUERIES["lock_writers"].text)
                buffer.add(PATH, WRONG, Sent(shop.app_key, "lost"))
                await buffer.flush()
                assert buffer.dropped == 1
            buffer.add(PATH, WRONG, Sent(shop.app_key, "kept"))
            await buffer.flush()
            assert ids(await listed(conn, shop)) == ["kept"]

    run(scenario())


def test_a_write_that_is_under_way_is_finished_before_the_end(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        begun, may_connect = asyncio.Event(), asyncio.Event()

        async def connect_late() -> AsyncConnection:
            begun.set()
            await may_connect.wait()
            return await connect(database_url)

        buffer = RefusedRequestBuffer(connect_late, interval_s=0.001)
        buffer.start()
        buffer.add(PATH, WRONG, Sent(shop.app_key, "first"))
        await begun.wait()
        buffer.add(PATH, WRONG, Sent(shop.app_key, "second"))
        stopping = asyncio.create_task(buffer.stop())
        await asyncio.sleep(0)
        may_connect.set()
        await stopping
        async with await connect(database_url) as conn:
            assert ids(await listed(conn, shop)) == ["second", "first"]
        assert buffer.dropped == 0

    run(scenario())


def test_odd_headers_cost_nobody_a_note(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        async with open_buffer(database_url) as (buffer, conn):
            odd = Sent(shop.app_key, "odd", "\0\ud800", f"{JSON}; x={'y' * 200}\0")
            buffer.add(PATH, Refusal(40005, "address: \0"), odd)
            buffer.add(PATH, WRONG, Sent(shop.app_key, "plain"))
            await buffer.flush()
            plain, kept = await listed(conn, shop)
            assert (plain.request_id, kept.request_id) == ("plain", "odd")
            assert (kept.source, kept.msg, len(kept.content_type)) == ("?", "address: ", 100)
            assert buffer.dropped == 0

    run(scenario())


def test_many_processes_write_at_once_and_keep_a_hundred_together(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_merchants(database_url, "Shop", "Other")
        buffers = [RefusedRequestBuffer(partial(connect, database_url)) for _ in range(4)]
        for number in range(KEPT):
            for place, buffer in enumerate(buffers):
                for merchant in (shop, other) if place % 2 else (other, shop):
                    buffer.add(PATH, WRONG, Sent(merchant.app_key, f"{place}.{number}"))
        await asyncio.gather(*(buffer.flush() for buffer in buffers))
        async with await connect(database_url) as conn:
            for merchant in (shop, other):
                assert len(await listed(conn, merchant)) == KEPT
            assert await (await conn.execute("select count(*) from refused_request")).fetchone() == (
                2 * KEPT,
            )
        assert [buffer.dropped for buffer in buffers] == [0] * 4
        for buffer in buffers:
            await buffer.stop()

    run(scenario())


def test_what_is_noted_is_written_without_being_asked(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        buffer = RefusedRequestBuffer(partial(connect, database_url), interval_s=0.01)
        buffer.start()
        buffer.add(PATH, WRONG, Sent(shop.app_key))
        async with await connect(database_url) as conn:
            assert len(await eventually(lambda: listed(conn, shop))) == 1
        await buffer.stop()

    run(scenario())


def test_a_list_has_at_most_a_hundred(database_url: str) -> None:
    async def scenario() -> None:
        (shop,) = await open_merchants(database_url, "Shop")
        async with open_buffer(database_url) as (buffer, conn):
            for number in range(5):
                buffer.add(PATH, WRONG, Sent(shop.app_key, f"r{number}"))
            await buffer.flush()
            first = await list_refused(conn, shop.merchant_id, limit=2)
            rest = await list_refused(conn, shop.merchant_id, before_no=first[-1].refused_no)
            assert ids(first + rest) == ["r4", "r3", "r2", "r1", "r0"]
            for wrong in (0, KEPT + 1):
                with pytest.raises(ValueError, match="page"):
                    await list_refused(conn, shop.merchant_id, limit=wrong)

    run(scenario())
