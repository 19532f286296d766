"""What the payer logs when an order fails, is refunded or frozen. Alerts of operators depend on these
lines.
"""

from typing import TYPE_CHECKING, Any

from structlog.testing import capture_logs

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.chains.protocol import FinalRecord, ProvenUnpaid, Transfer
from merchant_wallet.hot_wallet.store import list_wallets

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, ScriptedChain, Shop

COIN = 1_000_000
FROZEN = "payout frozen, an operator must look"


async def log_of(shop: "Shop", chain: "ScriptedChain") -> list[dict[str, Any]]:
    """One turn's log lines from warning up, and those about refunds, without fencing tokens."""
    with capture_logs() as lines:
        await shop.turn(shop.payer(chain))
    wanted = ("warning", "critical")
    return [
        {name: value for name, value in line.items() if name != "fence"}
        for line in lines
        if line["log_level"] in wanted or line["event"] == "payout refunded"
    ]


def test_a_failed_order_is_logged_with_its_cause_and_its_refund(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        named = {"merchant_id": 1001, "order_id": order.order_id}
        assert await log_of(shop, shop.scripted(ProvenUnpaid("reverted"))) == [
            {"event": "payout failed for good", "log_level": "warning", **named, "cause": "reverted"},
            {"event": "payout refunded", "log_level": "info", **named},
        ]
        assert await shop.status(order) == 6

    in_shop(scenario)


def test_a_fault_of_the_wallet_freezes_it_and_is_logged(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        told = await log_of(
            shop, shop.scripted(ProvenUnpaid("reverted", wallet_fault="the wallet is blacklisted"))
        )
        assert told[0] == {
            "event": "hot wallet frozen, an operator must look",
            "log_level": "critical",
            "chain": "ERC20",
            "cause": "the wallet is blacklisted",
        }
        assert [line["event"] for line in told[1:]] == ["payout failed for good", "payout refunded"]
        [wallet] = await list_wallets(shop.connection)
        assert (wallet.chain, wallet.frozen_cause) == ("ERC20", "the wallet is blacklisted")
        assert await shop.status(order) == 6

    in_shop(scenario)


def test_a_frozen_order_is_logged_with_the_wallet_that_is_frozen_with_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order(10 * COIN, fee=COIN)
        recipient = parse_address("ERC20", "0x742d35cc6634c0532925a3b844bc454e4438f44e")
        short = FinalRecord(Transfer("ERC20", "USDT", recipient, 9 * COIN - 1), "another")
        [told] = await log_of(shop, shop.scripted(short))
        assert "8.999999 USDT" in told.pop("cause")
        assert told == {
            "event": FROZEN,
            "log_level": "critical",
            "merchant_id": 1001,
            "order_id": order.order_id,
            "freezes_wallet_of": "ERC20",
        }

    in_shop(scenario)


def test_an_order_unlike_the_journal_is_logged_and_freezes_no_wallet(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order = await shop.order()
        await shop.connection.execute(b"update withdrawal set amount = amount + 1")
        [told] = await log_of(shop, shop.scripted())
        assert told.pop("cause")
        named = {"merchant_id": 1001, "order_id": order.order_id}
        assert told == {"event": FROZEN, "log_level": "critical", **named}

    in_shop(scenario)
