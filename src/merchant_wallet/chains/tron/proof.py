"""What became of a payout on TRON, and what counts as proof.

Rules:
- Only final blocks count (see `http`). If several nodes are configured, two must show the same.
- Paid: the receipt says SUCCESS, and the token's Transfer log is there. The function's return value is not
  used.
- Failed: the receipt says so.
- Void: the receipt says that the chain stopped it for a reason of ours or its own (`VOID_OUTCOMES`). It moved
  nothing, and its id is used.
- Expired needs more than "not found". The final chain has passed the transaction's expiration. Two nodes
  have each shown every block that could hold it: from its reference block, parent by parent, to the same
  block after the expiration. None of these blocks holds it.
- A transaction names when it was signed. No earlier block can hold it, so until later blocks are final
  nobody is asked for it.
- A lost index, a pruned block, a slow node or a contradiction leaves the payout pending.
"""

from collections.abc import Container, Sequence
from functools import partial
from typing import Final

import msgspec

from merchant_wallet.chains.node_texts import show_text
from merchant_wallet.chains.protocol import (
    Expired,
    FinalRecord,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Transfer,
    TransferLog,
    Verdict,
)
from merchant_wallet.chains.transfer_logs import make_final_record
from merchant_wallet.chains.transport import NodeFailed, ask_together
from merchant_wallet.chains.tron.answers import TransactionRecord
from merchant_wallet.chains.tron.http import FAILED, SUCCESS, BlockBody, TronNode, decode_message
from merchant_wallet.chains.tron.reader import (
    OFFSET_RANGE_MS,
    Movement,
    TronReader,
    movements_of,
    select_usable,
)
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    parse_envelope,
    parse_raw,
    reference_to,
    txid_of,
)

BLOCK_MS: Final = 3_000
MAX_CONCURRENT_BODIES: Final = 8
KEPT_BODIES: Final = 2_000
USUAL_BLOCKS: Final = 2
"""A transfer is usually in one of the first blocks after its signature."""

VOID_OUTCOMES: Final = frozenset({"OUT_OF_ENERGY", "OUT_OF_TIME"})
"""Failures that say nothing about the recipient: our coin or fee limit was too low, or the block's producer
was overloaded. The same transfer may succeed later.
"""

