"""What a signer may sign: the honest request of each purpose, and each way to lie in one."""

from typing import Any

import pytest
from tests.chains.signing import (
    DEPOSITS,
    FEE_CAP,
    RECIPIENT,
    RESCUED,
    RULES,
    SAFE,
    TOKENS,
    USDT,
    WALLETS,
    Asking,
    encode,
    honest,
)
from tests.rows import each_row

from merchant_wallet.base.addresses import ZERO, format_address
from merchant_wallet.base.chains import COINS, ERC20, TRC20
from merchant_wallet.chains.evm import transactions as evm_transactions
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.keys.signing_rules import ParsedRequest, read_request
from merchant_wallet.chains.signer import Purpose, SigningRefused
from merchant_wallet.chains.tron import transactions as tron_transactions

OTHER = bytes([0xAB]) * 20
HONEST: list[tuple[str, Purpose]] = [
    (ERC20, "payout"),
    (ERC20, "cancel"),
    (ERC20, "sweep"),
    (ERC20, "top_up"),
    (ERC20, "rescue"),
    (TRC20, "rescue"),
    (TRC20, "payout"),
    (TRC20, "sweep"),
    (TRC20, "top_up"),
]


def read(asking: Asking) -> ParsedRequest:
    """The rules' reading of a request. The deposit address is derived from its source."""
    request = asking.request()
    deposit = DEPOSITS[asking.chain] if request.source else None
    return read_request(request, RULES.chains[asking.chain], WALLETS[asking.chain], deposit)


@each_row(("chain", "purpose"), HONEST)
def test_an_honest_request_is_read(chain: str, purpose: Purpose) -> None:
    parsed = read(Asking(chain, purpose))
    unsigned = encode(honest(chain, purpose)[1])
    if chain == ERC20:
        assert parsed == ParsedRequest(evm_transactions.compute_signing_hash(unsigned), nonce=7)
    else:
        expires_ms = tron_transactions.parse_raw(unsigned).expiration_ms
        assert parsed == ParsedRequest(
            tron_transactions.compute_signing_hash(unsigned), expires_ms=expires_ms
        )


