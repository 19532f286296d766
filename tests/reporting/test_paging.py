"""Page keys: what they contain, which are refused, and lists that are read to the end and back."""

import base64
import json

import pytest
from tests.reporting.conftest import COIN, ReportingScene
from tests.rows import each_row

from merchant_wallet.reporting import orders
from merchant_wallet.reporting.orders import OrderFilter, OrderLine
from merchant_wallet.reporting.paging import Key, Order, Page, decode_key, encode_key, reverse_order

ORDERS = Order("orders", ("at_ms", "name"), (0, ""))


def packed(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


@each_row("key", [Key((7, "a"), False), Key((2**63 - 1, "客户=/+"), True), Key((-1, ""), False)])
def test_a_key_comes_back_from_its_text_as_it_was(key: Key) -> None:
    text = encode_key(ORDERS, key)
    assert decode_key(ORDERS, text) == key
    assert text.isascii()
    assert not set(text) & set("=/+")


@each_row(
    "text",
    [
        "",
        "!",
        "a",
        "é",
        "AAAA",
        packed(),
        packed("orders"),
        packed("orders", False),
        packed("orders", False, 7),
        packed("orders", False, 7, "a", "b"),
        packed("orders", False, "7", "a"),
        packed("orders", False, 7, 8),
        packed("orders", False, True, "a"),
        packed("orders", False, 7.5, "a"),
        packed("orders", False, None, "a"),
        packed("orders", False, 2**63, "a"),
        packed("orders", False, 7, "a\0"),
        packed("orders", 0, 7, "a"),
        packed("entries", False, 7, "a"),
        packed(["orders"], False, 7, "a"),
    ],
)
def test_a_text_that_is_no_key_of_this_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="after is not a place in the list orders"):
        decode_key(ORDERS, text)


def test_a_query_turned_around_reads_the_other_way_and_turned_again_is_itself() -> None:
    text = "select a from t where b >= 1 and (a, b) < (%(key_0)s, %(key_1)s) order by a desc, b desc"
    turned = "select a from t where b >= 1 and (a, b) > (%(key_0)s, %(key_1)s) order by a asc, b asc"
    assert reverse_order(text) == turned
    assert reverse_order(turned) == text
    assert (
        reverse_order("(a) >= (%(key_0)s::text) order by a asc") == "(a) <= (%(key_0)s::text) order by a desc"
    )


async def walk(scene: ReportingScene, wanted: OrderFilter, *, sort: str, limit: int) -> list[Page[OrderLine]]:
    """All pages of a list, from first to last."""
    pages = [await orders.list_orders(scene.conn, scene.cells, wanted, sort=sort, limit=limit)]
    while (after := pages[-1].next) is not None:
        pages.append(
            await orders.list_orders(scene.conn, scene.cells, wanted, sort=sort, after=after, limit=limit)
        )
    return pages


@pytest.mark.anyio
@pytest.mark.parametrize("sort", ["created", "amount"])
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
async def test_a_list_walked_to_its_end_and_back_shows_every_row_once(
    scene: ReportingScene, sort: str, limit: int
) -> None:
    shops = [await scene.open_shop("Shop"), await scene.open_shop("Stall")]
    made = [await scene.order(shops[n % 2], (20 - n // 2) * COIN) for n in range(7)]
    await scene.settle(shops[0], made[2])
    by_amount = sorted(made, key=lambda order: (order.amount_units, order.order_id), reverse=True)
    expected = [order.order_id for order in (by_amount if sort == "amount" else reversed(made))]
    pages = await walk(scene, OrderFilter(), sort=sort, limit=limit)
    assert [line.order_id for page in pages for line in page.rows] == expected
    assert len(pages) == -(-7 // limit)
    assert pages[0].previous is None
    for before, page in zip(reversed(pages[:-1]), reversed(pages), strict=False):
        assert page.previous is not None
        back = await orders.list_orders(
            scene.conn, scene.cells, OrderFilter(), sort=sort, after=page.previous, limit=limit
        )
        assert back.rows == before.rows
        assert back.next == before.next


@pytest.mark.anyio
async def test_going_back_beyond_the_beginning_shows_the_first_page_whole(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    for _ in range(3):
        await scene.order(shop)
    first = await orders.list_orders(scene.conn, scene.cells, OrderFilter(), limit=2)
    second = await orders.list_orders(scene.conn, scene.cells, OrderFilter(), after=first.next, limit=2)
    await scene.order(shop)
    assert second.previous is not None
    back = await orders.list_orders(scene.conn, scene.cells, OrderFilter(), after=second.previous, limit=2)
    assert back.rows == first.rows
    again = await orders.list_orders(scene.conn, scene.cells, OrderFilter(), after=back.previous, limit=2)
    assert len(again.rows) == 2
    assert again.previous is None
    assert again.rows[0].order_id > first.rows[0].order_id


@pytest.mark.anyio
@pytest.mark.parametrize(("strides", "sizes"), [(1, [1, 0, 0, 1]), (2, [1, 0, 1]), (3, [1, 1])])
async def test_a_page_whose_filter_finds_little_says_where_it_stopped(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch, strides: int, sizes: list[int]
) -> None:
    monkeypatch.setattr("merchant_wallet.reporting.paging.STRIDE", 3)
    monkeypatch.setattr("merchant_wallet.reporting.paging.STRIDES", strides)
    shop = await scene.open_shop("Shop")
    made = [await scene.order(shop, (90 if n in (0, 9) else 10) * COIN) for n in range(10)]
    pages = await walk(scene, OrderFilter(min_units=50 * COIN), sort="created", limit=1)
    assert [len(page.rows) for page in pages] == sizes
    assert [line.order_id for page in pages for line in page.rows] == [made[9].order_id, made[0].order_id]
    back = pages[-1]
    found = []
    while back.previous is not None:
        back = await orders.list_orders(
            scene.conn, scene.cells, OrderFilter(min_units=50 * COIN), after=back.previous, limit=1
        )
        found += [line.order_id for line in back.rows]
    assert set(found) == {made[9].order_id}
    assert back.rows == pages[0].rows


@pytest.mark.anyio
@pytest.mark.parametrize("limit", [0, -1, 201])
async def test_a_page_is_bounded(scene: ReportingScene, limit: int) -> None:
    with pytest.raises(ValueError, match="limit is between 1 and 200"):
        await orders.list_orders(scene.conn, scene.cells, OrderFilter(), limit=limit)


@pytest.mark.anyio
async def test_the_key_of_another_order_is_refused(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    for _ in range(2):
        await scene.order(shop)
    page = await orders.list_orders(scene.conn, scene.cells, OrderFilter(), limit=1)
    with pytest.raises(ValueError, match="after is not a place in the list orders by amount"):
        await orders.list_orders(
            scene.conn, scene.cells, OrderFilter(), sort="amount", after=page.next, limit=1
        )
