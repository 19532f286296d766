"""Sweeps on an EVM chain: the cost of emptying a deposit address, and the two transactions that do it.

Rules:
- The fee limit of a transaction bounds its gas limit times its highest fee. That holds for replacements too.
- A deposit address can burn no more than the coin that was sent to it.
- The hot wallet keeps enough coin for a payout: sweeps must not stop payouts.
- A token is not swept into a wallet that its issuer has blacklisted, although the token would allow it. It is
  not swept either while the token takes a fee, or if another contract replaces it.
- A contract that replaces the token, or is replaced by it, is not rescued: it moves customers' balances.
- A rescue of coin leaves enough at the address to outbid its own transaction once.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from merchant_wallet.base.chains import COINS
from merchant_wallet.base.currencies import LEDGER_DECIMALS
from merchant_wallet.base.money import UNITS_PER_COIN
from merchant_wallet.chains.evm import verdict as evm_verdict
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.evm.conditions import read_fees
from merchant_wallet.chains.evm.fees import Offer, outbid, suggest_offer
from merchant_wallet.chains.evm.node import EvmFees
from merchant_wallet.chains.evm.nonces import next_nonce
from merchant_wallet.chains.evm.token import require_sweepable
from merchant_wallet.chains.evm.transactions import (
    EvmTransaction,
    encode_transfer_call,
    encode_unsigned,
    hash_of,
    join,
    parse_signed,
    recover_sender,
)
from merchant_wallet.chains.jsonrpc import CallReverted
from merchant_wallet.chains.protocol import (
    Blocked,
    ChainAway,
    FinalRecord,
    Obstacle,
    Payout,
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
from merchant_wallet.chains.transport import NodeRefused, for_signed

_PLAIN_GAS: Final = 21_000
# The hot wallet may be empty when the token arrives. A new holder's entry then costs 17,100 gas more.
_GAS_MARGIN: Final = 25_000
_RESCUE_OFFERS: Final = 2


class EvmDraft(msgspec.Struct, frozen=True):
    """See `sweeps.Draft`. `made` has its nonce if something was signed for it before."""

    signer: Signer
    sweep_tx: SweepTx
    transfer: Transfer
    sender: bytes
    made: EvmTransaction
    height: int

    async def sign(self, nonce: int | None) -> SignedTransfer:
        """See `sweeps.Draft`. Raises Blocked, SignerAway, ValueError for a signature of another key."""
        if nonce is None:
            raise ValueError("a transaction on this chain needs its nonce")
        unsigned = encode_unsigned(msgspec.structs.replace(self.made, nonce=nonce))
        raw = join(unsigned, await sign_sweep(self.signer, self.sweep_tx, self.transfer, unsigned))
        if recover_sender(raw) != self.sender:
            raise ValueError("the signer's signature is not the sender's")
        return SignedTransfer(raw, hash_of(raw), self.height)


class EvmSweeper(ChainSweeper):
    """See `sweeps.Sweeper`."""

    def __init__(self, chain: EvmChain, signer: Signer) -> None:
        """`chain` has a wallet."""
        rules = chain.rules
        super().__init__(chain, rules.name, coin=COINS[rules.name], token=rules.currency)
        self._chain = chain
        self._rules = chain.rules
        self._nodes = chain.nodes
        self._signer = signer

    @property
    def has_nonces(self) -> bool:
        """True."""
        return True

    @property
    def fee_cap(self) -> int:
        """In wei."""
        return self._rules.fee_cap_wei

    async def quote(self, address: bytes, amount_units: int) -> Quote:
        """See `sweeps.Sweeper`. Raises Blocked, ChainAway."""
        gas = await self._gas(address, amount_units)
        offer = suggest_offer(await read_fees(self._nodes), self._chain.rules_now.min_tip_wei)
        held = await self._chain.coin_balance(address)
        return Quote(held, gas * offer.max_fee, _PLAIN_GAS * offer.max_fee)

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        """See `sweeps.Sweeper`. The lowest that nodes show. Raises ChainAway."""
        return await self._chain.foreign_balance(address, contract)

    async def quote_rescue(self, address: bytes, rescue: Rescue) -> Quote:
        """See `sweeps.Sweeper`. Raises Blocked, ChainAway."""
        offer = suggest_offer(await read_fees(self._nodes), self._chain.rules_now.min_tip_wei)
        held = await self._chain.coin_balance(address)
        if rescue.contract is None:
            # With less than its fee at the address the chain itself would refuse the estimate.
            left = held - rescue.amount
            gas = await self._rescue_gas(address, rescue) if left >= 0 else _PLAIN_GAS
            fee = _RESCUE_OFFERS * gas * offer.max_fee
            if left < fee:
                text = f"the address would keep {max(left, 0)} wei, and the transfer may burn {fee}"
                raise Blocked(Obstacle("fee", text))
            return Quote(left, fee, _PLAIN_GAS * offer.max_fee)
        gas = await self._rescue_gas(address, rescue)
        return Quote(held, gas * offer.max_fee, _PLAIN_GAS * offer.max_fee)

    async def next_nonce(self, sender: bytes, known: int | None, *, is_first: bool) -> int:
        """See `nonces`. Raises ChainAway, Blocked."""
        return await next_nonce(self._nodes, sender, self._rules.chain_id, known, is_first=is_first)

    async def draft(self, sweep_tx: SweepTx, earlier: Sequence[SignedTransfer]) -> EvmDraft:
        """See `sweeps.Sweeper`. Raises Blocked, ChainAway."""
        sender = self.sender_of(sweep_tx)
        gas = await self._find_gas(sweep_tx)
        fee_limit = min(sweep_tx.fee_limit, self.fee_cap, await self._affordable(sweep_tx))
        fees = await read_fees(self._nodes)
        min_tip_wei = self._chain.rules_now.min_tip_wei
        offer = _bounded(fees, min_tip_wei, _transactions(sweep_tx, earlier), fee_limit // gas)
        recipient, value, call_data = self._find_call(sweep_tx)
        made = EvmTransaction(
            self._rules.chain_id,
            sweep_tx.nonce or 0,
            offer.max_priority_fee,
            offer.max_fee,
            gas,
            recipient,
            value,
            call_data,
        )
        height = (await self._chain.head()).number
        return EvmDraft(self._signer, sweep_tx, self.transfer_of(sweep_tx), sender, made, height)

    @for_signed
    async def judge(self, sweep_tx: SweepTx, signed: Sequence[SignedTransfer]) -> Verdict:
        """See `verdict`. A coin transfer leaves no log: only the success of its transaction is known."""
        transfer = self.transfer_of(sweep_tx)
        sender = self.sender_of(sweep_tx)
        payout = Payout(sweep_tx.sweep_id, transfer, sweep_tx.nonce)
        rules, moves_coin = self._rules, sweep_tx.kind == TOP_UP
        if sweep_tx.kind == RESCUE:
            moves_coin = sweep_tx.rescued.contract is None
            # The logs of the other token, in its smallest units.
            rules = msgspec.structs.replace(
                rules, token=sweep_tx.rescued.contract or rules.token, token_decimals=LEDGER_DECIMALS
            )
        verdict = await evm_verdict.judge(self._nodes, evm_verdict.PayoutQuery(rules, sender, payout, signed))
        if moves_coin and isinstance(verdict, FinalRecord):
            return FinalRecord(transfer, verdict.tx_hash)
        return verdict

    async def has_lapsed(self, signed: Sequence[SignedTransfer]) -> bool:
        """False: a transaction never expires."""
        return False

    async def fee_of(self, tx_hash: str) -> int | None:
        """Gas used times its price, from the first receipt that a node has. Raises ChainAway."""
        answers = await self._nodes.every(lambda node: node.fee(tx_hash))
        fees = [fee for fee in answers if isinstance(fee, int)]
        if not fees and not any(fee is None for fee in answers):
            raise ChainAway("; ".join(map(str, answers)))
        return fees[0] if fees else None

    async def _affordable(self, sweep_tx: SweepTx) -> int:
        """What the sender can burn for the transaction. Raises Blocked if the hot wallet has too little."""
        if sweep_tx.kind != TOP_UP:
            held = await self._chain.coin_balance(sweep_tx.address)
            is_coin = sweep_tx.kind == RESCUE and sweep_tx.rescued.contract is None
            return max(0, held - sweep_tx.amount) if is_coin else held
        held = await self._chain.coin_balance(self.wallet)
        spare = held - sweep_tx.reserved - self.fee_cap - sweep_tx.amount
        if spare < 0:
            text = f"the hot wallet holds {held} wei and must keep {self.fee_cap} for a payout"
            raise Blocked(Obstacle("fuel", text))
        return spare

    def _find_call(self, sweep_tx: SweepTx) -> tuple[bytes, int, bytes]:
        """Recipient, wei and call data of a transaction."""
        if sweep_tx.kind == TOP_UP:
            return sweep_tx.address, sweep_tx.amount, b""
        if sweep_tx.kind == RESCUE:
            return _call_of(sweep_tx.rescued)
        return self._rules.token, 0, self._rules.encode_transfer_call(self.wallet, sweep_tx.amount)

    async def _find_gas(self, sweep_tx: SweepTx) -> int:
        """The gas limit of a transaction. Raises Blocked."""
        if sweep_tx.kind == RESCUE:
            return await self._rescue_gas(sweep_tx.address, sweep_tx.rescued)
        if sweep_tx.kind == TOP_UP:
            return await self._top_up_gas(sweep_tx)
        return await self._gas(sweep_tx.address, sweep_tx.amount)

    async def _rescue_gas(self, address: bytes, rescue: Rescue) -> int:
        """The gas limit of a rescue, which is simulated now. Raises Blocked."""
        to, value, call_data = _call_of(rescue)
        if rescue.contract is not None:
            await self._check_other_token(rescue.contract)
        try:
            return await self._simulate(address, to, call_data, value)
        except NodeRefused as refused:
            # Contracts fail without a revert, too: an assertion of old ones, or an endless loop.
            raise Blocked(Obstacle("token", f"no node simulates the transfer: {refused}")) from refused

    async def _check_other_token(self, contract: bytes) -> None:
        """Raises Blocked if a contract can't be a token of its own."""
        if not await self._chain.has_code(contract):
            raise Blocked(Obstacle("token", "there is no contract at the token's address"))
        successors = [await self._chain.successor(), await self._chain.successor(contract)]
        require_other(self._rules.name, self._rules.token, contract, successors)

    async def _gas(self, address: bytes, amount_units: int) -> int:
        """The gas limit of a sweep, which is simulated now. Raises Blocked."""
        await self._check_token(amount_units)
        call_data = self._rules.encode_transfer_call(self.wallet, amount_units)
        return await self._simulate(address, self._rules.token, call_data)

    async def _simulate(self, address: bytes, to: bytes, call_data: bytes, value: int = 0) -> int:
        """The gas limit of a transaction of a deposit address, which is simulated now. Raises Blocked."""
        answer = b""
        try:
            if call_data:
                answer = await self._nodes.first(lambda node: node.call(to, call_data, sender=address))
            estimate = await self._nodes.first(
                lambda node: node.estimate_gas(to, call_data, address, value=value)
            )
        except CallReverted as error:
            refused = "the token refuses the simulated transfer" if call_data else "the address takes no coin"
            raise Blocked(Obstacle("token", f"{refused}: {error}")) from error
        # The token of the settings is known, whatever it answers.
        if answer and not any(answer) and to != self._rules.token:
            raise Blocked(Obstacle("token", "the token answers false to the simulated transfer"))
        if not call_data and estimate <= _PLAIN_GAS:
            return _PLAIN_GAS
        gas = estimate + _GAS_MARGIN
        if gas > self._rules.max_gas:
            raise Blocked(Obstacle("fee", f"a transfer needs {gas} units of gas"))
        return gas

    async def _top_up_gas(self, sweep_tx: SweepTx) -> int:
        """The gas limit of a top-up. Raises Blocked if the token transfer after it would fail."""
        if sweep_tx.rescue is not None:
            await self._rescue_gas(sweep_tx.address, sweep_tx.rescue)
        else:
            await self._check_token(UNITS_PER_COIN)
        return _PLAIN_GAS

    async def _check_token(self, amount_units: int) -> None:
        require_sweepable(await self._chain.read_token_states(), amount_units, self._rules.base_units)