_UNKNOWN: Final = ("", SUCCESS)


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What one node says about the result of a transaction, and its final block."""

    block_hash: str
    block_number: int
    outcome: str
    is_failed: bool
    movements: tuple[Movement, ...]
    cause: str


class _Observation(msgspec.Struct, frozen=True, gc=False):
    """What one node said, and how far its final chain reached then."""

    final_number: int
    final_ms: int
    finding: Finding | None


class _Scan(msgspec.Struct, frozen=True, gc=False):
    """The last block of a complete scan, and whether the transaction was in one of the blocks."""

    last_hash: str
    is_there: bool


class TronProof:
    """Judges what was signed for a payout (see `protocol.Chain.judge`)."""

    def __init__(
        self, reader: TronReader, *, void_outcomes: Container[str] = (), needs_log: bool = True
    ) -> None:
        """A failure with one of `void_outcomes` is `Expired`, any other `ProvenUnpaid`.

        Unless `needs_log`, a success without a log of the token is final: the token may be any contract.
        """
        self._void_outcomes = void_outcomes
        self._needs_log = needs_log
        self._rules = reader.rules
        self._nodes = reader.nodes
        self._recent = reader.recent
        self._bodies: dict[tuple[TronNode, int], BlockBody] = {}

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """FinalRecord if one counted. ProvenUnpaid if one failed and none can count. Expired if all are void.
        Otherwise Pending.

        Never raises because of what nodes say. Raises ValueError for bytes that are not the platform's own,
        or that do not fit their id.
        """
        verdicts = [await self._judge_one(payout.transfer, one) for one in signed]
        final = [verdict for verdict in verdicts if isinstance(verdict, FinalRecord)]
        if len(final) > 1:
            hashes = " and ".join(verdict.tx_hash for verdict in final)
            return Pending(alert=f"payout {payout.payout_id} was paid more than once: {hashes}")
        if final:
            return final[0]
        for kind in (Pending, ProvenUnpaid, Expired):
            for verdict in reversed(verdicts):
                if isinstance(verdict, kind):
                    return verdict
        return Pending()

    async def has_lapsed(self, signed: Sequence[SignedTransfer]) -> bool:
        """Whether the only node shows every block that could hold these, and none of them does.

        It is no proof that they are void. If there are more nodes, two prove that in `judge`.
        """
        if self._nodes.quorum > 1:
            return False
        for one in signed:
            transaction = _read(one)
            end_ms = transaction.expiration_ms + self._rules.grace_ms
            scans = select_usable(await self._nodes.every(partial(self._scan, one, transaction, end_ms)))
            if not scans or any(scan.is_there for scan in scans):
                return False
        return True

    async def _judge_one(self, transfer: Transfer, signed: SignedTransfer) -> Verdict:
        transaction = _read(signed)
        from_ms = self._find_first_ms(transaction)
        observations = await self._nodes.every(lambda node: self._observe(node, signed.tx_hash, from_ms))
        seen = select_usable(observations)
        findings = [observation.finding for observation in seen if observation.finding is not None]
        if not findings:
            return await self._judge_absent(signed, transaction, seen)
        found = findings[0]
        if any(finding != found for finding in findings):
            return Pending(BLOCK_MS, alert=f"the nodes contradict each other about {signed.tx_hash}")
        if len(findings) < self._nodes.quorum:
            lacking = [one for one in seen if one.finding is None and one.final_number >= found.block_number]
            alert = f"a node lacks {signed.tx_hash}, which another has in its block" if lacking else None
            # A node that is only slow will have it soon, so no operator is alerted.
            return Pending(
                BLOCK_MS, alert=alert or (_away(observations) if len(seen) < len(observations) else None)
            )
        if found.is_failed and found.outcome in self._void_outcomes:
            return Expired(f"{signed.tx_hash} ended without effect: {found.cause}")
        return _judge_found(transfer, signed.tx_hash, transaction.owner, found, needs_log=self._needs_log)

    async def _observe(self, node: TronNode, txid: str, from_ms: int) -> _Observation:
        """What a node says of a transaction that no block before `from_ms` can hold. Raises NodeFailed."""
        # The order matters: a block that was final before the transaction was requested must show it.
        final = await self._recent.read((node, "solid"), node.solid)
        # All payouts under way ask for the final block together. It alone says that it is too early.
        record = await node.solid_record(txid) if final.time_ms >= from_ms else None
        if record is None:
            return _Observation(final.number, final.time_ms, None)
        number = record.blockNumber
        placed = await self._recent.read((node, number), lambda: node.header(number, is_solid=True))
        if placed is None:
            raise NodeFailed(node.name, f"calls {txid} final in a block that is not final")
        return _Observation(final.number, final.time_ms, self._finding(placed[0].hash, record))

    def _finding(self, block_hash: str, record: TransactionRecord) -> Finding:
        message = decode_message(record.resMessage)
        return Finding(
            block_hash=block_hash,
            block_number=record.blockNumber,
            outcome=record.receipt.result,
            is_failed=record.result == FAILED,
            movements=tuple(movements_of(record, self._rules.token)),
            cause=f"{show_text(record.receipt.result)} in block {record.blockNumber}"
            + (message and f": {message}"),
        )

    async def _judge_absent(
        self, signed: SignedTransfer, transaction: TronTransaction, seen: list[_Observation]
    ) -> Verdict:
        end_ms = transaction.expiration_ms + self._rules.grace_ms
        past = [observation for observation in seen if observation.final_ms >= end_ms]
        if len(past) < self._nodes.quorum:
            if len(seen) < self._nodes.quorum:
                return Pending(alert="too few nodes answer")
            return Pending(self._find_wait_ms(transaction, seen))
        if self._nodes.quorum < 2:
            return Pending(
                alert=f"{signed.tx_hash} has expired and is in no block, but one node alone proves nothing: "
                "configure a second node"
            )
        scans = await self._nodes.every(partial(self._scan, signed, transaction, end_ms))
        return self._judge_scans(signed.tx_hash, scans)

    def _find_wait_ms(self, transaction: TronTransaction, seen: Sequence[_Observation]) -> int | None:
        """How long until the first blocks that can hold it are final. None if they are."""
        left_ms = (
            self._find_first_ms(transaction)
            + USUAL_BLOCKS * BLOCK_MS
            - min(observation.final_ms for observation in seen)
        )
        return left_ms if left_ms > 0 else None

    def _find_first_ms(self, transaction: TronTransaction) -> int:
        """The chain's time when a transaction was signed. No block before it can hold it."""
        signed_ms = transaction.expiration_ms - self._rules.lifetime_ms
        # What was exported to be signed elsewhere lives longer, and names its moment.
        is_ours = signed_ms - transaction.timestamp_ms < OFFSET_RANGE_MS
        return signed_ms if is_ours else transaction.timestamp_ms

    def _judge_scans(self, txid: str, scans: Sequence[_Scan | NodeFailed]) -> Verdict:
        complete = select_usable(scans)
        if any(scan.is_there for scan in complete):
            return Pending(BLOCK_MS, alert=f"{txid} is in a block, but no two nodes say what became of it")
        if len({scan.last_hash for scan in complete}) > 1:
            return Pending(BLOCK_MS, alert="the nodes call different blocks final")
        if len(complete) < self._nodes.quorum:
            return Pending(BLOCK_MS, alert=f"{txid} has expired; {_away(scans)}")
        return Expired(f"{txid} expired and is in none of the blocks that could hold it")

    async def _scan(
        self, signed: SignedTransfer, transaction: TronTransaction, end_ms: int, node: TronNode
    ) -> _Scan:
        """Read one node's final blocks from the reference block to the first at or after `end_ms`.

        The chain takes a transaction only if the previous block is older than the expiration. So no later
        block can hold it. Raises NodeFailed for any gap.
        """
        reference = (transaction.ref_block_bytes, transaction.ref_block_hash)
        before: BlockBody | None = None
        is_there = False
        number = signed.built_at_block
        while before is None or before.block.time_ms < end_ms:
            numbers = range(number, number + MAX_CONCURRENT_BODIES)
            for body in await ask_together(partial(self._body, node), numbers):
                before = _check_follows(node, before, body, reference)
                is_there |= signed.tx_hash in before.txids
                if before.block.time_ms >= end_ms:
                    break
            number = numbers.stop
        return _Scan(before.block.hash, is_there)

    async def _body(self, node: TronNode, number: int) -> BlockBody | None:
        # A hundred payouts that expire together are searched for in the same final blocks.
        if (node, number) not in self._bodies:
            body = await node.solid_body(number)
            if body is None:
                return None
            while len(self._bodies) >= KEPT_BODIES:
                del self._bodies[next(iter(self._bodies))]
            self._bodies[node, number] = body
        return self._bodies[node, number]


