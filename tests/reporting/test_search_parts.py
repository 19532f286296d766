"""Search by what a page shows of a thing: beginnings, shortened forms, parts, amounts."""

import pytest
from tests.reporting.conftest import ReportingScene, evm_of
from tests.reporting.test_search import HASH, sign_payout

from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.reporting import search_parts
from merchant_wallet.reporting.search_parts import MAX_OF_A_KIND, find_parts
from merchant_wallet.web.templates import shorten

pytestmark = pytest.mark.anyio


async def find(scene: ReportingScene, text: str, merchant_id: int | None = None) -> set[tuple[str, int]]:
    return {
        (hit.kind, hit.merchant_id) for hit in await find_parts(scene.conn, scene.cells, text, merchant_id)
    }


async def test_beginnings_shortened_forms_parts_and_amounts_find_what_they_are_of(
    scene: ReportingScene,
) -> None:
    shop, stall = await scene.open_shop("Harbour Tea"), await scene.open_shop("Stall")
    alice = await scene.register(shop, "alice-in-town")
    order = await scene.order(shop)
    await sign_payout(scene, shop, order.order_id, HASH)
    deposit = "0x" + "cd" * 30 + "1234"
    await scene.add_deposit(shop, deposit, chain="ERC20")
    evm, number = to_eip55(evm_of(1)), str(order.order_id)
    ((tron,),) = await (
        await scene.conn.execute("select tron_address from sub_user where user_id = %s", (alice.user_id,))
    ).fetchall()
    tron_text, amount = to_tron(bytes(tron)), f"{order.amount_units / 1_000_000:,.2f}"
    expected = {
        "ali": ("sub-user", shop),
        "in-town": ("sub-user", shop),
        "IN-TOW": ("sub-user", shop),
        evm[:8]: ("sub-user", shop),
        evm[2:9].lower(): ("sub-user", shop),
        f"{evm[:8]}…{evm[-6:]}": ("sub-user", shop),
        f"{tron_text[:5]}...{tron_text[-3:]}": ("sub-user", shop),
        tron_text[:9]: ("sub-user", shop),
        number[: len(number) - 3]: ("order", shop),
        f"{number[:6]}…{number[-4:]}": ("order", shop),
        order.mc_order_id[:-1]: ("order", shop),
        HASH[:10]: ("order", shop),
        f"0x{HASH[:6]}…{HASH[-6:]}": ("order", shop),
        deposit[:9]: ("deposit", shop),
        f"{deposit[:8]}…{deposit[-6:]}": ("deposit", shop),
        order.address[:8]: ("address", shop),
        f"{order.address[:8]}…{order.address[-6:]}": ("address", shop),
        amount: ("order", shop),
        amount.replace(",", ""): ("order", shop),
        "arbour": ("merchant", shop),
    }
    for text, hit in expected.items():
        assert hit in await find(scene, text), text
        assert hit in await find(scene, text, shop), text
        assert await find(scene, text, stall) == set(), text
    for wrong in (f"{evm[:8]}…000000", f"{HASH[:8]}…000000", f"{number[:6]}…0000x", f"{deposit[:8]}…999999"):
        assert await find(scene, wrong) == set(), wrong


async def test_an_address_with_many_orders_is_one_result(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    orders = [await scene.order(shop) for _ in range(MAX_OF_A_KIND + 3)]
    hits = await find_parts(scene.conn, scene.cells, orders[0].address[:9])
    assert [(hit.kind, hit.label) for hit in hits] == [("address", orders[0].address)]


async def test_of_each_kind_there_are_only_so_many(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    for number in range(MAX_OF_A_KIND + 3):
        await scene.register(shop, f"player-{number}")
    assert len(await find_parts(scene.conn, scene.cells, "player-")) == MAX_OF_A_KIND
    assert len(await find_parts(scene.conn, scene.cells, "layer-")) == MAX_OF_A_KIND


@pytest.mark.parametrize(
    "text", ["", "%", "_", "'; drop table entry", "a", "…", "0x", "0xzz", "\\", "9" * 40, "x" * 129, "𝔘" * 5]
)
async def test_odd_texts_find_nothing_and_break_nothing(scene: ReportingScene, text: str) -> None:
    await scene.open_shop("Shop")
    assert await find_parts(scene.conn, scene.cells, text) == []


async def test_of_ids_that_begin_alike_only_so_many_are_compared_with_an_end(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_parts, "MAX_LOOKED", 3)
    shop = await scene.open_shop("Shop")
    users = [await scene.register(shop, f"player-{number}") for number in range(5)]
    for user in users:
        await scene.pay_out(shop, user, 1)
    orders = [await scene.order(shop) for _ in range(5)]
    names = [order.mc_order_id for order in orders]
    paid = [f"out-{int(names[0].removeprefix('w-')) - 5 + number}" for number in range(5)]
    for looked_at, beyond in (("player-…2", "player-…4"), (f"w-…{names[0][-1]}", f"w-…{names[4][-1]}")):
        assert len(await find(scene, looked_at)) == 1, looked_at
        assert await find(scene, beyond) == set(), beyond
    assert await find(scene, f"out-…{paid[0][-1]}") == {("entry", shop)}
    assert await find(scene, f"out-…{paid[3][-1]}") == set()
    assert await find(scene, names[4]) == {("order", shop)}, "what is typed completely is found"


def test_what_pages_shorten_is_found_by_its_shortened_form() -> None:
    assert "…" in shorten(HASH)