def _call_of(rescue: Rescue) -> tuple[bytes, int, bytes]:
    """Recipient, wei and call data of a rescue."""
    if rescue.contract is None:
        return rescue.recipient, rescue.amount, b""
    return rescue.contract, 0, encode_transfer_call(rescue.recipient, rescue.amount)


def _transactions(sweep_tx: SweepTx, earlier: Sequence[SignedTransfer]) -> list[EvmTransaction]:
    """The transactions to replace. Raises ValueError if one has another nonce."""
    transactions = [parse_signed(signed.raw)[0] for signed in earlier]
    if any(transaction.nonce != sweep_tx.nonce for transaction in transactions):
        raise ValueError("what was signed before has another nonce")
    return transactions


def _bounded(fees: EvmFees, min_tip: int, earlier: Sequence[EvmTransaction], most: int) -> Offer:
    """The fee offer, at most `most` wei per unit of gas. Raises Blocked if no such offer can succeed now."""
    offer, least = suggest_offer(fees, min_tip), Offer(0, 0)
    for transaction in earlier:
        offer, least = outbid(transaction, offer), outbid(transaction, least)
    cost = fees.base_fee + offer.max_priority_fee
    if max(least.max_fee, cost) > most:
        text = (
            f"a unit of gas costs {cost} wei ({fees.base_fee} and a tip of {offer.max_priority_fee}), "
            f"and the sweep may pay {most} wei"
        )
        if least.max_fee > cost:
            text += f"; replacing its earlier transaction takes {least.max_fee} wei"
        raise Blocked(Obstacle("fee", text))
    return Offer(offer.max_priority_fee, min(offer.max_fee, most))
