"""`book accept-rollback`: where it finds the signer's record."""

from pathlib import Path

import pytest

from merchant_wallet.base.settings import Settings
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.rollbacks import _find_record

COPY = Path("/copies/signed.jsonl")


def test_the_sandbox_has_no_record_and_a_keystore_of_ones_own_has_it_beside_the_keys(tmp_path: Path) -> None:
    assert _find_record(Settings(data=tmp_path), None, freeze_open=False) is None
    real = Settings(data=tmp_path, sandbox=False)
    assert _find_record(real, None, freeze_open=False) == tmp_path / "keys" / "signed.jsonl"
    assert _find_record(real, COPY, freeze_open=False) == COPY


def test_the_record_of_a_signer_elsewhere_is_named_or_all_open_orders_are_frozen(tmp_path: Path) -> None:
    apart = Settings(data=tmp_path, sandbox=False, signer_socket=tmp_path / "signer.sock")
    with pytest.raises(Failure, match="--signer-record FILE"):
        _find_record(apart, None, freeze_open=False)
    assert _find_record(apart, COPY, freeze_open=False) == COPY
    assert _find_record(apart, None, freeze_open=True) is None
