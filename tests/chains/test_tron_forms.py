"""The fake TRON node answers in the forms of a real one, with its refusals, and charges what it charges.

`tron_forms.toml` has what a real node answered. Real nodes that are named are compared with it too.
"""

import re
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from coincurve import PrivateKey
from devnet.tron_network import TronNetwork, address_of
from tests.chains.tron_scene import RECIPIENT, WALLET_UNITS, key_of
from tests.evm_nodes import run_tron_network
from tests.named_tron import NamedTron
from tests.node_kinds import NAMED
from tests.rows import each_row
from tests.waits import TIMEOUT_S

from merchant_wallet.base.addresses import to_tron
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    compute_signing_hash,
    encode_raw,
    join,
    parse_envelope,
    reference_to,
    txid_of,
)

RECORDED = tomllib.loads((Path(__file__).parent / "tron_forms.toml").read_text(encoding="utf-8"))
PAYER, POOR, STRANGER = key_of("payer"), key_of("a poor payer"), key_of("somebody without an account")


def find_differences(form: Any, answer: Any, path: str = "answer") -> list[str]:
    """Where an answer has another form than the recorded one."""
    if isinstance(form, dict) and isinstance(answer, dict):
        known = {name.removesuffix("?"): one for name, one in form.items()}
        missing = {name for name in form if not name.endswith("?")} - answer.keys()
        found = [f"{path}.{name} is missing" for name in sorted(missing)]
        found += [f"{path}.{name} is not known" for name in sorted(answer.keys() - known.keys())]
        for name in known.keys() & answer.keys():
            found += find_differences(known[name], answer[name], f"{path}.{name}")
        return found
    if isinstance(form, list) and isinstance(answer, list):
        if bool(form) != bool(answer):
            return [f"{path} has {len(answer)} elements"]
        pairs = [(one, f"{path}[{at}]") for at, one in enumerate(answer)]
        return [text for one, where in pairs for text in find_differences(form[0], one, where)]
    return [] if isinstance(form, str) and _fits(form, answer) else [f"{path} is {answer!r}, not {form!r}"]


def _fits(form: str, value: Any) -> bool:
    if form.startswith(("= ", "~ ")):
        text = form[2:]
        return isinstance(value, str) and (value == text if form[0] == "=" else value.startswith(text))
    return {
        "any": True,
        "hex": isinstance(value, str) and re.fullmatch("([0-9a-f]{2})+", value) is not None,
        "int": type(value) is int,
        "bool": type(value) is bool,
        "text": isinstance(value, str),
    }[form]


@each_row(
    "form, answer, difference",
    [
        ({"a": "int"}, {"a": 1}, None),
        ({"a?": "int"}, {}, None),
        ({"a": "int"}, {}, "answer.a is missing"),
        ({"a": "int"}, {"a": 1, "b": 2}, "answer.b is not known"),
        ({"a": "int"}, {"a": True}, "answer.a is True, not 'int'"),
        ({"a": ["hex"]}, {"a": ["0x"]}, "answer.a[0] is '0x', not 'hex'"),
        ({}, [], "answer is [], not {}"),
        ([], [1], "answer has 1 elements"),
        ("= one", "two", "answer is 'two', not '= one'"),
        ("~ tw", "two", None),
    ],
)
def test_every_difference_of_form_is_found(form: Any, answer: Any, difference: str | None) -> None:
    assert find_differences(form, answer) == ([] if difference is None else [difference])


class Client:
    """Asks one node over HTTP, and signs transactions."""

    def __init__(self, network: TronNetwork) -> None:
        self._network = network
        self._http = httpx.Client(trust_env=False, timeout=TIMEOUT_S)
        self._made = 0

    def close(self) -> None:
        self._http.close()

    def ask(self, path: str, **question: Any) -> Any:
        url = self._network.url_of(path.split("/")[1])
        return self._http.post(url + path, json=question).json()

    def call(self, function: str, words: bytes, *, contract: bytes | None = None, solid: bool = False) -> Any:
        return self.ask(
            "/walletsolidity/triggerconstantcontract" if solid else "/wallet/triggerconstantcontract",
            owner_address="41" + address_of(PAYER).hex(),
            contract_address="41" + (contract or self._network.token).hex(),
            function_selector=function,
            parameter=words.hex(),
        )

    def sign(self, key: PrivateKey, *, signer: PrivateKey | None = None, **changes: Any) -> bytes:
        """A signed transfer of the token, or what the changes make of it."""
        head = self.ask("/wallet/getblock", detail=False)
        now_ms = head["block_header"]["raw_data"]["timestamp"]
        block_bytes, block_hash = reference_to(head["blockID"])
        self._made += 1
        fields: dict[str, Any] = {
            "ref_block_bytes": block_bytes,
            "ref_block_hash": block_hash,
            "expiration_ms": now_ms + changes.pop("lifetime_ms", 60_000),
            "timestamp_ms": now_ms + self._made,
            "fee_limit_sun": 50_000_000,
            "owner": address_of(key),
            "contract": self._network.token,
            "call_data": encode_transfer_call(RECIPIENT, changes.pop("units", 1)),
        }
        raw = encode_raw(TronTransaction(**(fields | changes)))
        signature = (signer or key).sign_recoverable(compute_signing_hash(raw), hasher=None)
        return join(raw, signature)

    def sign_coins(self, key: PrivateKey, recipient: bytes, sun: int = 1) -> bytes:
        return self.sign(
            key, contract=None, call_data=b"", fee_limit_sun=0, recipient=recipient, amount_sun=sun
        )

    def send(self, envelope: bytes) -> Any:
        return self.ask("/wallet/broadcasthex", transaction=envelope.hex())

    def record(self, envelope: bytes) -> Any:
        return self.ask("/wallet/gettransactioninfobyid", value=txid_of(parse_envelope(envelope)[0]))


