"""The examples of the README run, one after the other, against the fake service."""

import os
import re
from pathlib import Path

import pytest

from merchant_wallet_client import MerchantWallet, Retries, errors
from merchant_wallet_client.cli.program import app
from merchant_wallet_client.cli.triggering import check_event
from merchant_wallet_client.testing import FakeWallet

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
OTHERS = ("callback_view", "callback_endpoint", "path")
"""What the page names of the frameworks and of the handlers."""
SAID = """40.5 0
0 False
967.5
42200 Send the same mcOrderId again when there is money: a refused order does not use its id.
"""


def test_each_example_does_what_it_says(
    fake: FakeWallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Retries.__init__, "__defaults__", (4, 0.0, 60.0))
    fake.credit("USDT", -20)
    names: dict[str, object] = {}
    for block in BLOCKS:
        code = block.replace("https://wallet.example", fake.base_url)
        code = code.replace("mk_test_…", fake.app_key).replace("your secret", fake.secret)
        exec(compile(code, "README.md", "exec"), names)
    assert len(BLOCKS) == 5
    assert capsys.readouterr().out == SAID
    names["wallet"].close()  # type: ignore[attr-defined]  # the first example's client
    names["database"].close()  # type: ignore[attr-defined]  # the fourth example's database
    assert os.path.exists("shop.db")


def test_every_command_of_the_page_exists() -> None:
    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}
    shown = set(re.findall(r"^\| `(\w+)[^|]*` \|", README.partition("## Command line")[2], re.MULTILINE))
    assert shown == commands
    for words in re.findall(r"^merchant-wallet-client (\w+) ", README, re.MULTILINE):
        assert words in commands
    for event in re.findall(r"`((?:order|deposit)\.\w+)`", README):
        check_event(event)


def test_every_method_option_and_error_of_the_page_exists() -> None:
    import merchant_wallet_client as package
    from merchant_wallet_client import errors

    for name in re.findall(r"`([A-Z]\w+(?:Error|Callback|Wallet))`", README):
        assert hasattr(package, name) or hasattr(errors, name) or name == "FakeWallet", name
    for name in re.findall(r"`([a-z_]+)\(", README):
        assert hasattr(MerchantWallet, name) or hasattr(FakeWallet, name) or name in OTHERS, name


def test_the_readme_lists_the_class_of_each_code() -> None:
    listed = {int(code): name for name, code in re.findall(r"`(\w+Error)`\s\((\d+)\)", README)}
    assert listed == {code: kind.__name__ for code, kind in errors.CLASSES.items()}
