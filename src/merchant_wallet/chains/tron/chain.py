"""USDT on TRON: builds, sends and judges payouts over nodes, and reads the chain.

Rules:
- TRON has no nonces, so two transactions signed for one payout can both count. A second one is built only if
  the first is proven void (`proof`).
- Two payouts of the same amount to the same recipient must have different bytes. Otherwise they would be one
  transaction and be paid once. So each payout subtracts a little from the time and the fee limit.
- Time is the chain's time, never this machine's. The reference block and the expiration come from blocks.
- No answer to a broadcast is a verdict. Nodes may drop what they took. Some keep the id of what they refused
  and later call it a duplicate.
- The wallet needs TRX and energy for all its transactions on their way together.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from merchant_wallet.base.chains import TRC20
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.currencies import USDT
from merchant_wallet.chains.cold import Executed, Execution, InFlight, UnsignedTransfer
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.issuer import require_current, require_no_fee
from merchant_wallet.chains.protocol import (
    Block,
    Blocked,
    ChainAway,
    Expired,
    Obstacle,
    Payout,
    SignedTransfer,
    Transfer,
    Unpayable,
    Verdict,
)
from merchant_wallet.chains.recent import keep
from merchant_wallet.chains.signer import Signer, SigningRequest
from merchant_wallet.chains.transport import NodeFailed, answer_of, ask_together, attempt, for_signed
from merchant_wallet.chains.tron.answers import Resources
from merchant_wallet.chains.tron.http import (
    DUPLICATE,
    NO_BANDWIDTH,
    Prices,
    TronNode,
    TronNodes,
)
from merchant_wallet.chains.tron.proof import VOID_OUTCOMES, TronProof
from merchant_wallet.chains.tron.reader import (
    OFFSET_RANGE_MS,
    TronReader,
    TronRules,
    failures_of,
    select_usable,
)
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    encode_raw,
    join,
    parse_envelope,
    parse_foreign_envelope,
    parse_raw,
    recover_owner,
    reference_to,
    txid_of,
)

__all__ = ["TronChain", "TronNodes", "TronReader", "TronRules"]


_OFFSET_RANGE_SUN: Final = 1_000_000
# The bandwidth of a payout: its bytes and the room that the chain reserves for its result.
_PAYOUT_BYTES: Final = 345
# For changes until the transaction is in a block.
_ENERGY_MARGIN_PERCENT: Final = 20
_KEPT_BROADCASTS: Final = 4_096
_MAX_CONCURRENT: Final = 8
"""Questions to one node at once. A node accepts 50 connections by default."""


class TronChain(TronReader):
    """See `protocol.Chain` and `protocol.ChainReader`."""

    def __init__(
        self,
        rules: TronRules,
        nodes: TronNodes,
        *,
        wallet: bytes,
        signer: Signer,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wallet` is the signer's hot wallet on this chain, 20 bytes."""
        super().__init__(rules, nodes, clock_s)
        self._signer = signer
        self._wallet = wallet
        self._proof = TronProof(self, void_outcomes=VOID_OUTCOMES)
        # Which nodes got which bytes, and whether they took them.
        self._took: dict[bytes, dict[TronNode, bool]] = {}

    @property
    def wallet(self) -> bytes:
        """See `protocol.Chain`."""
        return self._wallet

    @property
    def has_nonces(self) -> bool:
        """False: TRON has no nonces."""
        return False

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """Raises ValueError: TRON has no nonces."""
        raise ValueError("TRON has no nonces")

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Raises ValueError: TRON has no nonces."""
        raise ValueError("TRON has no nonces")

    async def funds(self) -> int:
        """The lowest balance that nodes show (see `agreement`). Raises ChainAway."""
        return await self.token.least_balance(self._wallet, is_solid=True)

    async def check_payable(self, transfer: Transfer) -> None:
        """See `protocol.Chain`. Raises Unpayable, Blocked, ChainAway."""
        await self._require_payable(transfer)

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """See `protocol.Chain`. Raises Unpayable, Blocked, ChainAway, and what the signer raises."""
        if earlier and not isinstance(await self.judge(payout, earlier), Expired):
            raise Blocked(Obstacle("node", "what was signed before is not proven void"))
        now_ms, reference = await self.moment()
        raw_data = self._write(payout, now_ms, reference)
        # This check comes last, so that as little as possible can change before the signature.
        await self._require_payable(payout.transfer, _list_unexpired(payout.pending, now_ms))
        self._require_past(earlier, now_ms)
        request = SigningRequest(TRC20, payout.purpose, raw_data, payout.payout_id, payout.transfer)
        signature = await self._signer.sign(request)
        if recover_owner(raw_data, signature) != self._wallet:
            raise ValueError("the signer signed with another key than the hot wallet's")
        return SignedTransfer(join(raw_data, signature), txid_of(raw_data), reference.number)

    @for_signed
    async def broadcast(self, raw: bytes) -> None:
        """Send the bytes to the nodes in their order until one takes them.

        Those that never got them come first. A node that calls them a duplicate may have refused them before,
        so the next node gets them too, unless it never got them here and another one took them: then it has
        them from that one. If no node took or has them, raises Blocked if the sender has too little TRX, else
        ChainAway with what each said. That proves nothing.
        """
        raw_data, _ = parse_foreign_envelope(raw)
        said, codes, is_known = [], set(), False
        took = self._took.get(raw, {})
        for node in sorted(self.nodes.list_usable(), key=lambda node: node in took):
            try:
                answer = await node.broadcast(raw)
                has_it = answer.code == DUPLICATE and node not in took and any(took.values())
                took = keep(self._took, raw, {**took, node: answer.result or has_it}, _KEPT_BROADCASTS)
                if took[node]:
                    return
                codes.add(answer.code)
                said.append(f"{node.name}: {node.show(f'{answer.code} {answer.message}')}")
                is_known |= answer.code == DUPLICATE or await node.knows(txid_of(raw_data))
            except NodeFailed as failure:
                said.append(str(failure))
        if is_known:
            return
        if NO_BANDWIDTH in codes or (codes and await self._lacks_coin(parse_raw(raw_data))):
            raise Blocked(Obstacle("fuel", f"too little TRX to send it: {'; '.join(said)}"))
        raise ChainAway("; ".join(said))

    async def _lacks_coin(self, transaction: TronTransaction) -> bool:
        """Whether the sender can't pay for a transaction's bytes and the TRX in it. Raises ChainAway."""
        prices, owned, coin_sun = await self._burning(transaction.owner)
        return coin_sun < transaction.amount_sun + _burnt_sun(1, 0, prices, owned)

    def _require_past(self, earlier: Sequence[SignedTransfer], now_ms: int) -> None:
        """What ended without effect is void at once, but the signer knows only its time. Raises Blocked."""
        for one in earlier:
            raw_data, _ = parse_envelope(one.raw)
            left_ms = parse_raw(raw_data).expiration_ms + self.rules.grace_ms - now_ms
            if left_ms > 0:
                text = f"{one.tx_hash} came to nothing. It is signed again in {left_ms // 1000} s"
                raise Blocked(Obstacle("lapsed", text))

    @for_signed
    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """See `protocol.Chain` and `proof`. Never raises because of what nodes do or say."""
        return await self._proof.judge(payout, signed)

    async def build_unsigned(
        self, sender: bytes, transfer: Transfer, nonce: int | None, lifetime_ms: int
    ) -> UnsignedTransfer:
        """See `cold.ColdChain`. The bytes are valid for `lifetime_ms`. Raises Blocked, ChainAway."""
        require_current([await self.token.successor()])
        now_ms, reference = await self.moment()
        call = await self.token.simulate(sender, transfer.recipient, transfer.amount_units)
        if call.revert is not None:
            raise Blocked(Obstacle("node", f"the transfer would fail now: {call.revert}"))
        block_bytes, block_hash = reference_to(reference.hash)
        transaction = TronTransaction(
            ref_block_bytes=block_bytes,
            ref_block_hash=block_hash,
            expiration_ms=now_ms + lifetime_ms,
            timestamp_ms=now_ms,
            fee_limit_sun=self.rules.fee_cap_sun,
            owner=sender,
            contract=self.rules.token,
            call_data=encode_transfer_call(transfer.recipient, transfer.amount_units),
        )
        raw_data = encode_raw(transaction)
        return UnsignedTransfer(raw_data, reference.number, transaction.expiration_ms)

    async def find_execution(self, sender: bytes, transfer: UnsignedTransfer) -> Execution | None:
        """See `cold.ColdChain`. The id is that of the unsigned bytes.

        What is in no final block some time after its expiration is void, whatever a single node says. Raises
        ChainAway, ChainDisagrees.
        """
        txid = txid_of(transfer.unsigned)
        if await self.find_block(txid) is not None:
            return Executed(txid)
        if not await self.knows(txid):
            return None
        void_ms = parse_raw(transfer.unsigned).expiration_ms + self.rules.grace_ms
        if (await self.final()).time_ms >= void_ms:
            return None
        return InFlight(f"{txid} is on its way and not final yet", expires=True)

    def _write(self, payout: Payout, now_ms: int, reference: Block) -> bytes:
        """The bytes to sign."""
        block_bytes, block_hash = reference_to(reference.hash)
        offset_ms, offset_sun = _pick_offset(payout.payout_id)
        transaction = TronTransaction(
            ref_block_bytes=block_bytes,
            ref_block_hash=block_hash,
            expiration_ms=now_ms + self.rules.lifetime_ms,
            timestamp_ms=now_ms - offset_ms,
            # Unused energy is not burnt. With a limit close to the estimate the transfer would fail if the
            # recipient spends its last token meanwhile, which doubles the energy.
            fee_limit_sun=self.rules.fee_cap_sun - offset_sun,
            owner=self._wallet,
            contract=self.rules.token,
            call_data=encode_transfer_call(payout.transfer.recipient, payout.transfer.amount_units),
        )
        return encode_raw(transaction)

    async def moment(self) -> tuple[int, Block]:
        """The chain's time, and a final block to refer to: recent ones. A transfer lives that much shorter.

        If several nodes answer, the second newest answer counts. So no single node can set the clock ahead or
        name a block of its own. A transaction that refers to a block that does not exist could never be
        proven void.

        Raises ChainAway, ChainDisagrees. Raises Blocked if the nodes are so far apart that the chain would
        refuse it.
        """
        return await self.recent.read("moment", self._read_moment)

    async def _read_moment(self) -> tuple[int, Block]:
        async def ask(node: TronNode) -> tuple[int, Block]:
            return (await node.head()).time_ms, await node.solid()

        answers = await self.nodes.every(ask, is_urgent=True)
        answered = select_usable(answers)
        if not answered:
            raise ChainAway(failures_of(answers))
        second = min(self.nodes.quorum, len(answered)) - 1
        times = sorted((time_ms for time_ms, _ in answered), reverse=True)
        reference = sorted((block for _, block in answered), key=lambda block: block.number)[-1 - second]
        now_ms, half_ms = times[second], self.rules.lifetime_ms // 2
        if times[0] - now_ms > half_ms or now_ms - reference.time_ms > self.rules.lifetime_ms:
            raise Blocked(Obstacle("node", "the nodes are too far apart in time: one is behind, or ahead"))
        # Nodes are nearly always at the same final block.
        if sum(block == reference for _, block in answered) < self.nodes.quorum:
            await self.compare(reference, is_urgent=True)
        return now_ms, reference

    async def _require_payable(self, transfer: Transfer, pending: Sequence[bytes | None] = ()) -> None:
        """Raises Unpayable with proof, or Blocked with the obstacle."""
        if transfer.chain != TRC20 or transfer.token != USDT:
            raise ValueError(f"{transfer.token} on {transfer.chain} can't be paid here")
        amount_units = transfer.amount_units
        refused, paused, held, fee, tried, burning = await asyncio.gather(
            attempt(self._check_issuer(transfer.recipient)),
            attempt(self.token.is_paused()),
            attempt(self.token.recent_balance(self._wallet)),
            attempt(self.token.compute_fee_units(amount_units)),
            attempt(self.token.simulate_recently(self._wallet, transfer.recipient, amount_units)),
            attempt(self.recent.read("burning", self._own_burning)),
        )
        answer_of(refused)
        if answer_of(paused):
            raise Blocked(Obstacle("paused", "the token's owner has paused all transfers"))
        if answer_of(held) < amount_units:
            raise Blocked(Obstacle("funds", "the hot wallet holds less than the order"))
        require_no_fee(amount_units, answer_of(fee))
        call = answer_of(tried)
        if call.revert is not None:
            raise Blocked(Obstacle("node", f"the transfer would fail now: {call.revert}"))
        await self._require_affordable(call.energy, pending, *answer_of(burning))

    async def _check_issuer(self, recipient: bytes) -> None:
        """Checks successor and blacklist. Raises Unpayable with proof, Blocked."""
        successor, frozen, refused = await asyncio.gather(
            attempt(self.token.successor()),
            attempt(self.token.is_recently_blacklisted(self._wallet)),
            attempt(self.token.is_recently_blacklisted(recipient)),
        )
        require_current([answer_of(successor)])
        if answer_of(frozen):
            raise Blocked(Obstacle("wallet", "the token has blacklisted our own wallet"))
        if answer_of(refused):
            raise Unpayable("the token has blacklisted the recipient")

    async def _own_burning(self) -> tuple[Prices, Resources, int]:
        return await self._burning(self._wallet)

    async def _burning(self, sender: bytes) -> tuple[Prices, Resources, int]:
        """The price of energy and bandwidth, what a sender has of both, and its balance in sun."""
        prices, owned, coin_sun = await asyncio.gather(
            attempt(self.nodes.first(TronNode.prices)),
            attempt(self.nodes.first(lambda node: node.resources(sender))),
            attempt(self.coin_balance(sender)),
        )
        return answer_of(prices), answer_of(owned), answer_of(coin_sun)

    async def _require_affordable(
        self,
        energy: int,
        pending: Sequence[bytes | None],
        prices: Prices,
        owned: Resources,
        coin_sun: int,
    ) -> None:
        """Check that a payout of `energy` keeps the cap, and that the wallet can pay it besides `pending`.

        Raises Blocked, ChainAway.
        """
        estimate_sun = energy * prices.energy_sun + _PAYOUT_BYTES * prices.bandwidth_sun
        if estimate_sun > self.rules.fee_cap_sun - _OFFSET_RANGE_SUN:
            cause = f"the chain's fee of {estimate_sun} sun is above the cap of {self.rules.fee_cap_sun}"
            raise Blocked(Obstacle("fee", cause))
        needed_sun = _sum_burnt_sun(pending, energy, prices, owned)
        if coin_sun < needed_sun and pending:
            # Blocks may have some of them already. What these burnt is gone from a balance that is read now.
            pending = await self._list_unmined(pending)
            prices, owned, coin_sun = await self.recent.renew("burning", self._own_burning)
            needed_sun = _sum_burnt_sun(pending, energy, prices, owned)
        if coin_sun < needed_sun:
            cause = (
                f"the hot wallet holds {coin_sun} sun, and {count_of(1 + len(pending), 'transaction')} "
                f"on the way may burn {needed_sun}"
            )
            raise Blocked(Obstacle("fuel", cause))

    async def _list_unmined(self, pending: Sequence[bytes | None]) -> list[bytes | None]:
        """What the first node that answers has in no block. Raises ChainAway."""

        async def is_unmined(raw: bytes | None) -> bool:
            if raw is None:
                return True
            txid = txid_of(parse_foreign_envelope(raw)[0])
            return not await self.nodes.first(lambda node: node.has_record(txid))

        unmined = await ask_together(is_unmined, pending, max_concurrent=_MAX_CONCURRENT)
        return [raw for raw, is_left in zip(pending, unmined, strict=True) if is_left]


def _pick_offset(payout_id: int) -> tuple[int, int]:
    """The uniqueness offset of a payout: what it subtracts from its transaction's time, in ms, and from its
    fee limit, in sun.

    Nodes check neither. Two payouts have the same values once in about 2**35.
    """
    digest = hashlib.sha256(payout_id.to_bytes(8, "big")).digest()
    first, second = (int.from_bytes(part, "big") for part in (digest[:4], digest[4:8]))
    return first % OFFSET_RANGE_MS, second % _OFFSET_RANGE_SUN


def _list_unexpired(pending: Sequence[bytes | None], now_ms: int) -> list[bytes | None]:
    """What the chain may still take. An order that waits keeps what has expired for it."""
    return [raw for raw in pending if raw is None or _read(raw).expiration_ms > now_ms]


@lru_cache(maxsize=4096)
def _read(raw: bytes) -> TronTransaction:
    """Every signature asks for the same pending bytes, hundreds of them on a busy day."""
    return parse_raw(parse_foreign_envelope(raw)[0])


def _sum_burnt_sun(pending: Sequence[bytes | None], energy: int, prices: Prices, owned: Resources) -> int:
    """What a payout of `energy` and all that is pending take from the account: TRX that they send or burn."""
    sent = [None if raw is None else _read(raw) for raw in pending]
    calls = 1 + sum(one is None or one.contract is not None for one in sent)
    sent_sun = sum(one.amount_sun for one in sent if one is not None)
    return sent_sun + _burnt_sun(1 + len(sent), calls * energy, prices, owned)


def _burnt_sun(transactions: int, energy: int, prices: Prices, owned: Resources) -> int:
    """What transactions of `energy` in all burn, beyond what the account has of energy and bandwidth.

    Energy is burnt for what is missing. Bandwidth is burnt for all bytes of a transaction that the staked or
    the free bytes don't cover as a whole.
    """
    needed_energy = energy * (100 + _ENERGY_MARGIN_PERCENT) // 100
    missing_energy = max(0, needed_energy - max(0, owned.EnergyLimit - owned.EnergyUsed))
    covered = sum(
        max(0, limit - used) // _PAYOUT_BYTES
        for limit, used in ((owned.NetLimit, owned.NetUsed), (owned.freeNetLimit, owned.freeNetUsed))
    )
    burning_bytes = max(0, transactions - covered) * _PAYOUT_BYTES
    return missing_energy * prices.energy_sun + burning_bytes * prices.bandwidth_sun