@pytest.fixture
def network(tron_kind: str) -> Iterator[TronNetwork]:
    with closing(NamedTron()) if tron_kind == NAMED else run_tron_network(solid_lag=3) as made:
        for key, units, sun in ((PAYER, WALLET_UNITS, 10**9), (POOR, 0, 6_000_000)):
            made.fund(address_of(key), units=units, sun=sun)
        made.settle()
        yield made


@pytest.fixture
def client(network: TronNetwork) -> Iterator[Client]:
    made = Client(network)
    yield made
    made.close()


def expect(name: str, answer: Any) -> None:
    assert find_differences(RECORDED[name], answer) == [], name


@pytest.mark.each_node
def test_blocks_calls_and_accounts_have_the_forms_of_a_real_node(
    network: TronNetwork, client: Client
) -> None:
    head = client.ask("/wallet/getnowblock")["block_header"]["raw_data"]["number"]
    word = bytes(12) + RECIPIENT
    transfer, balance = "transfer(address,uint256)", "balanceOf(address)"
    answers = [
        ("no_such_block", client.ask("/wallet/getblock", id_or_num=str(10**6))),
        ("no_such_solid_block", client.ask("/walletsolidity/getblock", id_or_num=str(head))),
        ("no_such_solid_block", client.ask("/walletsolidity/getblockbynum", num=head)),
        ("no_block_id", client.ask("/wallet/getblock", id_or_num="nothing")),
        ("records_of_no_block", client.ask("/walletsolidity/gettransactioninfobyblocknum", num=head)),
        ("records_of_no_block", client.ask("/wallet/gettransactioninfobyblocknum", num=10**6)),
        ("records_of_first_block", client.ask("/wallet/gettransactioninfobyblocknum", num=0)),
        ("records_of_first_block", client.ask("/walletsolidity/gettransactioninfobyblocknum", num=0)),
        ("first_block", client.ask("/walletsolidity/getblock", id_or_num="0", detail=False)),
        ("no_such_block", client.ask("/wallet/gettransactioninfobyid", value="ab" * 32)),
        ("node", client.ask("/wallet/getnodeinfo")),
        ("view", client.call(balance, word)),
        ("view", client.call(balance, word, solid=True)),
        ("transfer", client.call(transfer, word + bytes(31) + b"\1")),
        ("reverted", client.call(transfer, word + b"\1" * 32)),
        ("reverted", client.call("nothing()", b"")),
        ("no_contract_to_call", client.call(balance, word, contract=RECIPIENT)),
        ("contract", client.ask("/wallet/getcontract", value="41" + network.token.hex())),
        ("no_such_block", client.ask("/wallet/getcontract", value="41" + RECIPIENT.hex())),
        ("account", client.ask("/wallet/getaccount", address="41" + address_of(PAYER).hex())),
        ("no_such_block", client.ask("/wallet/getaccount", address="41" + RECIPIENT.hex())),
        ("resources", client.ask("/wallet/getaccountresource", address="41" + address_of(PAYER).hex())),
        ("no_such_block", client.ask("/wallet/getaccountresource", address="41" + RECIPIENT.hex())),
    ]
    # Another network may have accepted further proposals, and another set-up has more to say of its node.
    may_have_more = isinstance(network, NamedTron)
    for name, answer in answers:
        differences = find_differences(RECORDED[name], answer)
        wrong = [text for text in differences if not (may_have_more and text.endswith(" is not known"))]
        assert wrong == [], name
    bad = client.ask("/wallet/gettransactioninfobyid", value="nothing")
    # The position depends on how the question is spaced.
    assert list(bad) == ["Error"]
    assert re.sub(r" \d+:\d+:", " :", bad["Error"]) == RECORDED["errors"]["no_txid"]


