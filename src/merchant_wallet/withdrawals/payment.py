"""Paying one order that the book has taken up: reserve, sign, store, send, judge, and what follows from it.

Rules: bytes are committed under the order's fence before anybody sends them, and only then can they move
money. Another transfer is signed only for the same place (a sequenced chain lets one of them count) or
when the chain has proven that all before are void. That an order can't be paid is committed under the fence
too, with the number of transfers that the proof covers, before the book hears of it: a payer that was frozen
and wakes up with an old verdict can write neither. A final transfer needs no fence, it is true whoever says
it.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeGuard

import structlog

from merchant_wallet.base.workers import Line
from merchant_wallet.chains import protocol
from merchant_wallet.chains.protocol import (
    Dead,
    Hindered,
    Lapsed,
    Obstacle,
    Payout,
    Pending,
    Unpayable,
    Verdict,
)
from merchant_wallet.chains.signer import SignerAway, SigningRefused
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.withdrawals import hot_wallets, payouts, reservations
from merchant_wallet.withdrawals.evidence import find_transfer_fault
from merchant_wallet.withdrawals.payouts import (
    Claim,
    Fenced,
    Halted,
    Hindrance,
    PayableOrder,
    Reservation,
    StoredTransfer,
)
from merchant_wallet.withdrawals.purse import Purse

RESEND_MS: Final = 5_000
"""A young pending transfer's bytes are sent again at least this often; later, ever more rarely."""
LONGEST_REST_MS: Final = 50_000
AGE_PART: Final = 8
"""A transfer that is pending for long rests for this part of its age, so that many of them leave room."""
UNKNOWN_WALLET: Final = bytes(20)
"""What was signed before hot wallets were recorded bears this."""

log = structlog.get_logger(__name__)


class Waits(NamedTuple):
    """Nothing is decided; another look is due in so many milliseconds. The obstacle is for operators."""

    rest_ms: int
    obstacle: Obstacle | None = None


class Paid(NamedTuple):
    """The transfer of this hash is final, and it is the order's to the unit."""

    tx_hash: str


class GivenUp(NamedTuple):
    """It is committed that the order can never be paid."""

    cause: str


class Suspect(NamedTuple):
    """The chain's record is not the order; order and wallet are to be frozen."""

    cause: str


Result = Waits | Paid | GivenUp | Suspect


