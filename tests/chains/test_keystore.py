"""The keystore folder: created once, private, opened completely or not at all, and never shows a secret."""

import json
import stat
import traceback
from pathlib import Path

import pytest
from tests.rows import each_row

from merchant_wallet.base.addresses import (
    ExtendedPublicKey,
    address_of_child,
    derive_account_xpub,
    parse_evm,
    parse_tron,
)
from merchant_wallet.base.chains import COIN_TYPES, ERC20, TRC20
from merchant_wallet.chains.keys.keystore import (
    JOURNAL,
    SEED,
    Keystore,
    KeystoreError,
    check_passphrase,
    create_key,
    list_addresses,
    open_keystore,
    read_secret,
    store_key,
)
from merchant_wallet.chains.signer import Source

PASSPHRASE = "correct horse battery"
QUICK = 2**10
# The first account of the phrase "test test … junk", and the seed of "abandon … about", as wallets show them.
KNOWN_KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
KNOWN_ADDRESS = parse_evm("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
KNOWN_SEED = bytes.fromhex(
    "5eb00bbddcf069084889a8ab9155568165f5c453ccb85e70811aaed6f6da5fc1"
    "9a5ac40b389cd370d086206dec8aa6c43daea6690f20ad3d8d48b2d2ce9e38e4"
)


def make(folder: Path) -> dict[str, bytes]:
    """A complete keystore. Returns the addresses."""
    return {name: create_key(folder, name, PASSPHRASE, cost=QUICK) for name in (ERC20, TRC20, SEED)}


def test_what_was_made_is_opened_again(tmp_path: Path) -> None:
    made = make(tmp_path / "keys")
    opened = open_keystore(tmp_path / "keys", PASSPHRASE)
    assert opened.wallets() == {chain: made[chain] for chain in (ERC20, TRC20)}
    assert made[ERC20] != made[TRC20]
    assert list_addresses(tmp_path / "keys") == made


def test_a_known_key_has_its_known_address(tmp_path: Path) -> None:
    assert store_key(tmp_path / "keys", ERC20, KNOWN_KEY, PASSPHRASE, cost=QUICK) == KNOWN_ADDRESS
    key = open_keystore(tmp_path / "keys", PASSPHRASE).hot_key(ERC20)
    assert key is not None
    assert key.secret == KNOWN_KEY


def test_a_known_seed_has_its_known_addresses() -> None:
    keystore = Keystore(Path(), {}, KNOWN_SEED)
    for chain, address in (
        (ERC20, parse_evm("0x9858EfFD232B4033E47d90003D41EC34EcaEda94")),
        (TRC20, parse_tron("TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH")),
    ):
        key = keystore.deposit_key(chain, Source(account=0, branch=0, index=0))
        assert key is not None
        public = ExtendedPublicKey(key.public_key.format(), bytes(32))
        assert public.address() == address


def test_the_accounts_derived_ahead_are_those_whose_keys_the_signer_has() -> None:
    keystore = Keystore(Path(), {}, KNOWN_SEED)
    derived = dict(keystore.derive_accounts(7, 3))
    assert list(derived) == [7, 8, 9]
    for chain, coin in COIN_TYPES.items():
        xpub = derived[8][chain]
        assert xpub == derive_account_xpub(KNOWN_SEED, coin, 8)
        for branch, index in ((0, 0), (0, 41), (1, 0)):
            key = keystore.deposit_key(chain, Source(8, branch, index))
            assert key is not None
            below = ExtendedPublicKey.parse(xpub).child(branch).child(index)
            assert key.public_key.format() == below.key
        assert address_of_child(xpub, 41) != address_of_child(derived[9][chain], 41)


@each_row(
    "source", [Source(0, 2, 0), Source(0, -1, 0), Source(-1, 0, 0), Source(2**31, 0, 0), Source(0, 0, 2**31)]
)
def test_a_source_without_an_address_has_no_key(source: Source) -> None:
    assert Keystore(Path(), {}, KNOWN_SEED).deposit_key(ERC20, source) is None


def test_without_a_seed_there_are_no_deposit_keys(tmp_path: Path) -> None:
    store_key(tmp_path / "keys", ERC20, KNOWN_KEY, PASSPHRASE, cost=QUICK)
    keystore = open_keystore(tmp_path / "keys", PASSPHRASE)
    assert keystore.deposit_key(ERC20, Source(0, 0, 0)) is None
    assert keystore.hot_key(TRC20) is None
    with pytest.raises(KeystoreError, match="no seed"):
        next(keystore.derive_accounts(0, 1))


def test_folder_and_files_are_their_owners_alone(tmp_path: Path) -> None:
    make(tmp_path / "keys")
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    for path in (tmp_path / "keys").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == [
        "ERC20.json",
        "TRC20.json",
        "seed.json",
        "signed.jsonl",
    ]


@pytest.mark.parametrize("name", [".", "ERC20.json"])
def test_keys_that_others_could_read_are_not_opened(tmp_path: Path, name: str) -> None:
    make(tmp_path / "keys")
    (tmp_path / "keys" / name).chmod(0o755)
    with pytest.raises(KeystoreError, match="can be read by others: chmod"):
        open_keystore(tmp_path / "keys", PASSPHRASE)


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    make(tmp_path / "keys")
    before = (tmp_path / "keys" / "ERC20.json").read_bytes()
    with pytest.raises(KeystoreError, match="it is not replaced"):
        create_key(tmp_path / "keys", ERC20, PASSPHRASE, cost=QUICK)
    with pytest.raises(KeystoreError, match="it is not replaced"):
        store_key(tmp_path / "keys", ERC20, KNOWN_KEY, PASSPHRASE, cost=QUICK)
    assert (tmp_path / "keys" / "ERC20.json").read_bytes() == before


def test_a_key_file_whose_address_was_changed_is_not_opened(tmp_path: Path) -> None:
    make(tmp_path / "keys")
    path = tmp_path / "keys" / "TRC20.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "address": "11" * 20}))
    with pytest.raises(KeystoreError, match="not the one of the address that it names"):
        open_keystore(tmp_path / "keys", PASSPHRASE)


def test_keys_without_their_record_of_payments_are_not_opened(tmp_path: Path) -> None:
    make(tmp_path / "keys")
    (tmp_path / "keys" / JOURNAL).unlink()
    with pytest.raises(KeystoreError, match=r"signed\.jsonl, is missing"):
        open_keystore(tmp_path / "keys", PASSPHRASE)
    (tmp_path / "keys" / "TRC20.json").unlink()
    create_key(tmp_path / "keys", TRC20, PASSPHRASE, cost=QUICK)
    assert not (tmp_path / "keys" / JOURNAL).exists()


def test_an_empty_folder_says_how_keys_are_made(tmp_path: Path) -> None:
    with pytest.raises(KeystoreError, match="keys create"):
        open_keystore(tmp_path / "keys", PASSPHRASE)


def test_one_passphrase_opens_all_keys_of_a_folder(tmp_path: Path) -> None:
    check_passphrase(tmp_path / "keys", PASSPHRASE)
    with pytest.raises(KeystoreError, match="at least 12 characters"):
        check_passphrase(tmp_path / "keys", "short")
    make(tmp_path / "keys")
    check_passphrase(tmp_path / "keys", PASSPHRASE)
    with pytest.raises(KeystoreError, match="the passphrase is wrong"):
        check_passphrase(tmp_path / "keys", "another long passphrase")


@each_row("text", [KNOWN_KEY.hex(), f"0x{KNOWN_KEY.hex()}\n", f"  {KNOWN_KEY.hex().upper()}\r\n"])
def test_a_key_is_read_from_hexadecimal(text: str) -> None:
    assert read_secret(text.encode(), PASSPHRASE) == KNOWN_KEY


@each_row(
    "text",
    [
        b"",
        b"0x",
        KNOWN_KEY.hex()[:-1].encode(),
        (KNOWN_KEY.hex() + "00").encode(),
        b"g" * 64,
        b"\xff" * 64,
        b"{}",
    ],
)
def test_what_is_no_key_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(KeystoreError) as caught:
        read_secret(text, PASSPHRASE)
    shown = "".join(traceback.format_exception(caught.value))
    assert KNOWN_KEY.hex()[:-1] not in shown


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, KNOWN_KEY[:31]])
def test_a_number_that_is_no_private_key_is_not_kept(tmp_path: Path, secret: bytes) -> None:
    with pytest.raises(KeystoreError, match="That is no key"):
        store_key(tmp_path / "keys", ERC20, secret, PASSPHRASE, cost=QUICK)
    assert not (tmp_path / "keys").exists()


def test_nothing_in_the_folder_and_no_repr_shows_a_secret(tmp_path: Path) -> None:
    store_key(tmp_path / "keys", ERC20, KNOWN_KEY, PASSPHRASE, cost=QUICK)
    store_key(tmp_path / "keys", SEED, KNOWN_SEED, PASSPHRASE, cost=QUICK)
    opened = open_keystore(tmp_path / "keys", PASSPHRASE)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "keys").iterdir())
    shown = kept + repr(opened).encode() + repr(opened.hot_key(ERC20)).encode()
    for secret in (KNOWN_KEY, KNOWN_SEED):
        assert secret not in shown
        assert secret.hex().encode() not in shown.lower()
    assert PASSPHRASE.encode() not in shown