@pytest.mark.each_node
def test_a_node_refuses_what_a_real_one_refuses_in_its_words(network: TronNetwork, client: Client) -> None:
    # On a named network there may be more blocks before it is sent, and then it is not too far any more.
    too_far_ms = DAY_MS + (HOUR_MS if isinstance(network, NamedTron) else 1)
    expired, forged = client.sign(PAYER, lifetime_ms=-1), client.sign(PAYER, signer=STRANGER)
    right = PAYER.sign_recoverable(compute_signing_hash(parse_envelope(forged)[0]), hasher=None)
    paid = client.sign(PAYER)
    refused = {
        "nothing": client.send(b""),
        "expired": client.send(expired),
        "expired_again": client.send(expired),
        "too_far": client.send(client.sign(PAYER, lifetime_ms=too_far_ms)),
        "other_branch": client.send(client.sign(PAYER, ref_block_hash=bytes(8))),
        "wrong_signature": client.send(forged),
        "stranger": client.send(client.sign_coins(STRANGER, RECIPIENT)),
        "strangers_call": client.send(client.sign(STRANGER)),
        "high_limit": client.send(client.sign(PAYER, fee_limit_sun=15_000_000_001)),
        "to_self": client.send(client.sign_coins(PAYER, address_of(PAYER))),
        "to_contract": client.send(client.sign_coins(PAYER, network.token)),
    }
    # What was refused before is not remembered.
    for envelope in (join(parse_envelope(forged)[0], right), paid):
        expect("accepted", client.send(envelope))
    refused["duplicate"] = client.send(paid)
    network.settle()
    refused["duplicate"] = client.send(paid)
    words = {
        "SIGNATURE": parse_envelope(forged)[1].hex(),
        "SIGNER": to_tron(address_of(STRANGER)),
        "OWNER": to_tron(address_of(STRANGER)),
    }
    assert refused.keys() == RECORDED["refusals"].keys()
    for name, answer in refused.items():
        expect("refused", answer)
        text = re.sub("|".join(words), lambda found: words[found[0]], RECORDED["refusals"][name])
        assert f"{answer['code']} {answer['message']}" == text, name
    for name, garbage in (("no_hex", "nothing"), ("no_message", "0a05")):
        said = client.ask("/wallet/broadcasthex", transaction=garbage)
        assert said.keys() == {"Error"}
        assert said["Error"].startswith(RECORDED["errors"][name])


def test_records_have_the_forms_of_a_real_node_and_fees_add_up(network: TronNetwork, client: Client) -> None:
    network.fake.energy_factor = 0
    # The first transaction's bytes are free. The next ones burn TRX for all of theirs.
    reverted, paid = client.sign(PAYER, units=2 * WALLET_UNITS), client.sign(PAYER)
    starved = client.sign(PAYER, fee_limit_sun=100_000)
    for envelope in (reverted, paid, starved):
        expect("accepted", client.send(envelope))
    network.mine()
    records = [client.record(envelope) for envelope in (reverted, paid, starved)]
    for name, record in zip(
        ("record_of_revert", "record_of_success", "record_without_energy"), records, strict=True
    ):
        expect(name, record)
        assert record["fee"] == record["receipt"]["energy_fee"] + record["receipt"].get("net_fee", 0)
    # A revert burns only what it used, and a small number in the bytes makes them fewer.
    assert [record["receipt"]["energy_fee"] for record in records] == [115_900, 2_961_000, 100_000]
    assert records[0]["receipt"]["net_usage"] == 345
    assert [record["receipt"]["net_fee"] for record in records[1:]] == [345_000, 344_000]
    account = client.ask("/wallet/getaccount", address="41" + address_of(PAYER).hex())
    assert account["balance"] == 10**9 - sum(record["fee"] for record in records)
    assert account["free_net_usage"] == 345
    block = client.ask("/wallet/getblockbynum", num=records[0]["blockNumber"])
    results = [one["ret"] for one in block["transactions"]]
    assert results == [[{"contractRet": name}] for name in ("REVERT", "SUCCESS", "OUT_OF_ENERGY")]


