"""Home is restored to before a book moved, with orders in every state: each is paid once, none is lost."""

from dataclasses import replace
from pathlib import Path

from tests.cells.book_moved import move_to
from tests.cells.conftest import TwoDatabases
from tests.cells.layout import Layout
from tests.cells.test_workers import open_shop, status, wait_until_paid
from tests.cli.conftest import Wallet
from tests.cli.restored_home import ACCEPT, open_scene
from tests.conftest import FAR, SharedPostgres
from tests.crash.shop import run
from tests.journeys.client import Answer
from tests.journeys.conftest import MASTER_KEY, Platform, Shop, running
from tests.journeys.orders import withdrawal
from tests.waits import wait_until

from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Fail, TakeUp
from merchant_wallet.withdrawals import payouts


def order(shop: Shop, amount: str) -> Answer:
    return shop.client.do("createMerchantWithdrawOrder", **withdrawal(f"of {amount}", amount))


def reach(shop: Shop, platform: Platform) -> Shop:
    """The merchant at a service that was started again."""
    return replace(shop, platform=platform, client=replace(shop.client, port=platform.port))


async def queue_all(layout: Layout) -> None:
    """What a payer does first: the cell notes that home has the orders."""
    async with await connect(layout.url) as home, await connect(layout.far_url) as far:
        assert await payouts.queue_new(home, far) == 4


def count_transfers(wallet: Wallet) -> dict[int, int]:
    """How often each amount was sent on the chain, which home has: it forgets what came later."""
    rows = wallet.read("select amount_units, count(*) from sandbox_transfer group by 1")
    return {units // 1_000_000: count for units, count in rows}


def test_orders_of_a_moved_book_are_paid_once_after_home_was_restored(
    postgres: SharedPostgres, two_databases: TwoDatabases, tmp_path: Path
) -> None:
    variables = {
        "WALLET_MASTER_KEY": MASTER_KEY.hex(),
        "WALLET_CHECKPOINT_DIR": str(tmp_path / "checkpoints"),
    }
    layout = Layout(two_databases.home, two_databases.cell)
    wallet = Wallet(layout.url, tmp_path, variables)
    with open_scene(postgres, wallet, two_databases.cell) as scene:
        with running(layout.url, tmp_path, working=True) as platform:
            shop = open_shop(platform, layout, away=False)
            shop.fund("USDT", "100")
            shop.change(approval_limit="20", withdraw_fee_min="0")
            paid = order(shop, "11")
            wait_until_paid(shop, paid)
            waiting = order(shop, "21")
        before = scene.back_up()

        run(move_to(layout.url, shop.merchant_id, FAR))
        with running(layout.url, tmp_path, working=True) as platform:
            shop = reach(shop, platform)
            wallet.run("withdrawals", "approve", waiting["orderId"])
            wait_until_paid(shop, waiting)
            lost = order(shop, "12")
            wait_until_paid(shop, lost)
        with running(layout.url, tmp_path) as platform:
            shop = reach(shop, platform)
            taken, queued = order(shop, "13"), order(shop, "14")
            shop.ask_book(TakeUp(int(taken["orderId"])))
            # A payer had found these, and home forgets it.
            found, failed = order(shop, "16"), order(shop, "17")
            shop.ask_book(TakeUp(int(failed["orderId"])))
            shop.ask_book(Fail(int(failed["orderId"]), "the token is paused"))
            run(queue_all(layout))

        scene.restore(before)
        assert count_transfers(wallet) == {11: 1}
        answer = wallet.ask(*ACCEPT)
        assert answer["frozenOrders"] == [int(taken["orderId"])]
        with running(before, tmp_path, working=True) as platform:
            shop = reach(shop, platform)
            wait_until_paid(shop, queued)
            wait_until_paid(shop, found)
            wait_until(lambda: status(shop, failed) == "6", "it is refunded")
            wait_until_paid(shop, order(shop, "15"))
            assert [status(shop, one) for one in (paid, waiting, lost, taken)] == ["2", "2", "2", "1"]
            wallet.run("withdrawals", "resume", taken["orderId"])
            wait_until_paid(shop, taken)
        assert count_transfers(wallet) == {11: 1, 13: 1, 14: 1, 15: 1, 16: 1}
        wallet.run("book", "verify")
