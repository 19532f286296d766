"""What `doctor` says of cold money: whether limits, cold wallets and settings fit together."""

import msgspec
import pytest
from tests.cli.conftest import Wallet
from tests.cli.test_cold import ADDRESS, HOT, INSERT_HOT, LIMITS
from tests.rows import each_row

from merchant_wallet.cli.cold_checks import LATE_MS, ColdState, judge
from merchant_wallet.custody.cold.limits import RECORDED, TO_COLD, Limits
from merchant_wallet.custody.cold.store import ColdTransfer
from merchant_wallet.hot_wallet.store import WalletShown

NOW_MS = 1_763_712_000_000
USDT = 1_000_000
COLD = b"c" * 20


def hot(units: int, at_ms: int = NOW_MS) -> WalletShown:
    return WalletShown("ERC20", b"h" * 20, None, units, at_ms, None, None, 0, 0)


GOOD = ColdState(
    "ERC20",
    Limits(100 * USDT, 300 * USDT, 500 * USDT),
    COLD,
    (COLD,),
    hot(320 * USDT, NOW_MS - 60_000),
)
TRANSFER = ColdTransfer(
    *("ERC20", 7, TO_COLD, RECORDED, b"h" * 20, COLD, 5, "open", 0, None, None, None, None, None, None),
    *("0x1", None, None, "ann", None, None, NOW_MS - LATE_MS - 1, None),
)


def test_what_fits_together_has_no_advice_and_no_hint() -> None:
    found = judge(GOOD, NOW_MS, is_live=True)
    assert (found.advice, found.hint) == (None, None)
    assert "320 free in the hot wallet, limits 100 to 500" in found.text


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (GOOD._replace(cold=None), "no cold wallet, so nothing can move"),
        (GOOD._replace(named=(b"x" * 20,)), "the settings do not name its cold wallet"),
    ],
)
def test_what_can_not_work_is_wrong(state: ColdState, text: str) -> None:
    found = judge(state, NOW_MS, is_live=True)
    assert text in found.text
    assert found.advice is not None


@each_row(
    ("state", "hint"),
    [
        (GOOD._replace(limits=None), "set limits"),
        (GOOD._replace(named=()), "WALLET_ERC20_COLD_ADDRESSES is not set here"),
        (GOOD._replace(limits=Limits(1, 500 * USDT, 500 * USDT)), "the target is one of its limits"),
        (GOOD._replace(limits=Limits(1, 1, 500 * USDT)), "the target is one of its limits"),
        (GOOD._replace(hot=None), "is a `work` running?"),
        (GOOD._replace(hot=hot(320 * USDT, NOW_MS - 700_000)), "is a `work` running?"),
        (GOOD._replace(hot=hot(501 * USDT)), "outside its limits"),
        (GOOD._replace(hot=hot(99 * USDT)), "outside its limits"),
        (GOOD._replace(transfer=TRANSFER), "transfer 7 has waited for long"),
    ],
)
def test_what_could_be_better_is_a_hint(state: ColdState, hint: str) -> None:
    found = judge(state, NOW_MS, is_live=True)
    assert found.advice is None
    assert hint in (found.hint or "")


def test_outside_its_limits_with_a_new_transfer_under_way_is_no_hint() -> None:
    new = msgspec.structs.replace(TRANSFER, opened_ms=NOW_MS)
    assert judge(GOOD._replace(hot=hot(900 * USDT), transfer=new), NOW_MS, is_live=True).hint is None


def test_the_sandbox_has_no_signer_that_must_name_the_cold_wallet() -> None:
    found = judge(GOOD._replace(named=()), NOW_MS, is_live=False)
    assert (found.advice, found.hint) == (None, None)


@pytest.mark.new_database
def test_doctor_looks_at_each_chain_that_has_limits(wallet: Wallet) -> None:
    wallet.ask("cold", "limits", "ERC20", *LIMITS)
    checks = [one for one in wallet.ask("doctor", status=1)["checks"] if one["name"] == "cold money"]
    assert ["no cold wallet" in one["text"] for one in checks] == [True]
    wallet.ask("cold", "wallet", "ERC20", ADDRESS)
    wallet.tamper(INSERT_HOT, hot=HOT)
    checks = [one for one in wallet.ask("doctor", status=1)["checks"] if one["name"] == "cold money"]
    assert [(one["ok"], one["hint"] is not None) for one in checks] == [(True, True)]
