"""What the master key opens and what it refuses to open."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.addresses import ExtendedPrivateKey
from merchant_wallet.merchants.keys import (
    APP,
    CALLBACK,
    Keyring,
    WrongMasterKey,
    generate_app_key,
    generate_secret,
    is_of_other_mode,
)

KEYRING = Keyring(bytes(range(32)))
OTHER = Keyring(bytes(range(1, 33)))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.integers(1, 2**53), st.integers(1, 99))
def test_a_sealed_secret_opens_where_it_was_sealed(secret: str, merchant_id: int, number: int) -> None:
    assert KEYRING.open(KEYRING.seal(secret, merchant_id, APP, number), merchant_id, APP, number) == secret


@each_row("place", [(1002, APP, 1), (1001, CALLBACK, 1), (1001, APP, 2)])
def test_a_secret_moved_to_another_place_does_not_open(place: tuple[int, str, int]) -> None:
    sealed = KEYRING.seal("a secret", 1001, APP, 1)
    with pytest.raises(WrongMasterKey):
        KEYRING.open(sealed, *place)


def test_another_master_key_is_told_by_a_sentence_that_holds_no_secret() -> None:
    sealed = KEYRING.seal("a secret", 1001, APP, 1)
    with pytest.raises(
        WrongMasterKey, match=r"master key does not open the app secret 1 of merchant 1001"
    ) as told:
        OTHER.open(sealed, 1001, APP, 1)
    assert "a secret" not in str(told.value)


@given(st.data())
def test_a_sealed_secret_with_any_bit_changed_does_not_open(data: st.DataObject) -> None:
    sealed = bytearray(KEYRING.seal("a secret", 1001, APP, 1))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(WrongMasterKey):
        KEYRING.open(bytes(sealed), 1001, APP, 1)


@each_row("length", [0, 1, 12, 13, 28])
def test_a_cut_off_secret_does_not_open(length: int) -> None:
    with pytest.raises(WrongMasterKey):
        KEYRING.open(KEYRING.seal("a secret", 1001, APP, 1)[:length], 1001, APP, 1)


def test_the_same_secret_sealed_twice_looks_different() -> None:
    assert KEYRING.seal("a secret", 1001, APP, 1) != KEYRING.seal("a secret", 1001, APP, 1)


def test_each_use_of_the_master_key_has_its_own_bytes() -> None:
    uses = [
        KEYRING.derive("checkpoint"),
        KEYRING.derive("wallet-link"),
        KEYRING.derive("checkpoint", 64)[:32],
        KEYRING.derive("sandbox", 64)[:32],
        KEYRING.derive("seed:sandbox", 64)[:32],
        KEYRING.derive("seal:merchant-secret"),
        KEYRING.sandbox_seed()[:32],
        OTHER.derive("checkpoint"),
    ]
    assert len(set(uses)) == len(uses)


def test_derived_bytes_are_the_same_after_a_restart() -> None:
    again = Keyring(bytes(range(32)))
    assert again.derive("checkpoint", 48) == KEYRING.derive("checkpoint", 48)
    assert len(KEYRING.derive("checkpoint", 48)) == 48
    assert again.sandbox_seed() == KEYRING.sandbox_seed()


def test_the_sandbox_seed_is_a_seed() -> None:
    assert len(KEYRING.sandbox_seed()) == 64
    assert ExtendedPrivateKey.from_seed(KEYRING.sandbox_seed()).depth == 0


@each_row("length", [0, 16, 31, 33, 64])
def test_a_master_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Keyring(bytes(length))


def test_a_keyring_shows_nothing_of_its_key() -> None:
    assert bytes(range(32)).hex() not in repr(KEYRING)
    assert str(bytes(range(32))) not in repr(KEYRING)


def test_app_keys_and_secrets_have_the_lengths_of_the_interface_and_differ() -> None:
    app_keys = {generate_app_key(sandbox=True) for _ in range(200)}
    secrets = {generate_secret() for _ in range(200)}
    assert all(re.fullmatch(r"mk_test_[a-z0-9]{12}", key) for key in app_keys)
    assert all(re.fullmatch(r"[A-Za-z0-9]{32}", secret) for secret in secrets)
    assert len(app_keys) == len(secrets) == 200


def test_the_secret_of_a_key_tells_its_mode_and_has_the_form_of_every_secret() -> None:
    for sandbox, prefix in ((True, "skTest"), (False, "skLive")):
        app_key = generate_app_key(sandbox=sandbox)
        secrets = {generate_secret(app_key) for _ in range(200)}
        assert all(re.fullmatch(rf"{prefix}[A-Za-z0-9]{{26}}", secret) for secret in secrets)
        assert len(secrets) == 200
    assert not generate_secret("mk_0123456789abcdefg").startswith("sk")


def test_a_key_tells_its_mode_and_older_keys_tell_none() -> None:
    assert re.fullmatch(r"mk_live_[a-z0-9]{12}", generate_app_key(sandbox=False))
    for sandbox in (True, False):
        assert not is_of_other_mode(generate_app_key(sandbox=sandbox), sandbox=sandbox)
        assert is_of_other_mode(generate_app_key(sandbox=not sandbox), sandbox=sandbox)
        assert not is_of_other_mode("mk_0123456789abcdefg", sandbox=sandbox)
