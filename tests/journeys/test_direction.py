"""Ids whose characters would be displayed in another order are refused."""

import pytest
from tests.journeys.conftest import Shop
from tests.journeys.orders import credit, debit, exchange, withdrawal

CONTROLS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))


def test_a_new_id_holds_no_character_that_changes_the_direction_of_text(shop: Shop) -> None:
    alice, before = shop.user("alice", "50"), shop.entry_count()
    for number in CONTROLS:
        odd = f"10{chr(number)}01"
        for operation, fields in (
            ("transferFromUserToMerchant", debit(odd)),
            ("transferFromMerchantToUser", credit(odd, alice["address"])),
            ("createMerchantWithdrawOrder", withdrawal(odd)),
            ("exchange", exchange(mcOrderId=odd)),
        ):
            assert "mcOrderId" in shop.client.expect(40001, operation, **fields).msg
        assert "extUserId" in shop.client.expect(40001, "getMerchantCustomer", extUserId=odd).msg
        assert shop.entry_count() == before, hex(number)


@pytest.mark.parametrize("text", ["مرحبا-7", "שלום", "👩\u200d👩", "a\u200bb", "\u2065", "\u202f1"])
def test_letters_of_any_direction_are_accepted(text: str, shop: Shop) -> None:
    shop.user(text, "50")
    shop.client.do("transferFromUserToMerchant", **debit(text, ext_user_id=text))
    shop.client.do("exchange", **exchange(mcOrderId=text))


def test_records_with_such_an_id_can_still_be_read(shop: Shop) -> None:
    odd, order = "a\u202eb", shop.client.do("createMerchantWithdrawOrder", **withdrawal("1"))
    shop.user("alice", "50")
    # Such an id can exist from before this rule.
    shop.platform.rows("update sub_user set ext_user_id = %s where merchant_id = %s", odd, shop.merchant_id)
    shop.platform.rows(
        "update withdrawal set mc_order_id = %s where order_id = %s", odd, int(order["orderId"])
    )
    assert shop.client.do("getMerchantCustomer", extUserId=odd)["extUserId"] == odd
    shop.client.do("transferFromUserToMerchant", **debit("2", ext_user_id=odd))
    assert shop.client.do("queryOrder", orderId=order["orderId"], mcOrderId=odd)["mcOrderId"] == odd
