"""The Web3 Secret Storage format: the definition's vectors, files of another implementation, tampering."""

import json
from typing import Any

import pytest
from tests.late_modules import eth_keyfile
from tests.rows import each_row

from merchant_wallet.chains.keys.secret_storage import StorageRefused, read_address, seal, unseal

SECRET = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
ADDRESS = bytes.fromhex("008aeeda4d805471df9b2a5b0f38a0c3bcba786b")
PASSWORD = "testpassword"
QUICK = 2**10

# The two test vectors of the Web3 Secret Storage definition, version 3.
VECTORS = {
    "pbkdf2": {
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "scrypt": {
        "cipherparams": {"iv": "83dbcc02d8ccb40e466191a123791e0e"},
        "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
        "kdfparams": {
            "dklen": 32,
            "n": 262144,
            "r": 1,
            "p": 8,
            "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
        },
        "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
    },
}


@pytest.mark.parametrize("kdf", VECTORS)
def test_the_definitions_own_vectors_open(kdf: str) -> None:
    crypto = {"cipher": "aes-128-ctr", "kdf": kdf, **VECTORS[kdf]}
    text = json.dumps({"version": 3, "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "crypto": crypto})
    assert unseal(text.encode(), PASSWORD) == SECRET


def test_another_implementation_opens_what_is_sealed_here() -> None:
    sealed = seal(SECRET, PASSWORD, ADDRESS, cost=QUICK)
    assert eth_keyfile.decode_keyfile_json(json.loads(sealed), PASSWORD.encode()) == SECRET
    assert read_address(sealed) == ADDRESS


@pytest.mark.parametrize(("kdf", "rounds"), [("pbkdf2", 1000), ("scrypt", QUICK)])
def test_what_another_implementation_sealed_opens_here(kdf: Any, rounds: int) -> None:
    made = eth_keyfile.create_keyfile_json(SECRET, PASSWORD.encode(), kdf=kdf, iterations=rounds)
    assert unseal(json.dumps(made).encode(), PASSWORD) == SECRET


def test_the_same_secret_never_looks_the_same_twice() -> None:
    first, second = (json.loads(seal(SECRET, PASSWORD, ADDRESS, cost=QUICK)) for _ in range(2))
    assert first["crypto"]["ciphertext"] != second["crypto"]["ciphertext"]
    assert first["crypto"]["kdfparams"]["salt"] != second["crypto"]["kdfparams"]["salt"]


def test_another_passphrase_opens_nothing() -> None:
    sealed = seal(SECRET, PASSWORD, ADDRESS, cost=QUICK)
    for wrong in ("", "testpassword ", "Testpassword"):
        with pytest.raises(StorageRefused, match="the passphrase is wrong"):
            unseal(sealed, wrong)


def change(sealed: bytes, **changes: Any) -> bytes:
    """Change members of the document at any depth."""
    document = json.loads(sealed)
    for part in (document, document["crypto"], document["crypto"]["kdfparams"]):
        part.update({name: value for name, value in changes.items() if name in part})
    return json.dumps(document).encode()


@each_row(
    ("changes", "said"),
    [
        ({"ciphertext": "00" * 32}, "or the file was changed"),
        ({"mac": "00" * 32}, "or the file was changed"),
        ({"salt": "00" * 32}, "or the file was changed"),
        ({"ciphertext": "0x"}, "not hexadecimal"),
        ({"ciphertext": ""}, "at most 64 bytes"),
        ({"ciphertext": "00" * 65}, "at most 64 bytes"),
        ({"cipher": "aes-128-cbc"}, "aes-128-ctr"),
        ({"cipherparams": {"iv": "00"}}, "aes-128-ctr"),
        ({"version": 1}, "version 1"),
        ({"version": "3"}, "not a key file"),
        ({"kdf": "argon2"}, "not known"),
        ({"kdf": "pbkdf2"}, "not known"),
        ({"dklen": 16}, "32 bytes"),
        ({"n": 2**40}, "out of bounds"),
        ({"n": 1000}, "out of bounds"),
        ({"n": -1024}, "out of bounds"),
        ({"r": 0}, "out of bounds"),
        ({"r": 2**30}, "out of bounds"),
        ({"p": 1000}, "out of bounds"),
    ],
)
def test_a_changed_file_is_refused_by_what_is_wrong_with_it(changes: dict[str, Any], said: str) -> None:
    sealed = seal(SECRET, PASSWORD, ADDRESS, cost=QUICK)
    with pytest.raises(StorageRefused, match=said):
        unseal(change(sealed, **changes), PASSWORD)


@each_row("text", [b"", b"{}", b"[]", b"\xff", b'{"version": 3}', SECRET.hex().encode()])
def test_what_is_no_key_file_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(StorageRefused, match="not a key file") as caught:
        unseal(text, PASSWORD)
    assert SECRET.hex() not in str(caught.value)


def test_a_file_without_a_valid_address_is_refused() -> None:
    sealed = seal(SECRET, PASSWORD, ADDRESS, cost=QUICK)
    for address in ("", "00", "zz"):
        with pytest.raises(StorageRefused, match="address"):
            read_address(change(sealed, address=address))