def _read(signed: SignedTransfer) -> TronTransaction:
    raw_data, _ = parse_envelope(signed.raw)
    if txid_of(raw_data) != signed.tx_hash:
        raise ValueError(f"{signed.tx_hash} is not the id of its bytes")
    return parse_raw(raw_data)


def _judge_found(transfer: Transfer, txid: str, owner: bytes, found: Finding, *, needs_log: bool) -> Verdict:
    if found.is_failed and found.outcome not in _UNKNOWN:
        return ProvenUnpaid(f"the transfer failed on the chain: {found.cause}")
    if found.is_failed or found.outcome != SUCCESS:
        return Pending(alert=f"the receipt of {txid} says neither success nor failure")
    transfer_logs = [TransferLog(one.sender, one.recipient, one.amount_units) for one in found.movements]
    if needs_log and all(transfer_log.sender != owner for transfer_log in transfer_logs):
        return Pending(alert=f"{txid} succeeded without a Transfer log of the token from our wallet")
    return make_final_record(transfer, owner, transfer_logs, txid)


def _check_follows(
    node: TronNode, before: BlockBody | None, body: BlockBody | None, reference: tuple[bytes, bytes]
) -> BlockBody:
    """The block, if it is complete and follows on the branch that the transaction refers to. Otherwise
    NodeFailed.
    """
    if body is None:
        raise NodeFailed(node.name, "lacks a block that must be read")
    if body.is_empty == bool(body.txids):
        raise NodeFailed(node.name, f"does not keep the transactions of block {body.block.number}")
    if before is None and reference_to(body.block.hash) != reference:
        raise NodeFailed(node.name, f"block {body.block.number} is not the reference block")
    if before is not None and body.block.parent_hash != before.block.hash:
        raise NodeFailed(node.name, f"block {body.block.number} does not follow the one before")
    return body


def _away(answers: Sequence[object]) -> str:
    failures = [str(answer) for answer in answers if isinstance(answer, NodeFailed)]
    return "too few nodes say: " + ("; ".join(failures) if failures else "one is behind")
