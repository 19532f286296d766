"""What tronweb, which shares no code with us, says about our bytes and about our fake node."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from coincurve import PrivateKey
from devnet.programs import FOLDER, find_node, install
from devnet.tron_network import address_of
from tests.chains.tron_scene import RECIPIENT, key_of
from tests.evm_nodes import run_tron_network
from tests.named_tron import RUN

from merchant_wallet.base.addresses import to_tron
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    compute_signing_hash,
    encode_raw,
    join,
    reference_to,
    txid_of,
)

KEY = key_of("a key that tronweb gets too")
OWNER = address_of(KEY)
TOKEN = bytes.fromhex("a614f803b6fd780986a42c78ec9c7f77e6ded13c")
BLOCK_BYTES, BLOCK_HASH = reference_to("0000000003b2a1f0c3d1e5f70011223344556677889900aabbccddeeff001122")
MADE_MS = 1_800_000_000_000


def call_of(units: int, fee_limit_sun: int = 60_000_000, made_ms: int = MADE_MS) -> TronTransaction:
    return TronTransaction(
        ref_block_bytes=BLOCK_BYTES,
        ref_block_hash=BLOCK_HASH,
        expiration_ms=made_ms + 300_000,
        timestamp_ms=made_ms,
        fee_limit_sun=fee_limit_sun,
        owner=OWNER,
        contract=TOKEN,
        call_data=encode_transfer_call(RECIPIENT, units),
    )


def coins_of(amount_sun: int) -> TronTransaction:
    return TronTransaction(
        ref_block_bytes=BLOCK_BYTES,
        ref_block_hash=BLOCK_HASH,
        expiration_ms=MADE_MS + 300_000,
        timestamp_ms=MADE_MS,
        fee_limit_sun=0,
        owner=OWNER,
        recipient=RECIPIENT,
        amount_sun=amount_sun,
    )


TRANSACTIONS = [
    call_of(12_345_678),
    call_of(1),
    call_of(2**256 - 1, fee_limit_sun=15_000_000_000),
    call_of(100_000_000_000_000, made_ms=MADE_MS + 1),
    coins_of(30_000_000),
    coins_of(1),
    coins_of(2**53 - 1),
]


def give(transaction: TronTransaction, key: PrivateKey = KEY) -> dict[str, str]:
    raw_data = encode_raw(transaction)
    signature = key.sign_recoverable(compute_signing_hash(raw_data), hasher=None)
    return {
        "kind": "TransferContract" if transaction.contract is None else "TriggerSmartContract",
        "raw_data_hex": raw_data.hex(),
        "txid": txid_of(raw_data),
        "signature_hex": signature.hex(),
        "envelope_hex": join(raw_data, signature).hex(),
        "secret_hex": KEY.secret.hex(),
    }


def ask_tronweb(given: list[dict[str, str]]) -> list[dict[str, Any]]:
    install()
    told = "".join(json.dumps(one) + "\n" for one in given)
    command = [str(find_node()), str(FOLDER / "tronweb_check.cjs")]
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def give_wrong() -> list[dict[str, str]]:
    """The id of another transaction, the signature of another key, the bytes of another transaction."""
    right, other = give(call_of(12_345_678)), give(call_of(12_345_679))
    foreign = give(call_of(12_345_678), key_of("somebody else"))
    return [{**right, "txid": other["txid"]}, foreign, {**right, "raw_data_hex": other["raw_data_hex"]}]


@pytest.fixture(scope="module")
def all_answers() -> list[dict[str, Any]]:
    """What tronweb answers for each of TRANSACTIONS, and then for what is wrong."""
    return ask_tronweb([*map(give, TRANSACTIONS), *give_wrong()])


@pytest.fixture
def answers(all_answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What tronweb answers for each of TRANSACTIONS."""
    return all_answers[: len(TRANSACTIONS)]


