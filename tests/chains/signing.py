"""Requests for signatures as an honest chain makes them. Tests change one thing at a time."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from tests.named_tron import RUN

from merchant_wallet.base.addresses import derive_account, format_address
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.evm import transactions as evm_transactions
from merchant_wallet.chains.evm.transactions import EvmTransaction, encode_transfer_call
from merchant_wallet.chains.keys.keystore import Keystore
from merchant_wallet.chains.keys.signing_rules import ChainLimits, SigningRules
from merchant_wallet.chains.protocol import Transfer
from merchant_wallet.chains.signer import Purpose, SigningRequest, Source
from merchant_wallet.chains.tron import transactions as tron_transactions
from merchant_wallet.chains.tron.transactions import TronTransaction

NOW_MS = 1_763_712_000_000
USDT = 1_000_000
KEYS = {ERC20: bytes([1]) * 32, TRC20: bytes([2]) * 32}
SEED = hashlib.sha512(RUN.encode()).digest() if RUN else bytes(range(64))
PLACE = Source(account=3, branch=0, index=5)
RECIPIENT = bytes.fromhex("742d35cc6634c0532925a3b844bc454e4438f44e")
TOKENS = {ERC20: bytes([0xE]) * 20, TRC20: bytes([0xF]) * 20}
FEE_CAP = 10**15
RESCUED = 10**30
"""More than 64 bits, as of a token with 18 decimals."""
SAFE, FOREIGN = b"owner's own address!", bytes([0xA]) * 20
"""Where the signer's settings let rescues go, and another token."""
RULES = SigningRules(
    chains={
        ERC20: ChainLimits(TOKENS[ERC20], FEE_CAP, 31337, rescue=frozenset({SAFE})),
        TRC20: ChainLimits(TOKENS[TRC20], FEE_CAP, rescue=frozenset({SAFE})),
    },
    payment_limit_units=1_000 * USDT,
    hour_limit_units=2_500 * USDT,
)
WALLETS = Keystore(Path(), KEYS).wallets()
DEPOSITS = {
    chain: derive_account(SEED, coin, 3).child(0).child(5).public().address()
    for chain, coin in ((ERC20, 60), (TRC20, 195))
}


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    at_ms: int = NOW_MS

    def __call__(self) -> int:
        return self.at_ms


def honest(chain: str, purpose: Purpose) -> tuple[Transfer, EvmTransaction | TronTransaction]:
    """An honest transfer for this purpose, and the transaction that makes it."""
    wallet, deposit, token = WALLETS[chain], DEPOSITS[chain], TOKENS[chain]
    recipient, units, word = {
        "payout": (RECIPIENT, 100 * USDT, "USDT"),
        "cancel": (wallet, 0, "USDT"),
        "sweep": (wallet, 70 * USDT, "USDT"),
        "top_up": (deposit, 10**12, "ETH" if chain == ERC20 else "TRX"),
        "rescue": (SAFE, RESCUED, format_address(chain, FOREIGN)),
    }[purpose]
    transfer = Transfer(chain, word, recipient, 0 if purpose == "rescue" else units)
    token = FOREIGN if purpose == "rescue" else token
    calls = purpose in ("payout", "sweep", "rescue")
    call = encode_transfer_call(recipient, units) if calls else b""
    if chain == ERC20:
        to, value = (token, 0) if calls else (recipient, units)
        return transfer, EvmTransaction(31337, 7, 10**9, 2 * 10**9, 60_000, to, value, call)
    return transfer, TronTransaction(
        ref_block_bytes=b"ab",
        ref_block_hash=b"12345678",
        expiration_ms=NOW_MS + 60_000,
        timestamp_ms=NOW_MS,
        fee_limit_sun=30_000_000 if calls else 0,
        owner=deposit if purpose in ("sweep", "rescue") else wallet,
        contract=token if calls else None,
        call_data=call,
        recipient=None if calls else recipient,
        amount_sun=0 if calls else units,
    )


def encode(transaction: EvmTransaction | TronTransaction) -> bytes:
    """The bytes to sign."""
    if isinstance(transaction, EvmTransaction):
        return evm_transactions.encode_unsigned(transaction)
    return tron_transactions.encode_raw(transaction)


@dataclass
class Asking:
    """Builds a request: `made` changes the transaction, `said` the transfer, `rest` the request."""

    chain: str = ERC20
    purpose: Purpose = "payout"
    payout_id: int = 12
    made: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def request(self) -> SigningRequest:
        """The request with these changes."""
        transfer, transaction = honest(self.chain, self.purpose)
        source = PLACE if self.purpose in ("sweep", "top_up", "rescue") else None
        request = SigningRequest(
            self.chain,
            self.purpose,
            encode(msgspec.structs.replace(transaction, **self.made)),
            self.payout_id,
            msgspec.structs.replace(transfer, **self.said),
            source,
            RESCUED.to_bytes(32, "big") if self.purpose == "rescue" else b"",
        )
        return msgspec.structs.replace(request, **self.rest)


def pay(
    payout_id: int, amount: int, *, chain: str = ERC20, recipient: bytes = RECIPIENT, **made: Any
) -> SigningRequest:
    """An honest payout of `amount` USDT. `made` changes its transaction."""
    units = amount * USDT
    call = {"call_data": encode_transfer_call(recipient, units), **made}
    return Asking(chain, "payout", payout_id, call, {"recipient": recipient, "amount_units": units}).request()
