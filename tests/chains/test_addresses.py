"""Both text forms of an address, and derivation checked with the vectors of BIP32 and of known wallets."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.addresses import (
    SANDBOX_FAILING,
    SANDBOX_SLOW,
    ZERO,
    ExtendedPrivateKey,
    ExtendedPublicKey,
    address_of_child,
    decode_base58check,
    derive_account,
    derive_account_xpub,
    encode_base58check,
    format_address,
    keccak256,
    parse_address,
    parse_evm,
    parse_tron,
    parse_wallet_address,
    to_eip55,
    to_tron,
)
from merchant_wallet.base.chains import CHAINS, COIN_TYPES, ERC20, EVM, TRC20, TRON

addresses = st.binary(min_size=20, max_size=20)
EIP55_VECTORS = [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
]
USDT_TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
USDT_TRON_HEX = "a614f803b6fd780986a42c78ec9c7f77e6ded13c"


def seed_of(mnemonic: str) -> bytes:
    """BIP39 without a passphrase."""
    return hashlib.pbkdf2_hmac("sha512", mnemonic.encode(), b"mnemonic", 2048)


ABANDON = seed_of("abandon " * 11 + "about")
JUNK = seed_of("test " * 11 + "junk")


def test_keccak_is_the_original_one() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


# --- EVM ---


@each_row("text", EIP55_VECTORS)
def test_the_vectors_of_eip_55_hold_both_ways(text: str) -> None:
    assert to_eip55(parse_evm(text)) == text
    assert parse_evm(text.lower()) == parse_evm(text)


@each_row(
    "text",
    [
        EIP55_VECTORS[0].swapcase().replace("0X", "0x"),
        EIP55_VECTORS[0][:-1] + "D",
        "0x" + EIP55_VECTORS[0][2:].upper(),
        "0X" + EIP55_VECTORS[0][2:].lower(),
        EIP55_VECTORS[0][2:].lower(),
        EIP55_VECTORS[0].lower()[:-1],
        EIP55_VECTORS[0].lower() + "0",
        " " + EIP55_VECTORS[0].lower()[1:],
        "0x" + "g" * 40,
        "0x" + "1 " * 20,
        "0x" + "\u0661" * 40,
        "",
        USDT_TRON,
    ],
)
def test_an_evm_address_with_a_wrong_checksum_or_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"EVM address|EIP-55"):
        parse_evm(text)


def test_an_address_without_letters_needs_no_checksum() -> None:
    assert parse_evm("0x" + "12" * 20) == b"\x12" * 20


# --- TRON ---


def test_a_known_tron_address_holds_both_ways() -> None:
    assert parse_tron(USDT_TRON).hex() == USDT_TRON_HEX
    assert to_tron(bytes.fromhex(USDT_TRON_HEX)) == USDT_TRON


@each_row(
    "text",
    [
        USDT_TRON[:-1] + "u",
        USDT_TRON.lower(),
        USDT_TRON[:-1],
        USDT_TRON + "t",
        "T" + "0" * 33,
        "T" + "I" * 33,
        "1" + USDT_TRON[1:],
        "41" + USDT_TRON_HEX,
        "",
        " " + USDT_TRON[1:],
        encode_base58check(b"\x42" + bytes(20)),
        encode_base58check(b"\xa0" + bytes(20)),
        encode_base58check(b"\x00" + bytes.fromhex(USDT_TRON_HEX)),
    ],
)
def test_a_tron_address_with_a_wrong_checksum_prefix_or_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"TRON|base58"):
        parse_tron(text)


@given(st.integers(1, 33), st.sampled_from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"))
def test_one_changed_character_never_passes(position: int, character: str) -> None:
    changed = USDT_TRON[:position] + character + USDT_TRON[position + 1 :]
    if changed == USDT_TRON:
        assert parse_tron(changed).hex() == USDT_TRON_HEX
    else:
        with pytest.raises(ValueError, match="base58"):
            parse_tron(changed)


# --- either ---


@given(addresses)
def test_both_forms_of_any_address_are_read_and_recognised(address: bytes) -> None:
    assert parse_wallet_address(to_eip55(address)) == (EVM, address)
    assert parse_wallet_address(to_eip55(address).lower()) == (EVM, address)
    assert parse_wallet_address(to_tron(address)) == (TRON, address)
    for chain in (ERC20, TRC20):
        assert parse_address(chain, format_address(chain, address)) == address


@given(addresses)
def test_every_tron_address_has_34_characters_and_begins_with_t(address: bytes) -> None:
    text = to_tron(address)
    assert (len(text), text[0]) == (34, "T")


def test_a_form_is_not_valid_on_the_other_chain() -> None:
    with pytest.raises(ValueError, match="EVM"):
        parse_address(ERC20, USDT_TRON)
    with pytest.raises(ValueError, match="TRON"):
        parse_address(TRC20, EIP55_VECTORS[0])


@each_row("size", [0, 19, 21])
def test_only_20_bytes_have_a_form(size: int) -> None:
    for write in (to_eip55, to_tron):
        with pytest.raises(ValueError, match="20 bytes"):
            write(bytes(size))


def test_the_special_addresses_are_what_they_say() -> None:
    assert to_eip55(ZERO) == "0x" + "0" * 40
    assert to_tron(ZERO) == "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"
    assert to_eip55(SANDBOX_FAILING).lower() == "0x" + "0" * 36 + "dead"
    assert to_eip55(SANDBOX_SLOW).lower() == "0x" + "0" * 36 + "beef"
    assert parse_tron(to_tron(SANDBOX_FAILING)) == SANDBOX_FAILING
    assert format_address(ERC20, CHAINS[ERC20].token) == "0xdAC17F958D2ee523a2206206994597C13D831ec7"
    assert format_address(TRC20, CHAINS[TRC20].token) == USDT_TRON


@given(st.binary(max_size=80))
def test_base58check_reads_back_with_leading_zeros(payload: bytes) -> None:
    assert decode_base58check(encode_base58check(payload)) == payload


@each_row("text", ["", "1", "111", "0", "é", "3yZe7e"])
def test_a_text_without_a_right_checksum_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base58"):
        decode_base58check(text)


# --- BIP32 ---

H = 2**31
# Each seed, and the extended public keys that BIP32 prints for its paths (H + i is hardened).
BIP32_VECTORS = [
    (
        "000102030405060708090a0b0c0d0e0f",
        [
            "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
            "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
            "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ",
            "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5",
            "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
            "xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy",
        ],
        [H + 0, 1, H + 2, 2, 1000000000],
    ),
    (
        "fffcf9f6f3f0edeae7e4e1dedbd8d5d2cfccc9c6c3c0bdbab7b4b1aeaba8a5a2"
        "9f9c999693908d8a8784817e7b7875726f6c696663605d5a5754514e4b484542",
        [
            "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
            "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH",
            "xpub6ASAVgeehLbnwdqV6UKMHVzgqAG8Gr6riv3Fxxpj8ksbH9ebxaEyBLZ85ySDhKiLDBrQSARLq1uNRts8RuJiHjaDMBU4Zn9h8LZNnBC5y4a",
            "xpub6DF8uhdarytz3FWdA8TvFSvvAh8dP3283MY7p2V4SeE2wyWmG5mg5EwVvmdMVCQcoNJxGoWaU9DCWh89LojfZ537wTfunKau47EL2dhHKon",
            "xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL",
            "xpub6FnCn6nSzZAw5Tw7cgR9bi15UV96gLZhjDstkXXxvCLsUXBGXPdSnLFbdpq8p9HmGsApME5hQTZ3emM2rnY5agb9rXpVGyy3bdW6EEgAtqt",
        ],
        [0, H + 2147483647, 1, H + 2147483646, 2],
    ),
    (
        "4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4ac"
        "ba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be",
        [
            "xpub661MyMwAqRbcEZVB4dScxMAdx6d4nFc9nvyvH3v4gJL378CSRZiYmhRoP7mBy6gSPSCYk6SzXPTf3ND1cZAceL7SfJ1Z3GC8vBgp2epUt13",
            "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLPxSb7gwQN3ih19Zm4Y",
        ],
        [H + 0],
    ),
]
XPUB = BIP32_VECTORS[0][1][2]


@each_row(("seed_hex", "xpubs", "numbers"), BIP32_VECTORS)
def test_the_vectors_of_bip32_hold(seed_hex: str, xpubs: list[str], numbers: list[int]) -> None:
    key = ExtendedPrivateKey.from_seed(bytes.fromhex(seed_hex))
    assert key.public().text() == xpubs[0]
    for number, xpub, parent in zip(numbers, xpubs[1:], xpubs, strict=False):
        key = key.child(number % H, hardened=number >= H)
        assert key.public().text() == xpub
        if number < H:
            assert ExtendedPublicKey.parse(parent).child(number).text() == xpub


@each_row("xpub", [xpub for _, xpubs, _ in BIP32_VECTORS for xpub in xpubs])
def test_an_extended_public_key_reads_back_as_its_text(xpub: str) -> None:
    assert ExtendedPublicKey.parse(xpub).text() == xpub


def altered(xpub: str, position: int, replacement: bytes) -> str:
    raw = decode_base58check(xpub)
    return encode_base58check(raw[:position] + replacement + raw[position + len(replacement) :])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not an extended public key"),
        ("xpub", "not an extended public key"),
        (XPUB[:-1], "not an extended public key"),
        (XPUB[:-1] + "R", "checksum"),
        (altered(XPUB, 0, bytes.fromhex("0488ade4")), "not an extended public key"),
        (altered(XPUB, 0, bytes.fromhex("043587cf")), "not an extended public key"),
        (altered(XPUB, 45, b"\x04"), "public key"),
        (altered(XPUB, 45, b"\x00"), "public key"),
        (altered(XPUB, 45, b"\x02" + bytes(31) + b"\x07"), "public key"),
        (altered(BIP32_VECTORS[0][1][0], 5, b"\x01"), "depth 0"),
        (altered(BIP32_VECTORS[0][1][0], 12, b"\x01"), "depth 0"),
    ],
)
def test_what_is_no_extended_public_key_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ExtendedPublicKey.parse(text)


@pytest.mark.parametrize("number", [-1, 2**31])
def test_a_child_number_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="hardened"):
        ExtendedPublicKey.parse(XPUB).child(number)
    with pytest.raises(ValueError, match="below"):
        ExtendedPrivateKey.from_seed(ABANDON).child(number)
    with pytest.raises(ValueError, match="hardened"):
        address_of_child(XPUB, number)


@each_row("size", [0, 15, 65])
def test_a_seed_too_short_or_too_long_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="16 to 64"):
        ExtendedPrivateKey.from_seed(bytes(size))


@each_row(
    ("seed", "chain", "address"),
    [
        (ABANDON, ERC20, "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"),
        (ABANDON, TRC20, "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"),
        (JUNK, ERC20, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
    ],
)
def test_the_first_address_of_well_known_seeds(seed: bytes, chain: str, address: str) -> None:
    xpub = derive_account_xpub(seed, COIN_TYPES[chain], 0)
    assert format_address(chain, address_of_child(xpub, 0)) == address


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_the_signers_private_key_and_the_xpub_give_the_same_address(account: int, index: int) -> None:
    key = derive_account(ABANDON, COIN_TYPES[TRC20], account)
    xpub = derive_account_xpub(ABANDON, COIN_TYPES[TRC20], account)
    assert key.child(0).child(index).public().address() == address_of_child(xpub, index)


def test_addresses_differ_by_account_and_index() -> None:
    xpubs = [derive_account_xpub(JUNK, coin, account) for coin in (60, 195) for account in range(3)]
    found = {address_of_child(xpub, index) for xpub in xpubs for index in range(20)}
    assert len(found) == 120


def test_a_private_key_shows_no_secret() -> None:
    key = derive_account(ABANDON, 60, 0)
    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)
    assert repr(key.chain_code) not in repr(key)
