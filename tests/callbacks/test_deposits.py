"""Callbacks about deposits: their content and their URL."""

from tests.callbacks.conftest import START_MS, CallbackScene, InScene, verify_sign

from merchant_wallet.base.addresses import to_tron
from merchant_wallet.book.commands import CreditDeposit, DepositKey
from merchant_wallet.book.outcomes import Credited
from merchant_wallet.merchants.store import NewMerchant


async def own_address(scene: CallbackScene) -> bytes:
    """The deposit address on TRC20 of the only merchant."""
    (row,) = await scene.rows("select address from merchant_address where chain = 'TRC20'")
    return bytes(row[0])


async def credit(scene: CallbackScene, shop: NewMerchant, units: int) -> Credited:
    """Credit a final deposit to the merchant's own address."""
    merchant_id, address = shop.merchant.merchant_id, await own_address(scene)
    await scene.rows(
        "insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender,"
        " address, amount, status, seen_ms, final_ms)"
        " values (%s, 'TRC20', 'ab12', 3, 1, 'b', %s, %s, %s, 'pending', %s, %s)",
        *(merchant_id, bytes(20), address, units, START_MS - 5000, START_MS),
    )
    command = CreditDeposit(DepositKey("TRC20", "ab12", 3), address, units, True)
    credited = await scene.ask(shop, command)
    assert isinstance(credited, Credited)
    return credited


def test_a_deposits_callback_goes_where_the_merchants_setting_says(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        await scene.rows("update merchant set deposit_notify_url = %s", scene.receiver.url("deposits.test"))
        credited = await credit(scene, shop, 2_500_000)
        await scene.deliver(scene.sender())
        (request,) = scene.receiver.received
        assert request.host == "deposits.test"
        assert verify_sign(request, shop.app_secret)
        fields = request.fields
        assert len(fields.pop("nonceStr")) == len(fields.pop("sign")) == 32
        assert fields == {
            "appKey": shop.merchant.app_key,
            "timestamp": START_MS,
            "eventId": f"evt_{credited.entry_id}_deposit",
            "eventType": "deposit",
            "transactionId": credited.entry_id,
            "userId": None,
            "extUserId": None,
            "sendCurrency": "USDT",
            "receiveCurrency": "USDT",
            "amount": "2.5",
            "amountArrival": "2.5",
            "rate": None,
            "chainType": "TRC20",
            "address": to_tron(await own_address(scene)),
            "txnTime": START_MS,
            "createTime": START_MS - 5000,
            "txHash": "ab12",
            "logIndex": 3,
        }

    in_scene(scenario)


def test_a_deposit_callback_without_a_url_is_a_dead_letter(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        credited = await credit(scene, shop, 2_500_000)
        assert await scene.deliver(scene.sender()) == 1
        assert await scene.states() == {f"evt_{credited.entry_id}_deposit": "dead_letter"}
        assert await scene.rows("select error from callback_attempt") == [("there is no URL to send it to",)]

    in_scene(scenario)
