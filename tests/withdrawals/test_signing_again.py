"""A payout that expired: when it is signed again, and how long a blocked order is left alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from structlog.testing import capture_logs
from tests.withdrawals.conftest import TRC20_ADDRESS
from tests.withdrawals.fake_chains import TronLikeFake

from merchant_wallet.chains.protocol import (
    Blocked,
    Expired,
    Obstacle,
    Payout,
    ProvenUnpaid,
    SignedTransfer,
    Verdict,
)
from merchant_wallet.hot_wallet.stops import stop_payouts
from merchant_wallet.withdrawals.payouts import list_blocked, read_signed

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop


async def obstacles(shop: "Shop") -> list[tuple[str, str]]:
    """The kind and cause of each order's obstacle."""
    return [(waiting.kind, waiting.cause) for waiting in await list_blocked(shop.connection)]


def test_while_a_chain_is_stopped_nothing_that_expired_is_signed_again(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        payer = shop.payer(chain)
        await shop.turn(payer)
        await stop_payouts(shop.connection, "ERC20", "reconcile", "custody is short", shop.clock.now_ms)
        await stop_payouts(shop.connection, "TRC20", "operator", "another chain", shop.clock.now_ms)
        chain.verdict = Expired("expired")
        shop.clock.advance(60_000)
        await shop.turn(payer)
        [(kind, cause)] = await obstacles(shop)
        assert (kind, "custody is short" in cause) == ("stopped", True)
        # The signer was not asked: a signature that is not used would count against the order.
        assert len(chain.built) == 1
        await shop.connection.execute(b"delete from payout_stop where chain = 'ERC20'")
        shop.clock.advance(60_000)
        with capture_logs() as lines:
            await shop.turn(payer)
        assert [line["event"] for line in lines] == ["payout signed"]
        assert [payout.payout_id for payout in chain.built] == [order.order_id] * 2

    in_shop(scenario)


class EnergyChain(TronLikeFake):
    """Like TRON with a wallet that is short of TRX: what ran out of energy has moved nothing and is void."""

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        verdicts = [await super(EnergyChain, self).judge(payout, [one]) for one in signed]
        voids = [isinstance(verdict, ProvenUnpaid) for verdict in verdicts]
        counting = [verdict for verdict, is_void in zip(verdicts, voids, strict=True) if not is_void]
        return counting[-1] if counting else Expired("OUT_OF_ENERGY")


def test_an_order_whose_transfer_ran_out_of_energy_is_paid_once_and_not_failed(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = EnergyChain(shop.folder / "expiring", "TRC20"), await shop.order(address=TRC20_ADDRESS)
        payer = shop.payer(chains={"TRC20": chain})
        await shop.turn(payer)
        [waiting] = chain.waiting()
        chain.set(reverting=[waiting["to"]])
        chain.mine(1)
        chain.set(reverting=[])
        for _ in range(8):
            shop.clock.advance(30_000)
            await shop.turn(payer)
            chain.mine(1)
        assert await shop.status(order) == 2
        assert chain.paid() == {order.order_id: [order.arrival_units]}
        assert len(await read_signed(shop.connection, 1001, order.order_id)) == 2

    in_shop(scenario)


def test_an_order_whose_transfers_all_expire_waits_for_an_operator(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        await shop.order()
        payer = shop.payer(shop.scripted(Expired("expired")), max_builds=2)
        for _ in range(3):
            await shop.turn(payer)
            shop.clock.advance(60_000)
        assert await obstacles(shop) == [("lapsed", "2 transfers in a row came to nothing: expired")]

    in_shop(scenario)


def test_an_order_rests_longer_the_longer_it_waits_and_is_logged_once(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain = shop.scripted()
        chain.build_error = Blocked(Obstacle("fee", "the market asks for more than the cap"))
        await shop.order()
        payer, rests_ms, began_ms = shop.payer(chain), [], shop.clock.now_ms
        with capture_logs() as lines:
            while shop.clock.now_ms - began_ms < 120_000:
                tries = len(chain.built)
                rested_ms = 0
                while len(chain.built) == tries:
                    shop.clock.advance(1_000)
                    rested_ms += 1_000
                    await shop.turn(payer)
                rests_ms.append(rested_ms)
        assert rests_ms == sorted(rests_ms)
        assert rests_ms[-1] >= 20_000 > rests_ms[len(rests_ms) // 2]
        assert [line["kind"] for line in lines if line["event"] == "payout waits"] == ["fee"]

    in_shop(scenario)
