"""What a signer remembers: limits, orders, restarts, several processes, files that were cut or changed."""

import os
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.chains.signing import NOW_MS, RECIPIENT, USDT

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.chains.keys.signing_journal import Release, SignedPayment, SigningJournal
from merchant_wallet.chains.signer import SigningRefused

PAYMENT_LIMIT, HOUR_LIMIT = 1_000 * USDT, 2_500 * USDT


def payment(
    payout_id: int, amount: int = 100, *, at_ms: int = NOW_MS, nonce: int | None = 0, **changes: Any
) -> SignedPayment:
    """A payment on ERC20 with a nonce."""
    values: dict[str, Any] = {
        "at_ms": at_ms,
        "payout_id": payout_id,
        "chain": ERC20,
        "recipient": RECIPIENT,
        "units": amount * USDT,
        "digest": f"{payout_id};{nonce}".encode(),
        "nonce": nonce,
    }
    return SignedPayment(**{**values, **changes})


def tron(payout_id: int, amount: int, at_ms: int, life_ms: int = 60_000) -> SignedPayment:
    """A payment on TRC20 that expires after `life_ms`."""
    made = payment(payout_id, amount, at_ms=at_ms, chain=TRC20, nonce=None, expires_ms=at_ms + life_ms)
    return SignedPayment(
        **{**{f: getattr(made, f) for f in made.__struct_fields__}, "digest": f"{at_ms}".encode()}
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signed.jsonl"


def open_journal(path: Path) -> SigningJournal:
    return SigningJournal(path, PAYMENT_LIMIT, HOUR_LIMIT)


@pytest.fixture
def journal(path: Path) -> SigningJournal:
    return open_journal(path)


def test_a_payment_above_the_limit_is_refused(journal: SigningJournal) -> None:
    journal.admit(payment(1, 1_000))
    with pytest.raises(SigningRefused, match="at most 1000 USDT at once, and this has 1001"):
        journal.admit(payment(2, 1_001))


def test_an_hour_has_its_limit_and_passes(journal: SigningJournal) -> None:
    journal.admit(payment(1, 1_000))
    journal.admit(payment(2, 1_000, at_ms=NOW_MS + 1000))
    with pytest.raises(SigningRefused, match="at most 2500 USDT an hour, 2000 are signed, and this has 501"):
        journal.admit(payment(3, 501, at_ms=NOW_MS + 2000))
    journal.admit(payment(4, 500, at_ms=NOW_MS + 2000))
    with pytest.raises(SigningRefused, match="an hour"):
        journal.admit(payment(5, 1_000, at_ms=NOW_MS + HOUR_MS - 1))
    journal.admit(payment(5, 1_000, at_ms=NOW_MS + HOUR_MS))


def test_a_restart_forgets_no_limit_and_no_order(journal: SigningJournal, path: Path) -> None:
    journal.admit(payment(1, 1_000))
    journal.admit(payment(2, 1_000))
    again = open_journal(path)
    with pytest.raises(SigningRefused, match="an hour"):
        again.admit(payment(3, 501))
    with pytest.raises(SigningRefused, match="another recipient, amount or chain"):
        again.admit(payment(1, 999))


@pytest.mark.parametrize(
    "changes", [{"units": 1}, {"recipient": bytes(20)}, {"chain": TRC20, "nonce": None, "expires_ms": 1}]
)
def test_an_order_is_never_signed_for_anything_else(journal: SigningJournal, changes: dict[str, Any]) -> None:
    journal.admit(payment(1))
    with pytest.raises(SigningRefused, match="another recipient, amount or chain"):
        journal.admit(payment(1, **changes))


def test_an_order_keeps_its_nonce(journal: SigningJournal) -> None:
    journal.admit(payment(1, nonce=5))
    with pytest.raises(SigningRefused, match="with nonce 5 before; with 6 it could be paid twice"):
        journal.admit(payment(1, nonce=6))


def test_a_replacement_at_the_same_nonce_counts_once(journal: SigningJournal) -> None:
    for attempt in range(10):
        journal.admit(payment(1, 1_000, digest=b"%d" % attempt))
    journal.admit(payment(2, 1_000, nonce=1))
    journal.admit(payment(3, 500, nonce=2))
    with pytest.raises(SigningRefused, match="2500 are signed"):
        journal.admit(payment(4, 1, nonce=3))


def test_the_same_bytes_are_signed_again_whatever_the_limits(journal: SigningJournal, path: Path) -> None:
    first = payment(1, 1_000)
    journal.admit(first)
    size = path.stat().st_size
    tight = SigningJournal(path, 1, 1)
    tight.admit(first)
    assert path.stat().st_size == size


def test_on_tron_an_order_is_signed_anew_only_once_the_last_has_expired(journal: SigningJournal) -> None:
    journal.admit(tron(1, 100, NOW_MS))
    for too_early_ms in (NOW_MS + 1, NOW_MS + 60_000):
        with pytest.raises(SigningRefused, match="has not expired yet"):
            journal.admit(tron(1, 100, too_early_ms))
    journal.admit(tron(1, 100, NOW_MS + 60_001))


def test_on_tron_each_signature_counts_since_each_might_be_paid(journal: SigningJournal, path: Path) -> None:
    journal.admit(tron(1, 1_000, NOW_MS))
    journal.admit(tron(1, 1_000, NOW_MS + 100_000))
    for each in (journal, open_journal(path)):
        with pytest.raises(SigningRefused, match="2000 are signed"):
            each.admit(tron(1, 1_000, NOW_MS + 200_000))


def test_an_operator_lets_an_order_be_signed_anew_for_the_same_recipient(
    journal: SigningJournal, path: Path
) -> None:
    journal.admit(payment(1, 1_000, nonce=5))
    release = Release(at_ms=NOW_MS, payout_id=1, actor="cli:ann", reason="place 5 went to a fill")
    open_journal(path).release(release)
    for each in (journal, open_journal(path)):
        with pytest.raises(SigningRefused, match="another recipient, amount or chain"):
            each.admit(payment(1, 999, nonce=6))
    journal.admit(payment(1, 1_000, nonce=6))
    for each in (journal, open_journal(path)):
        with pytest.raises(SigningRefused, match="with nonce 6 before"):
            each.admit(payment(1, 1_000, nonce=5))
        # Both signatures count: the signer does not believe that one was never paid.
        with pytest.raises(SigningRefused, match="2000 are signed"):
            each.admit(payment(2, 1_000, nonce=7))


def test_what_was_never_signed_can_not_be_released(journal: SigningJournal, path: Path) -> None:
    journal.admit(payment(1))
    before = path.read_bytes()
    with pytest.raises(SigningRefused, match="nothing was ever signed for order 2"):
        journal.release(Release(at_ms=NOW_MS, payout_id=2, actor="cli:ann", reason="a slip"))
    assert path.read_bytes() == before


def test_two_processes_keep_one_account(journal: SigningJournal, path: Path) -> None:
    other = open_journal(path)
    journal.admit(payment(1, 1_000))
    other.admit(payment(2, 1_000))
    with pytest.raises(SigningRefused, match="2000 are signed"):
        journal.admit(payment(3, 501))
    with pytest.raises(SigningRefused, match="with nonce 0"):
        other.admit(payment(1, 1_000, nonce=9))


def _sign_many(path: Path, first: int) -> int:
    own = open_journal(path)
    admitted = 0
    for payout_id in range(first, first + 20):
        try:
            own.admit(payment(payout_id, 100, nonce=payout_id))
        except SigningRefused:
            continue
        admitted += 1
    return admitted


def test_processes_at_once_stay_within_the_limit_together(path: Path) -> None:
    with get_context("spawn").Pool(3) as pool:
        admitted = pool.starmap(_sign_many, [(path, 1000 * number) for number in range(3)])
    assert sum(admitted) * 100 * USDT == HOUR_LIMIT
    assert len(path.read_bytes().splitlines()) == sum(admitted)


def test_a_line_that_was_never_finished_is_cut_off(journal: SigningJournal, path: Path) -> None:
    journal.admit(payment(1, 1_000))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20].replace(b'"payoutId":1', b'"payoutId":2'))
    again = open_journal(path)
    again.admit(payment(3, 1_000, nonce=1))
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[0] == whole
    assert len(lines) == 2
    with pytest.raises(SigningRefused, match="2000 are signed"):
        open_journal(path).admit(payment(4, 1_000))


