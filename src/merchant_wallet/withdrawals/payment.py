"""One attempt to pay one order that the book has taken up. It does the I/O that `payment_states` asks for.

Rules:
- Every write names the fencing token of the claim. A payer that lost its claim changes nothing.
- Signed bytes are committed before they are sent, and only then can they move money.
- That an order can't be paid is committed before the book hears of it, with the number of transfers that the
  proof covers.
- A final transfer needs no claim: it is true whoever says it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from merchant_wallet.base import spans
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.chains.protocol import (
    Blocked,
    Expired,
    FinalRecord,
    Obstacle,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Unpayable,
    Verdict,
)
from merchant_wallet.chains.signer import SigningRefused
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.hot_wallet import stops
from merchant_wallet.hot_wallet.funds import Reservation
from merchant_wallet.hot_wallet.store import WalletMoved
from merchant_wallet.hot_wallet.wallet import HotWallet
from merchant_wallet.withdrawals import payouts, reservations
from merchant_wallet.withdrawals.payment_states import (
    ACTIONS,
    Action,
    Event,
    State,
    begin,
    read_error,
    read_verdict,
    step,
)
from merchant_wallet.withdrawals.payout_checks import find_transfer_mismatch
from merchant_wallet.withdrawals.payouts import (
    Claim,
    PayableOrder,
    PayoutsStopped,
    StoredTransfer,
)
from merchant_wallet.withdrawals.rests import rest_pending, rest_waiting

log = structlog.get_logger(__name__)


class Waits(NamedTuple):
    """Nothing is decided. Another attempt is due after `delay_ms`. The obstacle is for operators."""

    delay_ms: int
    obstacle: Obstacle | None = None


class Paid(NamedTuple):
    """The transfer with this hash is final, and it is exactly the order."""

    tx_hash: str


class GivenUp(NamedTuple):
    """It is committed that the order can never be paid."""

    cause: str


class Suspect(NamedTuple):
    """The chain's final record is not the order. The order and the hot wallet must be frozen."""

    cause: str


Result = Waits | Paid | GivenUp | Suspect

Screen = Callable[[], Awaitable[None]]
"""Screens the order before anything is signed. Raises Blocked if it must wait, Unpayable if it is refused."""