class Payment:
    """One try at paying one order under a claim. Raises Fenced, what the chain raises, `psycopg.Error`."""

    def __init__(
        self, held: Claim, line: Line, purse: Purse, *, max_builds: int, clock: Callable[[], int]
    ) -> None:
        self._held = held
        self._line = line
        self._purse = purse
        self._chain = purse.chain
        self._max_builds = max_builds
        self._clock = clock
        self._reserved: Reservation | None = None
        self._asked = False
        self._name = {"merchant_id": held.merchant_id, "order_id": held.order_id, "fence": held.fence}

    async def advance(self, order: PayableOrder, payout: Payout) -> Result:
        """Take the payment as far as it goes now."""
        if order.given_up_cause is not None:
            return GivenUp(order.given_up_cause)
        self._reserved = order.reservation
        # What another attempt reserved may be signed for already, and the signer keeps an order at its place.
        self._asked = order.reservation is not None
        connection = await self._line.get()
        signed = await payouts.read_signed(connection, self._held.merchant_id, self._held.order_id)
        try:
            await self._purse.open(connection)
            # What is committed in this very attempt nobody can have sent yet, so there is nothing to judge.
            verdict: Verdict | None = None
            if not signed:
                signed, verdict = [await self._sign_first(payout)], Pending()
            return await self._follow(order, self._placed(payout), signed, verdict)
        except Unpayable as unpayable:
            # Raised by the first signing alone, or when all that was signed is void: see `_sign_again`.
            return await self._give_up(str(unpayable), len(signed))
        except Hindered as hindered:
            return await self._wait(order, hindered.obstacle)

    def _placed(self, payout: Payout) -> Payout:
        """The payout with the place that is reserved for it. Raises WalletMoved."""
        reserved = self._reserved
        assert reserved is not None, "nothing is signed without a reservation"
        if reserved.wallet not in (self._chain.wallet, UNKNOWN_WALLET):
            raise hot_wallets.WalletMoved(
                f"order {self._held.order_id} is paid by the hot wallet {reserved.wallet.hex()}, of which "
                "there is no key here"
            )
        return Payout(payout.payout_id, payout.transfer, reserved.sequence)

    async def _sign_first(self, payout: Payout) -> StoredTransfer:
        """The order's first signed transfer, committed.

        What prevents it gives the reservation back, unless the signer may have signed for that place already.
        """
        if payout.transfer.recipient == self._chain.wallet:
            raise Unpayable("the recipient is the platform's own hot wallet")
        try:
            await self._chain.examine(payout.transfer)
            if self._reserved is not None and self._reserved.wallet != self._chain.wallet:
                # Another wallet's, from before this one came; nothing of it was ever sent.
                await self._give_back()
            if self._reserved is None:
                amount_units = payout.transfer.amount_units
                self._reserved = await self._purse.reserve(await self._line.get(), self._held, amount_units)
            return await self._sign(self._placed(payout), [])
        except Fenced:
            raise
        except Unpayable:
            if self._reserved is not None:
                await self._give_back()
            raise
        except Exception:
            # A place that is kept without anything signed for it holds up every later place. One that is kept
            # all the same goes back when it stands in the way (see `gaps`).
            if self._reserved is not None and not self._asked:
                await self._give_back()
            raise

    async def _give_back(self) -> None:
        await reservations.give_back(await self._line.get(), self._held, self._clock())
        self._reserved, self._asked = None, False

    async def _sign(self, payout: Payout, earlier: Sequence[StoredTransfer]) -> StoredTransfer:
        """Build, sign and commit the next transfer. Raises Unpayable, Hindered, Fenced; then nothing was."""
        asked_before, self._asked = self._asked, True
        try:
            signed = await self._chain.build(payout, [one.signed for one in earlier])
        except SigningRefused as refused:
            self._asked = asked_before
            raise Hindered(Obstacle("limit", f"the signer refused: {refused}")) from refused
        except Exception as error:
            # Signing is the last that a chain does; only a signer that gave no answer may have done it.
            self._asked = asked_before or isinstance(error, SignerAway)
            raise
        attempt_no, now = len(earlier) + 1, self._clock()
        connection, wallet = await self._line.get(), self._chain.wallet
        try:
            await payouts.store_signed(
                connection, self._held, self._purse.name, wallet, attempt_no, signed, now
            )
        except Halted as halted:
            raise Hindered(Obstacle("stopped", str(halted))) from halted
        log.info("payout signed", **self._name, tx_hash=signed.tx_hash, attempt_no=attempt_no)
        return StoredTransfer(attempt_no, signed, now, None)

    async def _follow(
        self, order: PayableOrder, payout: Payout, signed: list[StoredTransfer], verdict: Verdict | None
    ) -> Result:
        """Send what was signed, and do what the chain's verdict, asked for unless it is given, calls for."""
        verdict = verdict or await self._judge(payout, signed)
        if isinstance(verdict, Pending):
            try:
                verdict = await self._send(payout, signed, verdict)
            except NodeRefused as refused:
                # Nodes may refuse what offers too little by now, and that only a replacement mends.
                if not self._is_stuck(verdict):
                    raise
                log.warning("stuck bytes are refused", **self._name, cause=str(refused))
        if isinstance(verdict, Lapsed) or self._is_stuck(verdict):
            signed, verdict = await self._sign_again(payout, signed, verdict)
        return await self._conclude(order, payout, signed, verdict)

    def _is_stuck(self, verdict: Verdict) -> TypeGuard[Pending]:
        return isinstance(verdict, Pending) and verdict.stuck and self._chain.is_sequenced

    async def _judge(self, payout: Payout, signed: Sequence[StoredTransfer]) -> Verdict:
        return await self._chain.judge(payout, [one.signed for one in signed])

    async def _send(self, payout: Payout, signed: Sequence[StoredTransfer], judged: Verdict) -> Verdict:
        """Hand the newest bytes to the chain; where they are new to it, ask what became of them all.

        What was sent before has just been judged.
        """
        newest = signed[-1]
        await self._chain.broadcast(newest.signed.raw)
        if newest.broadcast_ms is not None:
            return judged
        await payouts.mark_broadcast(await self._line.get(), self._held, newest.attempt_no, self._clock())
        return await self._judge(payout, signed)

    async def _sign_again(
        self, payout: Payout, signed: list[StoredTransfer], verdict: Pending | Lapsed
    ) -> tuple[list[StoredTransfer], Verdict]:
        """Sign another transfer beside those that are stuck, or after those that lapsed, and send it.

        Raises Unpayable only when all that was signed is void, and Hindered.
        """
        chain = self._purse.name
        if halts := await hot_wallets.find_halts(await self._line.get(), chain):
            raise Hindered(Obstacle("stopped", halts[0]))
        if isinstance(verdict, Lapsed) and len(signed) >= self._max_builds:
            raise Hindered(
                Obstacle("lapsed", f"{len(signed)} transfers in a row came to nothing: {verdict.cause}")
            )
        try:
            if isinstance(verdict, Lapsed):
                await self._chain.examine(payout.transfer)
            again = await self._sign(payout, signed)
        except Unpayable as unpayable:
            if isinstance(verdict, Lapsed):
                raise
            # What was signed may still count, so this proves nothing about the order.
            raise Hindered(Obstacle("stuck", f"it can't be replaced: {unpayable}")) from unpayable
        extended = [*signed, again]
        return extended, await self._send(payout, extended, verdict)

    async def _conclude(
        self, order: PayableOrder, payout: Payout, signed: Sequence[StoredTransfer], verdict: Verdict
    ) -> Result:
        if isinstance(verdict, Pending):
            obstacle = Obstacle("alert", verdict.alert) if verdict.alert else None
            rest_ms = min(LONGEST_REST_MS, max(RESEND_MS, (self._clock() - signed[-1].signed_ms) // AGE_PART))
            if verdict.check_after_ms is not None:
                rest_ms = min(verdict.check_after_ms, rest_ms)
            self._report(order.hindrance, obstacle)
            return Waits(rest_ms, obstacle)
        if isinstance(verdict, Lapsed):
            # It lapsed while it was being sent; the next attempt goes on from there.
            return Waits(0)
        if isinstance(verdict, Dead):
            return await self._give_up(verdict.cause, len(signed), verdict.wallet_fault)
        return await self._settle(payout, signed, verdict)

    async def _settle(
        self, payout: Payout, signed: Sequence[StoredTransfer], final: protocol.Final
    ) -> Result:
        if fault := find_transfer_fault(payout.transfer, final):
            return Suspect(fault)
        if final.tx_hash not in {one.signed.tx_hash for one in signed}:
            return Suspect(f"the chain calls {final.tx_hash} final, which was never signed for this order")
        await reservations.spend(await self._line.get(), self._held)
        return Paid(final.tx_hash)

    async def _give_up(self, cause: str, signed_no: int, wallet_fault: str | None = None) -> GivenUp:
        chain, now = self._purse.name, self._clock()
        await reservations.give_up(
            await self._line.get(),
            self._held,
            cause,
            now,
            signed_no=signed_no,
            chain=chain,
            wallet_fault=wallet_fault,
        )
        if wallet_fault is not None:
            log.critical("hot wallet frozen, an operator must look", chain=chain, cause=wallet_fault)
        return GivenUp(cause)

    async def _wait(self, order: PayableOrder, obstacle: Obstacle) -> Waits:
        """Let the order rest, longer the longer it has waited already."""
        if obstacle.kind == "wallet":
            await self._purse.freeze(await self._line.get(), obstacle.cause)
        self._report(order.hindrance, obstacle)
        waited_ms = 0
        if order.hindrance is not None and order.hindrance.kind == obstacle.kind:
            waited_ms = self._clock() - order.hindrance.since_ms
        return Waits(min(LONGEST_REST_MS, max(RESEND_MS, waited_ms // 4)), obstacle)

    def _report(self, before: Hindrance | None, obstacle: Obstacle | None) -> None:
        if obstacle is not None and (before is None or before.kind != obstacle.kind):
            log.warning("payout waits", **self._name, kind=obstacle.kind, cause=obstacle.cause)
