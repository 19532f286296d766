"""What `doctor` says of hot wallets: coin for fees, and the key that orders wait for."""

from tests.rows import each_row

from merchant_wallet.base.addresses import format_address
from merchant_wallet.cli.hot_wallet_checks import HotWalletState, judge

ETH = 10**18
HOT, OTHER = format_address("ERC20", b"h" * 20), format_address("ERC20", b"o" * 20)
GOOD = HotWalletState("ERC20", b"h" * 20, ETH, ETH // 50, 70, 3, HOT)
TRON = HotWalletState("TRC20", b"h" * 20, 1_500_000, 1_000_000, 0, 0, None)


@each_row(
    ("state", "text", "advice", "hint"),
    [
        (GOOD, f"ERC20: {HOT} holds 1 ETH for fees", None, None),
        (TRON, "holds 1.5 TRX for fees", None, None),
        (GOOD._replace(workers_wallet=None), "holds 1 ETH", None, None),
        # Nothing waits for the old key: the workers' next start makes theirs the hot wallet.
        (GOOD._replace(workers_wallet=OTHER, open_units=0, open_orders=0), "holds 1 ETH", None, None),
        (GOOD._replace(coin=0), "holds 0 ETH for fees", "send ETH to it", None),
        (TRON._replace(coin=0), f"{format_address('TRC20', b'h' * 20)} holds 0 TRX", "send TRX", None),
        (GOOD._replace(coin=ETH // 100), "holds 0.01 ETH", None, "may cost up to 0.02 ETH"),
        (GOOD._replace(has_code=True), "holds 1 ETH", None, "one at a time"),
        (GOOD._replace(coin=None), f"no node says what {HOT} holds", None, "again"),
        (
            GOOD._replace(workers_wallet=OTHER),
            f"3 orders wait for the key of {HOT}, and the workers have that of {OTHER}",
            "bring the old key back",
            None,
        ),
        (
            GOOD._replace(workers_wallet=OTHER, open_orders=0),
            f"a transfer to the cold wallet waits for the key of {HOT}",
            "bring the old key back",
            None,
        ),
    ],
)
def test_a_hot_wallet_needs_coin_and_its_key(
    state: HotWalletState, text: str, advice: str | None, hint: str | None
) -> None:
    found = judge(state)
    assert text in found.text
    assert (found.advice is None, found.hint is None) == (advice is None, hint is None)
    assert (advice or "") in (found.advice or "")
    assert (hint or "") in (found.hint or "")