class Payment:
    """One attempt at one order under a claim. `advance` is called once."""

    def __init__(
        self,
        claim: Claim,
        worker_connection: WorkerConnection,
        hot_wallet: HotWallet,
        order: PayableOrder,
        payout: Payout,
        *,
        max_builds: int,
        clock: Callable[[], int],
        screen: Screen | None = None,
    ) -> None:
        self._claim = claim
        self._worker_connection = worker_connection
        self._hot_wallet = hot_wallet
        self._chain = hot_wallet.chain
        self._order = order
        self._payout = payout
        self._max_builds = max_builds
        self._clock = clock
        self._screen = screen
        self._reserved = order.reservation
        self._stored: list[StoredTransfer] = []
        self._unstored: SignedTransfer | None = None
        # A transfer that this attempt signs first has not been sent, so it is pending without a question.
        self._verdict: Verdict = Pending()
        self._error: Exception | None = None
        self._name = {"merchant_id": claim.merchant_id, "order_id": claim.order_id, "fence": claim.fence}

    async def advance(self) -> Result:
        """Take the payment as far as it goes now.

        Raises ClaimLost, what the chain raises, and `psycopg.Error`.
        """
        if self._order.given_up_cause is not None:
            return GivenUp(self._order.given_up_cause)
        connection = await self._worker_connection.get()
        self._stored = await payouts.read_signed(connection, self._claim.merchant_id, self._claim.order_id)
        await self._hot_wallet.open(connection)
        state = self._begin()
        while state in ACTIONS:
            event = await self._perform(ACTIONS[state])
            if event is Event.REFUSED and state is not State.SENDING_AGAIN:
                log.warning("signed transfer refused", **self._name, cause=str(self._error))
            state = step(state, event)
        return await self._end(state)

    def _begin(self) -> State:
        """The first state. Raises WalletMoved."""
        reserved = self._reserved
        if self._stored:
            self._require_key()
        is_moved = reserved is not None and reserved.wallet != self._chain.wallet
        return begin(is_signed=bool(self._stored), is_reserved=reserved is not None, is_moved=is_moved)

    def _with_nonce(self) -> Payout:
        """The payout with the nonce that is reserved for it. Raises WalletMoved."""
        reserved = self._require_key()
        return msgspec.structs.replace(self._payout, nonce=reserved.nonce)

    def _require_key(self) -> Reservation:
        """The reservation, whose hot wallet's key is here. Raises WalletMoved."""
        reserved = self._reserved
        assert reserved is not None, "nothing is signed without a reservation"
        if reserved.wallet != self._chain.wallet:
            raise WalletMoved(
                f"order {self._claim.order_id} is paid by the hot wallet"
                f" {format_address(self._payout.transfer.chain, reserved.wallet)}, whose key is not here"
            )
        return reserved

    async def _perform(self, action: Action) -> Event:
        perform: Callable[[], Awaitable[Event]] = {
            Action.CHECK_PAYABLE: self._check_payable,
            Action.RESERVE: self._reserve,
            Action.SIGN: self._sign,
            Action.STORE: self._store,
            Action.RELEASE: self._release,
            Action.SEND: self._send,
            Action.JUDGE: self._judge,
            Action.CHECK_STOPS: self._check_stops,
            Action.CHECK_REBUILD: self._check_rebuild,
        }[action]
        try:
            with spans.step(f"payout {action.name.lower().replace('_', ' ')}"):
                return await perform()
        except Exception as error:
            if action is Action.RELEASE and self._error is not None:
                error.add_note(f"The reservation was being released after {self._error!r}.")
            self._error = error
            return read_error(action, error, has_nonces=self._chain.has_nonces)

    async def _check_payable(self) -> Event:
        await reservations.refuse_own(await self._worker_connection.get(), self._payout.transfer.recipient)
        if self._screen is not None:
            await self._screen()
        await self._chain.check_payable(self._payout.transfer)
        return Event.PAYABLE

    async def _reserve(self) -> Event:
        connection = await self._worker_connection.get()
        reserve = partial(reservations.reserve, connection, self._claim)
        self._reserved = await self._hot_wallet.reserve(connection, reserve, self._payout.transfer)
        return Event.RESERVED

    async def _release(self) -> Event:
        await reservations.release(await self._worker_connection.get(), self._claim, self._clock())
        self._reserved = None
        return Event.RELEASED

    async def _sign(self) -> Event:
        """Have the chain build and sign a transfer. It is in memory only, so nobody can send it yet."""
        earlier = [one.signed for one in self._stored]
        pending = await reservations.list_pending(
            await self._worker_connection.get(), self._claim, self._hot_wallet.name
        )
        try:
            payout = msgspec.structs.replace(
                self._with_nonce(), pending=pending, is_refused=isinstance(self._error, NodeRefused)
            )
            self._unstored = await self._chain.build(payout, earlier)
        except SigningRefused as refused:
            raise Blocked(Obstacle("limit", f"the signer refused: {refused}")) from refused
        return Event.SIGNED

    async def _store(self) -> Event:
        signed, number, now = self._unstored, len(self._stored) + 1, self._clock()
        assert signed is not None, "only a signed transfer is stored"
        connection, chain = await self._worker_connection.get(), self._hot_wallet.name
        try:
            await payouts.store_signed(
                connection, self._claim, chain, self._chain.wallet, number, signed, now
            )
        except PayoutsStopped as stopped:
            raise Blocked(Obstacle("stopped", str(stopped))) from stopped
        log.info("payout signed", **self._name, tx_hash=signed.tx_hash, attempt_no=number)
        self._stored.append(StoredTransfer(number, signed, now, None))
        return Event.STORED

    async def _send(self) -> Event:
        """Hand the newest transfer to the chain, which takes the same bytes any number of times."""
        newest = self._stored[-1]
        await self._chain.broadcast(newest.signed.raw)
        if newest.broadcast_ms is not None:
            return Event.SENT_AGAIN
        await payouts.mark_broadcast(
            await self._worker_connection.get(), self._claim, newest.attempt_no, self._clock()
        )
        return Event.SENT

    async def _judge(self) -> Event:
        signed = [one.signed for one in self._stored]
        self._verdict = await self._chain.judge(self._with_nonce(), signed)
        return self._read_verdict()

    def _read_verdict(self) -> Event:
        verdict = self._verdict
        is_exact = isinstance(verdict, FinalRecord) and self._find_fault(verdict) is None
        event = read_verdict(verdict, is_exact=is_exact, has_nonces=self._chain.has_nonces)
        # A process that ended after sending has not noted it. Sending once more does.
        return Event.PENDING if event is Event.MINED and self._stored[-1].broadcast_ms is None else event

    def _find_fault(self, final: FinalRecord) -> str | None:
        """How a final transfer differs from the order."""
        if fault := find_transfer_mismatch(self._payout.transfer, final):
            return fault
        if final.tx_hash not in {one.signed.tx_hash for one in self._stored}:
            return f"the chain calls {final.tx_hash} final, which was never signed for this order"
        return None

    async def _check_stops(self) -> Event:
        await stops.refuse_stopped(await self._worker_connection.get(), self._hot_wallet.name)
        return Event.ALLOWED

    async def _check_rebuild(self) -> Event:
        await self._check_stops()
        count, verdict = len(self._stored), self._verdict
        cause = verdict.cause if isinstance(verdict, Expired) else str(self._error)
        if count >= self._max_builds:
            raise Blocked(Obstacle("lapsed", f"{count} transfers in a row came to nothing: {cause}"))
        return Event.ALLOWED

    async def _end(self, state: State) -> Result:
        """What follows from the state that ended the attempt. Raises the error of a failed one."""
        match state, self._verdict, self._error:
            case State.WAITING, Pending() as pending, _:
                return self._wait_for_chain(pending)
            case State.RETRYING, Expired(), _:
                return Waits(0)
            case State.BLOCKED, _, Blocked(obstacle=obstacle):
                return await self._wait_for(obstacle)
            case State.IRREPLACEABLE, _, Unpayable() as unpayable:
                return await self._wait_for(Obstacle("stuck", f"it can't be replaced: {unpayable}"))
            case State.UNPAYABLE, _, Unpayable() as unpayable:
                return await self._give_up(str(unpayable))
            case State.PROVEN_UNPAID, ProvenUnpaid() as proof, _:
                return await self._give_up(proof.cause, proof.wallet_fault)
            case State.PAID, FinalRecord() as final, _:
                claim = self._claim
                await reservations.end(await self._worker_connection.get(), claim.merchant_id, claim.order_id)
                return Paid(final.tx_hash)
            case State.SUSPECT, FinalRecord() as final, _:
                return Suspect(str(self._find_fault(final)))
            case State.FAILED, _, Exception() as error:
                raise error
        raise AssertionError(f"an attempt can't end in {state.name} after this verdict and error")

    def _wait_for_chain(self, pending: Pending) -> Waits:
        obstacle = Obstacle("alert", pending.alert) if pending.alert else None
        now, signed_ms = self._clock(), self._stored[-1].signed_ms
        self._report(obstacle)
        check_after_ms = pending.check_after_ms
        return Waits(rest_pending(now, now - signed_ms, check_after_ms, is_mined=pending.is_mined), obstacle)

    async def _wait_for(self, obstacle: Obstacle) -> Waits:
        """Let the order rest (see `rests`)."""
        if obstacle.kind == "wallet":
            await self._hot_wallet.freeze(await self._worker_connection.get(), obstacle.cause)
        self._report(obstacle)
        now, kind = self._clock(), obstacle.kind
        return Waits(rest_waiting(now, self._order.count_waited_ms(kind, now), kind), obstacle)

    def _report(self, obstacle: Obstacle | None) -> None:
        """Log an obstacle once, when it appears."""
        before = self._order.current_obstacle
        if obstacle is not None and (before is None or before.kind != obstacle.kind):
            log.warning("payout waits", **self._name, kind=obstacle.kind, cause=obstacle.cause)

    async def _give_up(self, cause: str, wallet_fault: str | None = None) -> GivenUp:
        """Commit that the order can never be paid. The commit releases the nonce of an unsigned order."""
        chain = self._hot_wallet.name
        await reservations.give_up(
            await self._worker_connection.get(),
            self._claim,
            cause,
            self._clock(),
            signed_no=len(self._stored),
            chain=chain,
            wallet_fault=wallet_fault,
        )
        if wallet_fault is not None:
            log.critical("hot wallet frozen, an operator must look", chain=chain, cause=wallet_fault)
        return GivenUp(cause)
