"""What a signer may sign. The bytes are parsed and compared with what the order says. Pure.

Rules:
- Parsing is strict, so the bytes have only one meaning.
- Everything is compared: chain id, token contract, recipient, amount, coins, and the highest possible fee.
- Values of the order come from the request. All other values come from the signer's own configuration, also
  the cold wallets and the rescue addresses. So whoever changes the database can't name another one.
- A rescue moves any amount, because nobody knows what it is worth. So it may only go to those addresses, and
  never moves the token of the settings.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from merchant_wallet.base.addresses import ZERO, parse_address
from merchant_wallet.base.chains import COINS, is_evm
from merchant_wallet.base.currencies import USDT
from merchant_wallet.chains.evm import transactions as evm_transactions
from merchant_wallet.chains.evm.transactions import EvmTransaction, parse_transfer_call
from merchant_wallet.chains.signer import SigningRefused, SigningRequest
from merchant_wallet.chains.tron import transactions as tron_transactions
from merchant_wallet.chains.tron.transactions import TronTransaction

FROM_DEPOSIT: Final = frozenset({"sweep", "rescue"})
"""What is signed with the key of a deposit address."""
AMOUNT_BYTES: Final = 32
"""The amount of a rescue is a word of 256 bits, as in its call."""


class ChainLimits(msgspec.Struct, frozen=True):
    """The signer's own settings of a chain.

    `chain_id` is only in the bytes of EVM chains. TRON's bytes name their chain by a reference block.
    `fee_cap` is the most that one transaction may burn, and the most coin that a deposit address may get: wei
    or sun. `base_units` is how many of the token's smallest units are one unit of an order's amount.
    `cold` are the addresses that a `cold` transfer may go to, and no payout. A `rescue` may go there, and to
    the addresses of `rescue`.
    """

    token: bytes
    fee_cap: int
    chain_id: int = 0
    base_units: int = 1
    cold: frozenset[bytes] = frozenset()
    rescue: frozenset[bytes] = frozenset()


class SigningRules(msgspec.Struct, frozen=True):
    """The signer's own configuration: its chains and its limits in units of 10^-6."""

    chains: Mapping[str, ChainLimits]
    payment_limit_units: int
    hour_limit_units: int


class ParsedRequest(msgspec.Struct, frozen=True):
    """A checked request: the digest to sign, and when it can't count any more.

    `nonce` is the EVM nonce. Only one transaction with a nonce can count. After `expires_ms` the chain takes
    the transaction no more (TRON).
    """

    digest: bytes
    nonce: int | None = None
    expires_ms: int | None = None


def read_request(
    request: SigningRequest, limits: ChainLimits, wallet: bytes, deposit: bytes | None
) -> ParsedRequest:
    """Check that the bytes of a request do what it says and no more. Raises SigningRefused.

    `wallet` is the chain's hot wallet. `deposit` is the address of the request's source, if it has one.
    """
    _check_purpose(request, limits, wallet, deposit)
    try:
        if is_evm(request.chain):
            return _read_evm(request, limits, wallet)
        return _read_tron(request, limits, wallet, deposit)
    except ValueError as error:
        raise SigningRefused(f"these bytes are refused: {error}") from None


def _check_purpose(
    request: SigningRequest, limits: ChainLimits, wallet: bytes, deposit: bytes | None
) -> None:
    """Check that the transfer fits the purpose: its chain, currency, source, amount and recipient."""
    transfer, purpose = request.transfer, request.purpose
    _require(transfer.chain == request.chain, "the transfer belongs to another chain")
    has_deposit = purpose in FROM_DEPOSIT or purpose == "top_up"
    _require((deposit is not None) == has_deposit, f"a {purpose} has another source")
    if purpose == "rescue":
        _check_rescue(request, limits)
        return
    _require(
        transfer.token == (COINS[request.chain] if purpose == "top_up" else USDT),
        f"{transfer.token} is not what a {purpose} moves",
    )
    _require((transfer.amount_units > 0) == (purpose != "cancel"), f"not an amount for a {purpose}")
    if purpose == "payout":
        own = (ZERO, limits.token, wallet, *limits.cold)
        _require(transfer.recipient not in own, "a payout there would lose the money or pay ourselves")
    elif purpose == "cold":
        setting = f"WALLET_{request.chain}_COLD_ADDRESSES"
        _require(
            transfer.recipient in limits.cold,
            f"that is no cold wallet of this signer: name it in its {setting}",
        )
    else:
        target = deposit if purpose == "top_up" else wallet
        _require(transfer.recipient == target, f"a {purpose} never goes to that address")
    if purpose == "top_up":
        _require(transfer.amount_units <= limits.fee_cap, "more coin than a transaction may cost")