TOKEN_TEXTS = {chain: format_address(chain, token) for chain, token in TOKENS.items()}
LIES: list[tuple[str, Purpose, dict[str, Any], str]] = [
    (ERC20, "payout", {"made": {"chain_id": 1}}, "the bytes are for chain 1"),
    (ERC20, "payout", {"made": {"to": OTHER}}, "another contract"),
    (ERC20, "payout", {"made": {"value": 1}}, "coins are sent along"),
    (ERC20, "payout", {"made": {"call_data": encode_transfer_call(OTHER, 100 * USDT)}}, "another recipient"),
    (ERC20, "payout", {"made": {"call_data": encode_transfer_call(RECIPIENT, 101 * USDT)}}, "another amount"),
    (
        ERC20,
        "payout",
        {"made": {"call_data": encode_transfer_call(RECIPIENT, 100 * USDT) + b"\0"}},
        "these bytes",
    ),
    (ERC20, "payout", {"made": {"call_data": b""}}, "these bytes"),
    (ERC20, "payout", {"made": {"call_data": bytes.fromhex("095ea7b3") + bytes(64)}}, "these bytes"),
    (ERC20, "payout", {"made": {"gas_limit": FEE_CAP // (2 * 10**9) + 1}}, "fee cap"),
    (ERC20, "payout", {"made": {"max_fee": FEE_CAP // 60_000 + 1}}, "fee cap"),
    (ERC20, "cancel", {"made": {"to": OTHER}}, "a cancel transaction moves nothing"),
    (ERC20, "cancel", {"made": {"value": 1}}, "a cancel transaction moves nothing"),
    (ERC20, "cancel", {"made": {"call_data": b"\1"}}, "a cancel transaction moves nothing"),
    (ERC20, "cancel", {"made": {"max_fee": FEE_CAP}}, "fee cap"),
    (ERC20, "cancel", {"said": {"amount_units": 1}}, "not an amount"),
    (ERC20, "sweep", {"made": {"call_data": encode_transfer_call(OTHER, 70 * USDT)}}, "another recipient"),
    (ERC20, "sweep", {"made": {"value": 1}}, "coins are sent along"),
    (ERC20, "top_up", {"made": {"to": OTHER}}, "other coins"),
    (ERC20, "top_up", {"made": {"value": 10**12 + 1}}, "other coins"),
    (ERC20, "top_up", {"made": {"call_data": b"\1"}}, "other coins"),
    (ERC20, "top_up", {"made": {"value": FEE_CAP + 1}, "said": {"amount_units": FEE_CAP + 1}}, "more coin"),
    (ERC20, "top_up", {"said": {"token": "USDT"}}, "not what a top_up moves"),
    *[
        row
        for chain in (ERC20, TRC20)
        for row in (
            (chain, "rescue", {"made": {"call_data": encode_transfer_call(OTHER, RESCUED)}}, "or elsewhere"),
            (chain, "rescue", {"made": {"call_data": encode_transfer_call(SAFE, 1)}}, "another amount"),
            (chain, "rescue", {"said": {"recipient": OTHER}}, "no rescue address of this signer"),
            (chain, "rescue", {"said": {"recipient": WALLETS[chain]}}, "no rescue address of this signer"),
            (chain, "rescue", {"said": {"token": "USDT"}}, "names its token by the contract's address"),
            (chain, "rescue", {"said": {"token": TOKEN_TEXTS[chain]}}, "the token of the settings"),
            (chain, "rescue", {"rest": {"base_units": b""}}, "not an amount"),
            (chain, "rescue", {"rest": {"base_units": bytes(32)}}, "not an amount"),
            (chain, "rescue", {"said": {"token": COINS[chain]}}, "other coins"),
        )
    ],
    (ERC20, "rescue", {"made": {"to": TOKENS[ERC20]}}, "another contract"),
    (ERC20, "rescue", {"made": {"value": 1}}, "coins are sent along"),
    (ERC20, "rescue", {"made": {"max_fee": FEE_CAP}}, "fee cap"),
    (TRC20, "rescue", {"made": {"contract": TOKENS[TRC20]}}, "another contract"),
    (TRC20, "rescue", {"made": {"owner": WALLETS[TRC20]}}, "another address"),
    (TRC20, "rescue", {"made": {"fee_limit_sun": FEE_CAP + 1}}, "fee cap"),
    (TRC20, "payout", {"made": {"owner": OTHER}}, "another address"),
    (TRC20, "payout", {"made": {"owner": DEPOSITS[TRC20]}}, "another address"),
    (TRC20, "payout", {"made": {"contract": OTHER}}, "another contract"),
    (TRC20, "payout", {"made": {"fee_limit_sun": FEE_CAP + 1}}, "fee cap"),
    (TRC20, "payout", {"made": {"call_data": encode_transfer_call(OTHER, 100 * USDT)}}, "another recipient"),
    (TRC20, "payout", {"made": {"call_data": encode_transfer_call(RECIPIENT, 99 * USDT)}}, "another amount"),
    (TRC20, "sweep", {"made": {"owner": WALLETS[TRC20]}}, "another address"),
    (TRC20, "top_up", {"made": {"recipient": OTHER}}, "other coins"),
    (TRC20, "top_up", {"made": {"amount_sun": 10**12 + 1}}, "other coins"),
    (TRC20, "top_up", {"made": {"owner": DEPOSITS[TRC20]}}, "another address"),
]


@each_row(("chain", "purpose", "changes", "said"), LIES)
def test_bytes_that_do_something_else_are_refused(
    chain: str, purpose: Purpose, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(SigningRefused, match=said):
        read(Asking(chain, purpose, **changes))


@each_row("chain", [ERC20, TRC20])
@each_row(
    ("said", "cause"),
    [
        ({"recipient": OTHER}, "another recipient"),
        ({"amount_units": 100 * USDT + 1}, "another amount"),
        ({"token": "KFB"}, "not what a payout moves"),
        ({"chain": "BEP20"}, "another chain"),
        ({"amount_units": 0}, "not an amount"),
        ({"amount_units": -1}, "not an amount"),
        ({"recipient": ZERO}, "lose the money"),
    ],
)
def test_an_order_that_says_something_else_is_refused(chain: str, said: dict[str, Any], cause: str) -> None:
    with pytest.raises(SigningRefused, match=cause):
        read(Asking(chain, said=said))


@pytest.mark.parametrize("chain", [ERC20, TRC20])
def test_the_platforms_own_addresses_are_never_paid(chain: str) -> None:
    for own in (TOKENS[chain], WALLETS[chain]):
        call = {"call_data": encode_transfer_call(own, 100 * USDT)}
        with pytest.raises(SigningRefused, match="lose the money or pay ourselves"):
            read(Asking(chain, made=call, said={"recipient": own}))


@each_row(("chain", "purpose"), HONEST)
def test_a_purpose_goes_only_where_it_may(chain: str, purpose: Purpose) -> None:
    for other in HONEST:
        if other[0] == chain and other[1] != purpose:
            with pytest.raises(SigningRefused):
                read(Asking(chain, purpose, rest={"purpose": other[1]}))


@pytest.mark.parametrize("purpose", ["sweep", "top_up", "rescue"])
def test_a_deposit_address_is_named_by_its_source(purpose: Purpose) -> None:
    with pytest.raises(SigningRefused, match="another source"):
        read(Asking(ERC20, purpose, rest={"source": None}))


@each_row("chain", [ERC20, TRC20])
def test_a_rescue_of_coin_sends_exactly_that_and_only_there(chain: str) -> None:
    five = {"base_units": (5).to_bytes(32, "big")}

    def ask(recipient: bytes, amount: int) -> ParsedRequest:
        made = {"to": recipient, "value": amount}
        if chain == TRC20:
            made = {"contract": None, "recipient": recipient, "amount_sun": amount, "fee_limit_sun": 0}
        return read(Asking(chain, "rescue", 1, made | {"call_data": b""}, {"token": COINS[chain]}, five))

    assert ask(SAFE, 5).digest
    for recipient, amount in ((OTHER, 5), (SAFE, 6)):
        with pytest.raises(SigningRefused, match="other coins"):
            ask(recipient, amount)


def test_tron_has_no_cancel_transaction() -> None:
    transfer = Asking(ERC20, "cancel").request().transfer
    said = {"recipient": WALLETS[TRC20], "amount_units": 0, "token": transfer.token}
    with pytest.raises(SigningRefused, match="no nonces to cancel"):
        read(Asking(TRC20, "payout", said=said, rest={"purpose": "cancel"}))


@pytest.mark.parametrize("chain", [ERC20, TRC20])
def test_bytes_in_another_form_are_refused(chain: str) -> None:
    unsigned = Asking(chain).request().unsigned
    for odd in (b"", unsigned + b"\0", unsigned[:-1], b"\x01" + unsigned[1:], unsigned * 2):
        with pytest.raises(SigningRefused, match="these bytes are refused"):
            read(Asking(chain, rest={"unsigned": odd}))


@pytest.mark.parametrize("chain", [ERC20, TRC20])
def test_no_single_flipped_bit_is_signed_as_the_same_payment(chain: str) -> None:
    request = Asking(chain).request()
    honest_reading = read(Asking(chain))
    free = 0
    for position in range(len(request.unsigned) * 8):
        flipped = bytearray(request.unsigned)
        flipped[position // 8] ^= 1 << position % 8
        try:
            parsed = read(Asking(chain, rest={"unsigned": bytes(flipped)}))
        except SigningRefused:
            continue
        # The chain may choose fees below the cap, nonces and times, but neither recipient nor amount.
        assert parsed.digest != honest_reading.digest
        assert moved(chain, bytes(flipped)) == (TOKENS[chain], RECIPIENT, 100 * USDT)
        free += 1
    assert free > 0


def moved(chain: str, unsigned: bytes) -> tuple[bytes | None, bytes, int]:
    """The contract that the bytes call, the recipient and the amount."""
    if chain == ERC20:
        made = evm_transactions.parse_unsigned(unsigned)
        return made.to, *evm_transactions.parse_transfer_call(made.call_data)
    tron = tron_transactions.parse_raw(unsigned)
    return tron.contract, *evm_transactions.parse_transfer_call(tron.call_data)
