"""Sweeps on TRON: TRX goes to the deposit address, which burns it for the energy of the token transfer.

Rules:
- The fee limit (energy), the bytes (bandwidth) and the TRX at the address limit what a transfer can burn.
- Free bandwidth and energy of an account are not counted, so the real cost is never above the quoted cost.
- The hot wallet keeps enough TRX for several payouts.
- A contract that replaces the token, or is replaced by it, is not rescued: it moves customers' balances.
- Another token's answer to a transfer is not read: the main USDT of this chain answers false to its own.
- A second transaction is signed only after proof that the first has expired (`proof`), for TRX and for the
  token.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.base.chains import COINS, TRC20
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import UNITS_PER_COIN
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.issuer import require_current, require_no_fee
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    Expired,
    FinalRecord,
    Obstacle,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Transfer,
    Verdict,
)
from merchant_wallet.chains.signer import Signer
from merchant_wallet.chains.sweeps import (
    RESCUE,
    TOP_UP,
    ChainSweeper,
    Quote,
    Rescue,
    SweepTx,
    require_other,
    sign_sweep,
)
from merchant_wallet.chains.transport import NodeFailed, answer_of, attempt, for_signed
from merchant_wallet.chains.tron.answers import TransactionRecord
from merchant_wallet.chains.tron.chain import TronChain
from merchant_wallet.chains.tron.http import FAILED, Prices, TronNode
from merchant_wallet.chains.tron.proof import TronProof
from merchant_wallet.chains.tron.reader import OFFSET_RANGE_MS, TronReader, select_usable
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    encode_raw,
    join,
    recover_owner,
    reference_to,
    txid_of,
)

# The bytes of a transaction and the room that the chain reserves for its result.
_TOKEN_BYTES: Final = 345
_TOP_UP_BYTES: Final = 270
# What the chain charges for creating an account that receives its first TRX: both fees.
_ACTIVATION_SUN: Final = 1_100_000
_ENERGY_MARGIN_PERCENT: Final = 20
# The amount of the simulation before coin is sent: enough to show a token fee.
_TRIED_UNITS: Final = UNITS_PER_COIN
_KEPT_PAYOUTS: Final = 10
"""A top-up leaves the hot wallet TRX for so many payouts."""


class TronDraft(msgspec.Struct, frozen=True):
    """See `sweeps.Draft`."""

    signer: Signer
    sweep_tx: SweepTx
    transfer: Transfer
    sender: bytes
    raw_data: bytes
    height: int

    async def sign(self, nonce: int | None) -> SignedTransfer:
        """See `sweeps.Draft`. Raises Blocked, SignerAway, ValueError for a signature of another key."""
        signature = await sign_sweep(self.signer, self.sweep_tx, self.transfer, self.raw_data)
        if recover_owner(self.raw_data, signature) != self.sender:
            raise ValueError("the signer signed with another key than the sender's")
        return SignedTransfer(join(self.raw_data, signature), txid_of(self.raw_data), self.height)


class TronSweeper(ChainSweeper):
    """See `sweeps.Sweeper`."""

    def __init__(self, chain: TronChain, signer: Signer) -> None:
        super().__init__(chain, TRC20, coin=COINS[TRC20], token=USDT)
        self._chain = chain
        self._rules = chain.rules
        self._nodes = chain.nodes
        self._signer = signer
        self._proof = TronProof(chain)

    @property
    def has_nonces(self) -> bool:
        """False."""
        return False

    @property
    def fee_cap(self) -> int:
        """In sun."""
        return self._rules.fee_cap_sun

    async def quote(self, address: bytes, amount_units: int) -> Quote:
        """See `sweeps.Sweeper`. Raises Blocked, ChainAway."""
        energy_sun, prices = await self._energy_cost(address, amount_units, _ENERGY_MARGIN_PERCENT)
        account = await self._nodes.first(lambda node: node.account(address))
        top_up_fee = _TOP_UP_BYTES * prices.bandwidth_sun + (0 if account.address else _ACTIVATION_SUN)
        token_fee = energy_sun + _TOKEN_BYTES * prices.bandwidth_sun
        return Quote(account.balance, token_fee, top_up_fee)

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        """See `sweeps.Sweeper`. Raises ChainAway."""
        return await self._chain.foreign_balance(address, contract)

    async def quote_rescue(self, address: bytes, rescue: Rescue) -> Quote:
        """See `sweeps.Sweeper`. Raises Blocked, ChainAway."""
        account = await self._nodes.first(lambda node: node.account(address))
        prices = await self._nodes.first(TronNode.prices)
        top_up_fee = _TOP_UP_BYTES * prices.bandwidth_sun + (0 if account.address else _ACTIVATION_SUN)
        if rescue.contract is None:
            fee, left = await self._coin_fee(rescue, prices), account.balance - rescue.amount
            if left < fee:
                text = f"the address would keep {max(left, 0)} sun, and the transfer may burn {fee}"
                raise Blocked(Obstacle("fee", text))
            return Quote(left, fee, top_up_fee)
        energy_sun = await self._rescue_energy(address, rescue, prices, _ENERGY_MARGIN_PERCENT)
        return Quote(account.balance, energy_sun + _TOKEN_BYTES * prices.bandwidth_sun, top_up_fee)

    async def next_nonce(self, sender: bytes, known: int | None, *, is_first: bool) -> int:
        """Raises ValueError: TRON has no nonces."""
        raise ValueError("TRON has no nonces")

    async def draft(self, sweep_tx: SweepTx, earlier: Sequence[SignedTransfer]) -> TronDraft:
        """See `sweeps.Sweeper`. Raises Blocked, ChainAway."""
        if earlier and not isinstance(await self.judge(sweep_tx, earlier), Expired):
            raise Blocked(Obstacle("node", "what was signed before is not proven void"))
        contract, recipient, amount = self._find_call(sweep_tx)
        if sweep_tx.kind == TOP_UP:
            fee_limit_sun = await self._check_top_up(sweep_tx)
        elif contract is None:
            fee_limit_sun = await self._check_coin(sweep_tx)
        else:
            fee_limit_sun = await self._check_token(sweep_tx)
        now_ms, reference = await self._chain.moment()
        block_bytes, block_hash = reference_to(reference.hash)
        sender = self.sender_of(sweep_tx)
        transaction = TronTransaction(
            ref_block_bytes=block_bytes,
            ref_block_hash=block_hash,
            expiration_ms=now_ms + self._rules.lifetime_ms,
            # Nodes don't check the time. It makes the bytes of two sweeps of one address different.
            timestamp_ms=now_ms - sweep_tx.sweep_id % OFFSET_RANGE_MS,
            fee_limit_sun=fee_limit_sun,
            owner=sender,
            contract=contract,
            call_data=b"" if contract is None else encode_transfer_call(recipient, amount),
            recipient=recipient if contract is None else None,
            amount_sun=amount if contract is None else 0,
        )
        raw_data = encode_raw(transaction)
        return TronDraft(
            self._signer, sweep_tx, self.transfer_of(sweep_tx), sender, raw_data, reference.number
        )

    @for_signed
    async def judge(self, sweep_tx: SweepTx, signed: Sequence[SignedTransfer]) -> Verdict:
        """See `proof`. A transfer of TRX has no log and no result in its receipt, so it is judged here."""
        transfer, proof = self.transfer_of(sweep_tx), self._proof
        if self._find_call(sweep_tx)[0] is None:
            for one in signed:
                verdict = await self._judge_coin(transfer, one.tx_hash)
                if verdict is not None:
                    return verdict
        elif sweep_tx.kind == RESCUE:
            proof = self._make_proof(sweep_tx.rescued)
        return await proof.judge(Payout(sweep_tx.sweep_id, transfer), signed)

    async def has_lapsed(self, signed: Sequence[SignedTransfer]) -> bool:
        """See `sweeps.Sweeper`."""
        return await self._proof.has_lapsed(signed)

    async def fee_of(self, tx_hash: str) -> int | None:
        """From the record in a final block. Raises ChainAway."""
        fees = select_usable(await self._nodes.every(lambda node: node.solid_fee(tx_hash)))
        if not fees:
            raise ChainAway(f"no node says what {tx_hash} burnt")
        return next((fee for fee in fees if fee is not None), None)

    def _find_call(self, sweep_tx: SweepTx) -> tuple[bytes | None, bytes, int]:
        """The token's contract (None for TRX), the recipient and the amount of a transaction."""
        if sweep_tx.kind == TOP_UP:
            return None, sweep_tx.address, sweep_tx.amount
        if sweep_tx.kind == RESCUE:
            rescued = sweep_tx.rescued
            return rescued.contract, rescued.recipient, rescued.amount
        return self._rules.token, self.wallet, sweep_tx.amount

    def _make_proof(self, rescued: Rescue) -> TronProof:
        """Judges by the logs of another token."""
        rules = msgspec.structs.replace(self._rules, token=rescued.contract or self._rules.token)
        return TronProof(TronReader(rules, self._nodes), needs_log=False)

    async def _rescue_energy(
        self, address: bytes, rescue: Rescue, prices: Prices, margin_percent: int
    ) -> int:
        """What a rescue's energy costs in sun if all of it is burnt, with a margin. Raises Blocked."""
        if rescue.contract is None:
            return 0
        contract = rescue.contract
        if not await self._nodes.first(lambda node: node.has_contract(contract)):
            raise Blocked(Obstacle("token", "there is no contract at the token's address"))
        successors = [await self._chain.successor(), await self._chain.successor(contract)]
        require_other(TRC20, self._rules.token, contract, successors)
        try:
            call = await self._chain.open_token(contract).simulate(address, rescue.recipient, rescue.amount)
        except ChainAway as away:
            # Contracts fail without a revert, too. That the nodes answer was seen just before.
            raise Blocked(Obstacle("token", f"no node simulates the transfer: {away}")) from away
        if call.revert is not None:
            raise Blocked(Obstacle("token", f"the token refuses the simulated transfer: {call.revert}"))
        return call.energy * (100 + margin_percent) // 100 * prices.energy_sun

    async def _coin_fee(self, rescue: Rescue, prices: Prices) -> int:
        """The most that a transfer of TRX burns: its bytes, and the account of who never had TRX."""
        account = await self._nodes.first(lambda node: node.account(rescue.recipient))
        return _TOP_UP_BYTES * prices.bandwidth_sun + (0 if account.address else _ACTIVATION_SUN)

    async def _judge_coin(self, transfer: Transfer, txid: str) -> Verdict | None:
        """What enough nodes show about a transfer of TRX in one final block. None if too few do."""

        async def look(node: TronNode) -> tuple[str, TransactionRecord] | None:
            record = await node.solid_record(txid)
            if record is None:
                return None
            placed = await node.header(record.blockNumber, is_solid=True)
            if placed is None:
                raise NodeFailed(node.name, f"calls {txid} final in a block that is not final")
            return placed[0].hash, record

        found = [one for one in select_usable(await self._nodes.every(look)) if one is not None]
        shown = {(block_hash, record.result == FAILED) for block_hash, record in found}
        if len(shown) > 1:
            return Pending(alert=f"the nodes contradict each other about {txid}")
        if not found:
            return None
        if len(found) < self._nodes.quorum:
            return Pending()
        [(block_hash, is_failed)] = shown
        if is_failed:
            return ProvenUnpaid(f"{txid} failed in block {block_hash}")
        return FinalRecord(transfer, txid)

    async def _energy_cost(
        self, address: bytes, amount_units: int, margin_percent: int
    ) -> tuple[int, Prices]:
        """What a sweep's energy costs in sun if all of it is burnt, with a margin. Raises Blocked."""
        successor, refused, fee, tried, priced = await asyncio.gather(
            attempt(self._chain.token.successor()),
            attempt(self._chain.token.is_recently_blacklisted(self.wallet)),
            attempt(self._chain.token.compute_fee_units(amount_units)),
            attempt(self._chain.token.simulate(address, self.wallet, amount_units)),
            attempt(self._nodes.first(TronNode.prices)),
        )
        require_current([answer_of(successor)])
        if answer_of(refused):
            raise Blocked(Obstacle("wallet", "the token has blacklisted the hot wallet"))
        require_no_fee(amount_units, answer_of(fee))
        call, prices = answer_of(tried), answer_of(priced)
        if call.revert is not None:
            raise Blocked(Obstacle("token", f"the token refuses the simulated transfer: {call.revert}"))
        energy = call.energy * (100 + margin_percent) // 100
        return energy * prices.energy_sun, prices

    async def _check_token(self, sweep_tx: SweepTx) -> int:
        """The fee limit of the token transfer. Raises Blocked if the limit or the TRX at the address is too
        low.

        The quote had a margin for energy that grows dearer until now. So none is asked for again.
        """
        if sweep_tx.kind == RESCUE:
            prices = await self._nodes.first(TronNode.prices)
            needed_sun = await self._rescue_energy(sweep_tx.address, sweep_tx.rescued, prices, 0)
        else:
            needed_sun, prices = await self._energy_cost(sweep_tx.address, sweep_tx.amount, 0)
        bandwidth_sun = _TOKEN_BYTES * prices.bandwidth_sun
        held_sun = await self._chain.coin_balance(sweep_tx.address)
        limit_sun = min(sweep_tx.fee_limit, held_sun) - bandwidth_sun
        limit_sun = min(limit_sun, self.fee_cap)
        if limit_sun < needed_sun:
            text = f"the transfer may burn {needed_sun} sun for energy, and has {limit_sun} for it"
            raise Blocked(Obstacle("fee", text))
        return limit_sun

    async def _check_coin(self, sweep_tx: SweepTx) -> int:
        """The fee limit of a rescue of TRX, which is 0. Raises Blocked if its fee may be above its limit."""
        fee_sun = await self._coin_fee(sweep_tx.rescued, await self._nodes.first(TronNode.prices))
        left_sun = await self._chain.coin_balance(sweep_tx.address) - sweep_tx.amount
        limit_sun = min(sweep_tx.fee_limit, left_sun, self.fee_cap)
        if limit_sun < fee_sun:
            raise Blocked(Obstacle("fee", f"the transfer may burn {fee_sun} sun, and has {limit_sun} for it"))
        return 0

    async def _check_top_up(self, sweep_tx: SweepTx) -> int:
        """The fee limit of a top-up, which is 0. Raises Blocked if the hot wallet would keep too little for
        payouts.
        """
        if sweep_tx.rescue is not None:
            prices = await self._nodes.first(TronNode.prices)
            margin = _ENERGY_MARGIN_PERCENT
            energy_sun = await self._rescue_energy(sweep_tx.address, sweep_tx.rescue, prices, margin)
        else:
            energy_sun, prices = await self._energy_cost(
                sweep_tx.address, _TRIED_UNITS, _ENERGY_MARGIN_PERCENT
            )
        each_sun = energy_sun + _TOKEN_BYTES * prices.bandwidth_sun
        kept_sun = _KEPT_PAYOUTS * each_sun
        held_sun = await self._chain.coin_balance(self.wallet)
        if held_sun - sweep_tx.reserved - sweep_tx.amount - sweep_tx.fee_limit < kept_sun:
            text = f"the hot wallet holds {held_sun} sun and must keep {kept_sun} for payouts"
            raise Blocked(Obstacle("fuel", text))
        return 0
