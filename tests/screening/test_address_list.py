"""The list in a file: what a line says, what is refused, and how large it may be."""

import pytest
from tests.rows import each_row
from tests.withdrawals.conftest import ERC20_ADDRESS, TRC20_ADDRESS

from merchant_wallet.base.addresses import parse_evm, parse_tron, to_tron
from merchant_wallet.screening import address_list
from merchant_wallet.screening.address_list import ListUnreadable, parse_list
from merchant_wallet.screening.verdicts import Verdict

EVM, TRON = parse_evm(ERC20_ADDRESS), parse_tron(TRC20_ADDRESS)


def test_a_line_is_an_address_a_word_and_a_note() -> None:
    text = f"# of Monday\n\n{ERC20_ADDRESS} hold seen near a mixer\n{TRC20_ADDRESS}  # OFAC, 2026-11\n"
    found = parse_list(text.encode())
    held, refused = found.find(EVM), found.find(TRON)
    assert held is not None
    assert refused is not None
    assert (held.verdict, held.text) == (Verdict.HOLD, "seen near a mixer")
    assert (refused.verdict, refused.text) == (Verdict.REFUSE, "OFAC, 2026-11")
    assert found.find(bytes(20)) is None


def test_of_two_lines_about_one_key_the_stricter_holds() -> None:
    for lines in ((f"{ERC20_ADDRESS} hold", to_tron(EVM)), (to_tron(EVM), f"{ERC20_ADDRESS} hold")):
        found = parse_list("\n".join(lines).encode()).find(EVM)
        assert found is not None
        assert found.verdict is Verdict.REFUSE


@each_row(
    ("text", "told"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"0x1234", "line 1"),
        (f"{ERC20_ADDRESS} pass".encode(), "neither hold nor refuse"),
        (ERC20_ADDRESS.replace("a", "A", 1).encode(), "checksum"),
        ("\n".join(["x"] * 50).encode(), "line 5"),
    ],
)
def test_a_file_that_is_no_list_names_its_lines(text: bytes, told: str) -> None:
    with pytest.raises(ListUnreadable, match=told) as caught:
        parse_list(text)
    assert len(str(caught.value)) < 1000


def test_a_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_list, "MAX_ENTRIES", 3)
    lines = [f"0x{number:040x}" for number in range(1, 5)]
    assert len(parse_list("\n".join(lines[:3]).encode()).entries) == 3
    with pytest.raises(ListUnreadable, match="more than 3 addresses"):
        parse_list("\n".join(lines).encode())
    with pytest.raises(ListUnreadable, match="bytes"):
        parse_list(b"#" * (address_list.MAX_BYTES + 1))
