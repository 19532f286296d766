"""Cold wallets at the signer: it knows its own, refuses every other, and remembers what it signed."""

from pathlib import Path

import msgspec
import pytest
from tests.chains.signing import NOW_MS, RECIPIENT, RULES, USDT, WALLETS, Asking

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.keys.signing_journal import SignedPayment, SigningJournal
from merchant_wallet.chains.keys.signing_rules import ParsedRequest, read_request
from merchant_wallet.chains.signer import SigningRefused

OTHER = b"Z" * 20


def read(chain: str, purpose: str, cold: frozenset[bytes]) -> ParsedRequest:
    """What the rules say about the honest payout's bytes, asked for another purpose."""
    request = msgspec.structs.replace(Asking(chain, "payout").request(), purpose=purpose)
    limits = msgspec.structs.replace(RULES.chains[chain], cold=cold)
    return read_request(request, limits, WALLETS[chain], None)


@pytest.mark.parametrize("chain", [ERC20, TRC20])
def test_a_cold_transfer_goes_only_to_a_wallet_of_the_signers_own_settings(chain: str) -> None:
    assert read(chain, "cold", frozenset({RECIPIENT})).digest
    for known in (frozenset[bytes](), frozenset({OTHER})):
        with pytest.raises(SigningRefused, match=f"name it in its WALLET_{chain}_COLD_ADDRESSES"):
            read(chain, "cold", known)


@pytest.mark.parametrize("chain", [ERC20, TRC20])
def test_a_payout_never_goes_to_a_cold_wallet(chain: str) -> None:
    assert read(chain, "payout", frozenset({OTHER})).digest
    with pytest.raises(SigningRefused, match="a payout there"):
        read(chain, "payout", frozenset({RECIPIENT}))


def make(number: int, *, is_cold: bool, units: int = 100 * USDT, nonce: int = 0) -> SignedPayment:
    digest = f"{number};{is_cold};{nonce};{units}".encode()
    return SignedPayment(NOW_MS, number, ERC20, RECIPIENT, units, digest, nonce, None, is_cold)


def test_cold_transfers_and_orders_are_numbered_apart_and_each_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "signed.jsonl"
    journal = SigningJournal(path, 100 * USDT, 150 * USDT)
    journal.admit(make(5, is_cold=False))
    journal.admit(make(5, is_cold=True, nonce=1))
    # After a restart, too.
    again = SigningJournal(path, 100 * USDT, 150 * USDT)
    for is_cold, nonce in ((False, 1), (True, 2)):
        with pytest.raises(SigningRefused, match="it could be paid twice"):
            again.admit(make(5, is_cold=is_cold, nonce=nonce))
    with pytest.raises(SigningRefused, match="another recipient, amount or chain"):
        again.admit(make(5, is_cold=True, units=7, nonce=1))


def test_the_limits_of_payments_do_not_count_for_cold_money(tmp_path: Path) -> None:
    journal = SigningJournal(tmp_path / "signed.jsonl", 100 * USDT, 150 * USDT)
    journal.admit(make(1, is_cold=True, units=5_000 * USDT))
    journal.admit(make(1, is_cold=False))
    with pytest.raises(SigningRefused, match="at most 150 USDT an hour"):
        journal.admit(make(2, is_cold=False, nonce=2))


def test_a_record_of_a_payment_does_not_say_that_it_is_not_cold(tmp_path: Path) -> None:
    path = tmp_path / "signed.jsonl"
    journal = SigningJournal(path, 100 * USDT, 150 * USDT)
    journal.admit(make(1, is_cold=False))
    assert b"isCold" not in path.read_bytes()
