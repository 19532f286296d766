"""A token with more decimals than the ledger: orders are exact, fractions of a unit are counted apart."""

import msgspec
import pytest
from tests.chains.signing import RECIPIENT, RULES, USDT, WALLETS, Asking
from tests.rows import each_row

from merchant_wallet.base.chains import BEP20, CHAINS, ERC20
from merchant_wallet.chains.evm.fees import suggest_offer
from merchant_wallet.chains.evm.node import EvmFees
from merchant_wallet.chains.evm.rules import EvmRules
from merchant_wallet.chains.evm.transactions import encode_transfer_call, parse_transfer_call
from merchant_wallet.chains.keys.signing_rules import read_request
from merchant_wallet.chains.protocol import FinalRecord, TokenTransfer, Transfer, TransferLog
from merchant_wallet.chains.signer import SigningRefused
from merchant_wallet.chains.transfer_logs import describe_final, make_final_record
from merchant_wallet.custody.comparison import add_remainders

BASE_UNITS = 10**12
RULES_OF_BEP20 = EvmRules(name=BEP20, token_decimals=18)


def test_a_payouts_call_is_exact_in_the_tokens_units() -> None:
    call = RULES_OF_BEP20.encode_transfer_call(RECIPIENT, 12_345_678)
    assert parse_transfer_call(call) == (RECIPIENT, 12_345_678 * BASE_UNITS)
    assert EvmRules().encode_transfer_call(RECIPIENT, 12_345_678) == encode_transfer_call(
        RECIPIENT, 12_345_678
    )


@each_row(
    "amount", [100 * USDT, 100 * USDT * BASE_UNITS + 1, 100 * USDT * BASE_UNITS - 1, 101 * USDT * BASE_UNITS]
)
def test_a_signer_refuses_bytes_with_another_amount_in_the_tokens_units(amount: int) -> None:
    limits = msgspec.structs.replace(RULES.chains[ERC20], base_units=BASE_UNITS)
    exact = {"call_data": encode_transfer_call(RECIPIENT, 100 * USDT * BASE_UNITS)}
    read_request(Asking(ERC20, made=exact).request(), limits, WALLETS[ERC20], None)
    other = {"call_data": encode_transfer_call(RECIPIENT, amount)}
    with pytest.raises(SigningRefused, match="another amount"):
        read_request(Asking(ERC20, made=other).request(), limits, WALLETS[ERC20], None)


def test_a_transfer_that_moved_a_part_of_a_unit_more_is_not_what_was_ordered() -> None:
    wallet = WALLETS[ERC20]
    ordered = Transfer(BEP20, "USDT", RECIPIENT, 5 * USDT)
    exact = make_final_record(ordered, wallet, [TransferLog(wallet, RECIPIENT, 5 * USDT)], "0xt1")
    assert exact == FinalRecord(ordered, "0xt1")
    more = make_final_record(ordered, wallet, [TransferLog(wallet, RECIPIENT, 5 * USDT, 1)], "0xt1")
    assert not more.is_exactly(ordered)
    assert "5 USDT and 1 of its smallest units from" in describe_final(more)


def test_remainders_add_up_to_whole_units_address_by_address() -> None:
    def transfer(recipient: bytes, remainder: int) -> TokenTransfer:
        return TokenTransfer(BEP20, "0xt", 0, 1, "0xb", bytes(20), recipient, 1, 0, remainder)

    one, other, stranger = (bytes([number]) * 20 for number in (1, 2, 3))
    later = [transfer(one, 3), transfer(one, 4), transfer(other, 9), transfer(stranger, 99)]
    assert add_remainders({}, later, {one, other}, 10) == {}
    assert add_remainders({one: 13}, later, {one, other}, 10) == {one: 2}
    assert add_remainders({one: 3, other: 1}, later, {one, other}, 10) == {one: 1, other: 1}
    assert add_remainders({}, [], {one}, 1) == {}


def test_what_leaves_an_address_takes_its_remainder_along() -> None:
    def transfer(sender: bytes, recipient: bytes, remainder: int) -> TokenTransfer:
        return TokenTransfer(BEP20, "0xt", 0, 1, "0xb", sender, recipient, 1, 0, remainder)

    ours, stranger = b"o" * 20, b"s" * 20
    come_and_gone = [transfer(stranger, ours, 6), transfer(ours, stranger, 6), transfer(stranger, ours, 6)]
    assert add_remainders({}, come_and_gone, {ours}, 10) == {}
    assert add_remainders({ours: 12}, [transfer(ours, stranger, 6)], {ours}, 10) == {}
    # Ten units came in, nine and a half are left: rounded down that is one unit less than the books say.
    assert add_remainders({}, [transfer(ours, stranger, 5)], {ours}, 10) == {ours: -1}
    assert add_remainders({}, [transfer(ours, ours, 5)], {ours}, 10) == {}


def test_where_the_base_fee_is_nothing_the_min_tip_is_offered() -> None:
    least = CHAINS[BEP20].min_tip
    offer = suggest_offer(EvmFees(0, (0, 0, 0)), least)
    assert (offer.max_priority_fee, offer.max_fee) == (least, least)
    dearer = suggest_offer(EvmFees(0, (2 * least,) * 3), least)
    assert (dearer.max_priority_fee, dearer.max_fee) == (2 * least, 2 * least)
