"""The local signer: other implementations accept its signatures, and no secret leaves it."""

import io
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.chains.signing import (
    DEPOSITS,
    KEYS,
    NOW_MS,
    PLACE,
    RULES,
    SEED,
    WALLETS,
    Asking,
    Clock,
    honest,
    pay,
)
from tests.late_modules import eth_account

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.chains.evm import transactions as evm_transactions
from merchant_wallet.chains.keys import local_signer
from merchant_wallet.chains.keys.keystore import JOURNAL, Keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.signer import Purpose, SignerAway, SigningRefused, Source
from merchant_wallet.chains.tron import transactions as tron_transactions
from merchant_wallet.observability import logs

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signer(tmp_path: Path, clock: Clock) -> LocalSigner:
    return LocalSigner(Keystore(tmp_path, KEYS, SEED), RULES, clock)


async def test_it_names_the_wallets_that_it_has_keys_for(tmp_path: Path) -> None:
    assert await LocalSigner(Keystore(tmp_path, KEYS), RULES).wallets() == WALLETS
    assert to_eip55(WALLETS[ERC20]) == eth_account.Account.from_key(KEYS[ERC20]).address
    alone = LocalSigner(Keystore(tmp_path, {TRC20: KEYS[TRC20]}), RULES)
    assert await alone.wallets() == {TRC20: WALLETS[TRC20]}
    with pytest.raises(SigningRefused, match="no key for ERC20"):
        await alone.sign(Asking(ERC20).request())


@pytest.mark.parametrize("purpose", ["payout", "cancel", "top_up", "sweep"])
async def test_an_evm_signature_is_what_another_implementation_makes(
    signer: LocalSigner, purpose: Purpose
) -> None:
    request = Asking(ERC20, purpose).request()
    made = evm_transactions.parse_unsigned(request.unsigned)
    key = KEYS[ERC20]
    if purpose == "sweep":
        found = Keystore(Path(), {}, SEED).deposit_key(ERC20, PLACE)
        assert found is not None
        key = found.secret
    theirs = eth_account.Account.from_key(key).sign_transaction(
        {
            "chainId": made.chain_id,
            "nonce": made.nonce,
            "maxPriorityFeePerGas": made.max_priority_fee,
            "maxFeePerGas": made.max_fee,
            "gas": made.gas_limit,
            "to": to_eip55(made.to),
            "value": made.value,
            "data": made.call_data,
            "type": 2,
        }
    )
    raw = evm_transactions.join(request.unsigned, await signer.sign(request))
    assert raw == bytes(theirs.raw_transaction)
    sender = DEPOSITS[ERC20] if purpose == "sweep" else WALLETS[ERC20]
    assert eth_account.Account.recover_transaction(raw) == to_eip55(sender)


@pytest.mark.parametrize("purpose", ["payout", "top_up", "sweep"])
async def test_a_tron_signature_is_the_owners(signer: LocalSigner, purpose: Purpose) -> None:
    request = Asking(TRC20, purpose).request()
    signature = await signer.sign(request)
    sender = DEPOSITS[TRC20] if purpose == "sweep" else WALLETS[TRC20]
    assert tron_transactions.recover_owner(request.unsigned, signature) == sender
    assert len(signature) == 65
    assert signature[64] in (0, 1)


async def test_a_payment_is_on_the_disk_when_its_signature_is_given_out(
    signer: LocalSigner, tmp_path: Path
) -> None:
    await signer.sign(pay(1, 100))
    assert b'"payoutId":1' in (tmp_path / JOURNAL).read_bytes()
    for purpose in ("cancel", "top_up", "sweep"):
        await signer.sign(Asking(ERC20, purpose).request())
    assert len((tmp_path / JOURNAL).read_bytes().splitlines()) == 1


async def test_where_nothing_can_be_recorded_nothing_is_signed(signer: LocalSigner, tmp_path: Path) -> None:
    (tmp_path / JOURNAL).mkdir()
    with pytest.raises(SignerAway, match="can't record what it signs"):
        await signer.sign(pay(1, 100))


async def test_a_refused_request_leaves_no_trace_in_the_limits(signer: LocalSigner) -> None:
    for _ in range(30):
        with pytest.raises(SigningRefused, match="another amount"):
            await signer.sign(Asking(said={"amount_units": 1}).request())
    await signer.sign(Asking().request())