def test_bandwidth_is_free_once_a_day_then_burnt_and_without_trx_refused(
    network: TronNetwork, client: Client
) -> None:
    def pay() -> Any:
        envelope = client.sign_coins(POOR, RECIPIENT)
        sent = client.send(envelope)
        network.mine()
        return client.record(envelope) if sent["result"] else sent["code"]

    new_account, free, burnt = pay(), pay(), [pay(), pay()]
    assert (new_account["fee"], new_account["receipt"]) == (1_100_000, {"net_fee": 100_000})
    assert (free.get("fee", 0), free["receipt"]) == (0, {"net_usage": 265})
    assert [one["receipt"] for one in burnt] == [{"net_usage": 265}, {"net_fee": 265_000}]
    network.fake.coins[address_of(POOR)] = 264_999
    assert pay() == "BANDWITH_ERROR"
    network.mine(interval_ms=DAY_MS)
    assert pay()["receipt"] == {"net_usage": 265}


def test_what_was_accepted_is_dropped_if_its_owner_cannot_pay_for_it_any_more(
    network: TronNetwork, client: Client
) -> None:
    envelope = client.sign_coins(POOR, address_of(PAYER), 5_000_000)
    expect("accepted", client.send(envelope))
    network.fake.coins[address_of(POOR)] = 1_000_000
    network.settle()
    assert client.record(envelope) == {}


def test_staked_energy_is_used_first_and_counts_for_the_fee_limit(
    network: TronNetwork, client: Client
) -> None:
    fake = network.fake
    fake.energy_factor = 0
    fake.stake(address_of(PAYER), 40_000)
    envelopes = [client.sign(PAYER), client.sign(PAYER, fee_limit_sun=1_400_000)]
    for envelope in envelopes:
        expect("accepted", client.send(envelope))
        network.mine()
    free, starved = (client.record(envelope)["receipt"] for envelope in envelopes)
    assert (free["result"], free["energy_usage"], free.get("energy_fee", 0)) == ("SUCCESS", 29_610, 0)
    assert (starved["result"], starved["energy_usage_total"]) == ("OUT_OF_ENERGY", 14_000)
    # Some of it has come back since the block before.
    assert 10_390 <= starved["energy_usage"] < 10_400
    assert starved["energy_fee"] == (14_000 - starved["energy_usage"]) * 100


def test_a_busy_contract_gets_dearer_at_a_maintenance(network: TronNetwork, client: Client) -> None:
    network.fake.energy_factor, used = 0, []
    for _ in range(8):
        answer = client.call("transfer(address,uint256)", bytes(12) + RECIPIENT + bytes(31) + b"\1")
        assert answer["energy_used"] - answer.get("energy_penalty", 0) == 29_610
        used.append(answer["energy_used"])
        network.fake.maintain(is_busy=True)
    assert used[:2] == [29_610, 35_532]
    assert used[-1] < used[0] * 4.4
    network.fake.maintain(is_busy=True)
    assert network.fake.energy_factor == 34_000
    network.fake.maintain(is_busy=False)
    assert network.fake.energy_factor == 31_800


def test_overloaded_nodes_end_calls_and_burn_the_whole_limit(network: TronNetwork, client: Client) -> None:
    network.servers[0].switches.is_overloaded = network.fake.is_overloaded = True
    answer = client.call("decimals()", b"")
    assert answer["result"]["code"] == "OTHER_ERROR"
    text = "class org.tron.core.vm.program.Program$OutOfTimeException : CPU timeout for "
    assert bytes.fromhex(answer["result"]["message"]).decode().startswith(text)
    envelope = client.sign(PAYER)
    client.send(envelope)
    network.mine()
    record = client.record(envelope)
    assert (record["receipt"]["result"], record["receipt"]["energy_fee"]) == ("OUT_OF_TIME", 50_000_000)
    network.servers[0].switches.has_calls = False
    answer = client.call("decimals()", b"")
    assert answer["result"]["code"] == "CONTRACT_VALIDATE_ERROR"


def test_each_port_serves_its_own_paths_to_fifty_connections(network: TronNetwork) -> None:
    server = network.servers[0]
    for url, path in (
        (server.wallet_url, "/walletsolidity/getnowblock"),
        (server.solid_url, "/wallet/getnowblock"),
        (server.url, "/wallet/nothing"),
        (server.url, "/walletsolidity/broadcasthex"),
    ):
        answer = httpx.post(url + path, json={}, trust_env=False)
        assert (answer.status_code, answer.headers["content-type"][:9]) == (405, "text/html")
    clients = [httpx.Client(trust_env=False, timeout=0.05) for _ in range(51)]
    path = server.wallet_url + "/wallet/getnowblock"
    for client in clients[:50]:
        assert client.post(path, json={}, timeout=30).status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        clients[50].post(path, json={})
    clients[0].close()
    assert clients[50].post(path, json={}, timeout=30).status_code == 200
    for client in clients[1:]:
        client.close()