def _check_rescue(request: SigningRequest, limits: ChainLimits) -> None:
    """Check where a rescue goes, and that the token of the settings is not what it moves."""
    transfer = request.transfer
    _require(
        transfer.recipient in limits.rescue | limits.cold,
        f"that is no rescue address of this signer: name it in its WALLET_{request.chain}_RESCUE_ADDRESSES",
    )
    _require(
        len(request.base_units) == AMOUNT_BYTES and any(request.base_units), "not an amount for a rescue"
    )
    _require(_find_contract(request) != limits.token, "a rescue never moves the token of the settings")


def _find_contract(request: SigningRequest) -> bytes | None:
    """The contract of the token that a rescue moves. None for the chain's own coin."""
    token = request.transfer.token
    if token == COINS[request.chain]:
        return None
    try:
        return parse_address(request.chain, token)
    except ValueError:
        raise SigningRefused(f"a rescue names its token by the contract's address, not as {token}") from None


def _read_evm(request: SigningRequest, limits: ChainLimits, wallet: bytes) -> ParsedRequest:
    made = evm_transactions.parse_unsigned(request.unsigned)
    _require(made.chain_id == limits.chain_id, f"the bytes are for chain {made.chain_id}")
    _require(made.gas_limit * made.max_fee <= limits.fee_cap, "the bytes may cost more than the fee cap")
    if request.purpose == "cancel":
        _require(
            (made.to, made.value, made.call_data) == (wallet, 0, b""),
            "a cancel transaction moves nothing",
        )
    elif request.purpose == "top_up":
        coins = (made.to, made.value, made.call_data)
        expected = (request.transfer.recipient, request.transfer.amount_units, b"")
        _require(coins == expected, "the bytes send other coins than the request says")
    elif request.purpose == "rescue":
        _compare_rescue(request, made, (made.to, made.value) if not made.call_data else None, made.to)
        _require(not (made.call_data and made.value), "coins are sent along with the token")
    else:
        _compare_call(request, limits, made)
        _require(made.value == 0, "coins are sent along with the token")
    return ParsedRequest(evm_transactions.compute_signing_hash(request.unsigned), nonce=made.nonce)


def _read_tron(
    request: SigningRequest, limits: ChainLimits, wallet: bytes, deposit: bytes | None
) -> ParsedRequest:
    made = tron_transactions.parse_raw(request.unsigned)
    _require(request.purpose != "cancel", "a TRON wallet's transactions have no nonces to cancel")
    sender = deposit if request.purpose in FROM_DEPOSIT else wallet
    _require(made.owner == sender, "the bytes spend from another address")
    _require(made.fee_limit_sun <= limits.fee_cap, "the bytes may cost more than the fee cap")
    if request.purpose == "top_up":
        coins = (made.contract, made.recipient, made.amount_sun)
        expected = (None, request.transfer.recipient, request.transfer.amount_units)
        _require(coins == expected, "the bytes send other coins than the request says")
    elif request.purpose == "rescue":
        coin = (made.recipient, made.amount_sun) if made.contract is None else None
        _compare_rescue(request, made, coin, made.contract)
    else:
        _compare_call(request, limits, made)
    digest = tron_transactions.compute_signing_hash(request.unsigned)
    return ParsedRequest(digest, expires_ms=made.expiration_ms)


def _compare_call(
    request: SigningRequest, limits: ChainLimits, made: EvmTransaction | TronTransaction
) -> None:
    """Check that the bytes call our token's transfer with the request's recipient and amount."""
    called = made.to if isinstance(made, EvmTransaction) else made.contract
    _require(called == limits.token, "the bytes call another contract than the token's")
    recipient, base_units = parse_transfer_call(made.call_data)
    transfer = request.transfer
    _require(recipient == transfer.recipient, "the bytes pay another recipient than the request says")
    ordered = transfer.amount_units * limits.base_units
    _require(base_units == ordered, "the bytes pay another amount than the request says")


def _compare_rescue(
    request: SigningRequest,
    made: EvmTransaction | TronTransaction,
    coins: tuple[bytes | None, int] | None,
    called: bytes | None,
) -> None:
    """Check that the bytes move what the rescue says: these coins, or by a call of this contract."""
    contract, amount = _find_contract(request), int.from_bytes(request.base_units, "big")
    expected = (request.transfer.recipient, amount)
    if contract is None:
        _require(coins == expected, "the bytes send other coins than the request says")
        return
    _require(coins is None and called == contract, "the bytes call another contract than the request says")
    _require(parse_transfer_call(made.call_data) == expected, "the bytes move another amount, or elsewhere")


def _require(agrees: bool, cause: str) -> None:
    if not agrees:
        raise SigningRefused(cause)
