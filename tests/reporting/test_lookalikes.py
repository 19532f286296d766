"""Which known addresses a new one looks like: recipients are found along an index, whatever lies between."""

import pytest
from tests.reporting.conftest import TRON_ADDRESS, ReportingScene

from merchant_wallet.base.lookalikes import looks_like
from merchant_wallet.reporting import lookalikes
from merchant_wallet.reporting.lookalikes import Known, Lookalike, NewAddress, find_lookalikes

pytestmark = pytest.mark.anyio

HEAD, TAIL = TRON_ADDRESS[:5], TRON_ADDRESS[-4:]


def between(character: str, head: str = HEAD, tail: str = TAIL) -> str:
    """A text that begins and ends so. The book takes any."""
    return head + character * 25 + tail


async def test_a_paid_recipient_is_found_among_others_that_begin_alike(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    for _ in range(2):
        await scene.settle(shop, await scene.order(shop, address=between("m")))
    # Another end, other letters, another merchant, not paid yet, and the address itself.
    others = between("a", tail="1111"), between("b", head=HEAD.swapcase()), between("z", tail="2222")
    for address in (*others, TRON_ADDRESS):
        await scene.settle(shop, await scene.order(shop, address=address))
    await scene.settle(stall, await scene.order(stall, address=between("c")))
    await scene.order(shop, address=between("n"))
    new = NewAddress(shop, TRON_ADDRESS)
    expected = {new: [Lookalike(Known.PAID, between("m"), 2)]}
    assert await find_lookalikes(scene.conn, scene.cells, [new], None) == expected
    # It jumps over so many recipients, and no further.
    monkeypatch.setattr(lookalikes, "MAX_RECIPIENTS", 1)
    assert await find_lookalikes(scene.conn, scene.cells, [new], None) == {}


async def test_the_old_copy_of_a_book_that_moved_is_not_asked(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    await scene.settle(shop, await scene.order(shop, address=between("m")))
    await scene.conn.execute("update book set is_open = false where merchant_id = %s", (shop,))
    assert await find_lookalikes(scene.conn, scene.cells, [NewAddress(shop, TRON_ADDRESS)], None) == {}


async def test_a_long_allow_list_is_not_compared_with_each_address_that_is_added_to_it(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await scene.open_shop("Shop")
    ends = [f"{number:04x}" for number in range(100)]
    allowed, added = ([f"0x{end}{middle * 32}{end}" for end in ends] for middle in "ab")
    await scene.conn.execute(
        "update merchant set allowed_addresses = %s where merchant_id = %s", (allowed, shop)
    )
    compared = []

    def compare(address: str, known: str) -> bool:
        compared.append(known)
        return looks_like(address, known)

    monkeypatch.setattr(lookalikes, "looks_like", compare)
    new = [NewAddress(shop, address) for address in added]
    found = await find_lookalikes(scene.conn, scene.cells, new, None)
    assert found == {one: [Lookalike(Known.ALLOWED, known)] for one, known in zip(new, allowed, strict=True)}
    assert sorted(compared) == allowed, "not each with each"