def test_tronweb_reads_the_fields_that_we_wrote(answers: list[dict[str, Any]]) -> None:
    for transaction, said in zip(TRANSACTIONS, answers, strict=True):
        value = {"owner_address": "41" + OWNER.hex()}
        if transaction.contract is not None:
            value |= {"contract_address": "41" + TOKEN.hex(), "data": transaction.call_data.hex()}
            said_value = {key: str(one).lower() for key, one in said["value"].items() if key in value}
        else:
            value |= {"to_address": "41" + RECIPIENT.hex(), "amount": str(transaction.amount_sun)}
            said_value = {key: str(one).lower() for key, one in said["value"].items()}
        assert said_value == value
        assert said["expiration"] == transaction.expiration_ms
        assert said["timestamp"] == transaction.timestamp_ms
        assert said["fee_limit"] == transaction.fee_limit_sun
        assert said["ref_block_bytes"].lower() == transaction.ref_block_bytes.hex()
        assert said["ref_block_hash"].lower() == transaction.ref_block_hash.hex()


def test_tronweb_writes_the_same_bytes_id_and_signature(answers: list[dict[str, Any]]) -> None:
    for transaction, said in zip(TRANSACTIONS, answers, strict=True):
        given = give(transaction)
        assert said["raw_data_hex"] == given["raw_data_hex"]
        assert said["txid"] == given["txid"]
        assert said["is_whole"] is True
        assert said["signer"] == said["owner"] == "41" + OWNER.hex()
        # Both sign deterministically (RFC 6979) with a low s. Only v is written differently.
        assert said["r_and_s"] == given["signature_hex"][:128]
        assert said["envelope_raw_data_hex"] == given["raw_data_hex"]
        assert said["envelope_signatures"] == [given["signature_hex"]]


def test_tronweb_would_notice_what_is_wrong(all_answers: list[dict[str, Any]]) -> None:
    said_other, said_foreign, said_mixed = all_answers[len(TRANSACTIONS) :]
    assert said_other["is_whole"] is False
    assert said_foreign["signer"] != "41" + OWNER.hex()
    assert said_mixed["is_whole"] is False
    assert said_mixed["txid"] == give(call_of(12_345_679))["txid"]


@pytest.fixture
def seen() -> Iterator[dict[str, Any]]:
    """What tronweb sees as a client of the fake node, while blocks are made for it."""
    install()
    payer = key_of("tronweb's payer")
    with run_tron_network() as network:
        network.fund(address_of(payer), units=1_000_000, sun=1_000_000_000)
        network.mine(25)
        command = [
            *(str(find_node()), str(FOLDER / "tronweb_client.cjs"), network.urls[0], to_tron(network.token)),
            *(payer.secret.hex(), to_tron(RECIPIENT)),
        ]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            done: dict[str, Any] = {}
            for line in client.stdout:
                said = json.loads(line)
                if "done" in said:
                    done = said["done"]
                    break
                network.mine(said["mine"])
                client.stdin.write("\n")
                client.stdin.flush()
        yield done


def test_tronweb_works_with_the_double_as_with_a_node(seen: dict[str, Any]) -> None:
    payer = address_of(key_of("tronweb's payer"))
    assert seen["me"] == to_tron(payer)
    assert seen["head"] - seen["solid"] == 19
    assert (seen["sun"], seen["decimals"]) == (1_000_000_000, 6)
    assert seen["sent"] is True
    assert seen["again"] == ["DUP_TRANSACTION_ERROR", "Dup transaction."]
    assert (seen["unmined"], seen["early"], seen["late"], seen["held"]) == (0, 0, True, True)
    assert seen["outcome"] == ["SUCCESS", "0" * 64, 1]
    assert (seen["before"], seen["after"]) == ("0", "777")
    assert (seen["coins"], seen["received"]) == (True, 1_000_000)
    assert seen["forged"] == "SIGERROR"


def test_the_secret_of_these_tests_is_nobodys() -> None:
    assert KEY.secret == hashlib.sha256(f"a key that tronweb gets too{RUN}".encode()).digest()