@pytest.mark.parametrize("odd", [b"{}\n", b"\n", b"nonsense\n", b'{"atMs":1}\n'])
def test_a_changed_file_stops_the_signing(journal: SigningJournal, path: Path, odd: bytes) -> None:
    journal.admit(payment(1))
    path.write_bytes(odd + path.read_bytes())
    with pytest.raises(SigningRefused, match="was changed: byte 0 begins no entry"):
        open_journal(path).admit(payment(2))


def test_a_file_that_was_cut_or_replaced_stops_the_signing(journal: SigningJournal, path: Path) -> None:
    journal.admit(payment(1))
    kept = path.read_bytes()
    path.write_bytes(kept[:10])
    with pytest.raises(SigningRefused, match="was replaced or cut"):
        journal.admit(payment(2))
    path.rename(path.with_suffix(".old"))
    path.write_bytes(kept)
    with pytest.raises(SigningRefused, match="was replaced or cut"):
        journal.admit(payment(2))


def test_what_can_not_be_written_is_not_signed(
    journal: SigningJournal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.admit(payment(1, 1_000))
    write = os.write
    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, "write", lambda file, line: write(file, line[:30]))
        with pytest.raises(OSError, match="takes no more"):
            journal.admit(payment(2, 1_000, nonce=1))
    journal.admit(payment(2, 1_000, nonce=1))
    signed = [msgspec.json.decode(line)["payoutId"] for line in path.read_bytes().splitlines()]
    assert signed == [1, 2]


def test_a_long_record_is_read_whole(path: Path) -> None:
    journal = SigningJournal(path, PAYMENT_LIMIT, HOUR_LIMIT)
    journal.admit(payment(0, 1))
    line = path.read_bytes()
    with path.open("ab") as file:
        for number in range(1, 8_000):
            file.write(line.replace(b'"payoutId":0', b'"payoutId":%d' % number))
    assert path.stat().st_size > 1 << 20
    again = open_journal(path)
    with pytest.raises(SigningRefused, match="8000 are signed"):
        again.admit(payment(9_000, 1))
    with pytest.raises(SigningRefused, match="another recipient"):
        again.admit(payment(7_999, 2))


def test_a_clock_that_was_ahead_holds_up_the_limit_for_an_hour_and_no_longer(
    journal: SigningJournal, path: Path
) -> None:
    journal.admit(payment(1, 1_000, at_ms=NOW_MS + 1_000 * HOUR_MS, nonce=1))
    journal.admit(payment(2, 1_000, nonce=2))
    for signer in (journal, open_journal(path)):
        with pytest.raises(SigningRefused, match="an hour, 2000 are signed"):
            signer.admit(payment(3, 1_000, at_ms=NOW_MS + 1, nonce=3))
    journal.admit(payment(3, 1_000, at_ms=NOW_MS + HOUR_MS, nonce=3))
    open_journal(path).admit(payment(4, 1_000, at_ms=NOW_MS + HOUR_MS, nonce=4))