async def test_limits_hold_over_both_chains_and_a_restart(
    signer: LocalSigner, tmp_path: Path, clock: Clock
) -> None:
    with pytest.raises(SigningRefused, match="at most 1000 USDT at once"):
        await signer.sign(pay(1, 1_001))
    await signer.sign(pay(2, 1_000))
    await signer.sign(pay(3, 1_000, chain=TRC20))
    again = LocalSigner(Keystore(tmp_path, KEYS, SEED), RULES, clock)
    with pytest.raises(SigningRefused, match="2000 are signed"):
        await again.sign(pay(4, 501))
    clock.at_ms += 3_600_000
    await again.sign(pay(4, 501))


async def test_a_stuck_payment_is_replaced_at_its_nonce_only(signer: LocalSigner) -> None:
    first = await signer.sign(pay(1, 1_000, nonce=7))
    for fee in range(3, 9):
        assert await signer.sign(pay(1, 1_000, nonce=7, max_fee=fee * 10**9)) != first
    assert await signer.sign(pay(1, 1_000, nonce=7)) == first
    with pytest.raises(SigningRefused, match="could be paid twice"):
        await signer.sign(pay(1, 1_000, nonce=8))


async def test_a_tron_payment_is_signed_anew_only_after_it_expired(signer: LocalSigner, clock: Clock) -> None:
    request = pay(1, 1_000, chain=TRC20)
    first = await signer.sign(request)
    assert await signer.sign(request) == first
    later: dict[str, Any] = {"timestamp_ms": NOW_MS + 70_000, "expiration_ms": NOW_MS + 130_000}
    with pytest.raises(SigningRefused, match="has not expired yet"):
        await signer.sign(pay(1, 1_000, chain=TRC20, **later))
    clock.at_ms = NOW_MS + 70_000
    assert await signer.sign(pay(1, 1_000, chain=TRC20, **later)) != first


@pytest.mark.parametrize("source", [Source(3, 0, 6), Source(4, 0, 5), Source(3, 1, 5)])
@pytest.mark.parametrize("chain", [ERC20, TRC20])
async def test_a_top_up_goes_to_the_deposit_address_that_is_named(
    signer: LocalSigner, chain: str, source: Source
) -> None:
    with pytest.raises(SigningRefused, match="never goes to that address"):
        await signer.sign(Asking(chain, "top_up", rest={"source": source}).request())


async def test_a_tron_sweep_is_from_the_deposit_address_that_is_named(signer: LocalSigner) -> None:
    with pytest.raises(SigningRefused, match="spend from another address"):
        await signer.sign(Asking(TRC20, "sweep", rest={"source": Source(3, 0, 6)}).request())


@pytest.mark.parametrize("source", [Source(3, 2, 5), Source(-1, 0, 5), Source(3, 0, 2**31)])
async def test_a_source_that_is_no_deposit_address_has_no_key(signer: LocalSigner, source: Source) -> None:
    with pytest.raises(SigningRefused, match="no key for that deposit address"):
        await signer.sign(Asking(ERC20, "sweep", rest={"source": source}).request())


async def test_a_sweep_never_drains_the_hot_wallet_by_another_name(signer: LocalSigner) -> None:
    transfer, _ = honest(ERC20, "payout")
    changes: dict[str, Any] = {"transfer": transfer}
    with pytest.raises(SigningRefused):
        await signer.sign(Asking(ERC20, "sweep", rest=changes).request())
    with pytest.raises(SigningRefused, match="another source"):
        await signer.sign(Asking(ERC20, "payout", rest={"source": PLACE}).request())


@pytest.mark.parametrize("log_format", ["json", "console"])
async def test_nothing_secret_is_logged(
    signer: LocalSigner, log_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    logs.set_up("debug", log_format, written)
    # A logger keeps the stream that it first wrote to.
    monkeypatch.setattr(local_signer, "log", structlog.get_logger("signer"))
    for request in (
        pay(1, 100),
        pay(2, 5_000),
        Asking(TRC20, "sweep").request(),
        Asking(ERC20, "top_up").request(),
    ):
        try:
            await signer.sign(request)
        except SigningRefused:
            continue
    structlog.reset_defaults()
    shown = written.getvalue() + repr(signer)
    assert shown.count("refused to sign") == 1
    assert shown.count("signed") >= 3
    sweeping = Keystore(Path(), {}, SEED).deposit_key(TRC20, PLACE)
    assert sweeping is not None
    for secret in (*KEYS.values(), SEED, sweeping.secret):
        assert secret.hex() not in shown.lower()
        assert repr(secret)[2:-1] not in shown
