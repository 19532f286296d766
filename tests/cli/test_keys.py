"""`keys` and `signer`: keys are created, imported, shown and derived, and no output holds a secret."""

import asyncio
import base64
import json
import os
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chains.signing import KEYS, RULES, pay
from tests.cli.conftest import Wallet
from tests.evm_nodes import use_node
from tests.forked_commands import ForkedCommand
from tests.merchants.test_xpub_pool import read_account_no

from merchant_wallet.base.addresses import ExtendedPublicKey, format_address, to_eip55
from merchant_wallet.base.chains import COIN_TYPES, ERC20, TRC20
from merchant_wallet.base.db import connect
from merchant_wallet.chains.keys import keystore
from merchant_wallet.chains.keys.keystore import open_keystore
from merchant_wallet.chains.keys.local_signer import LocalSigner
from merchant_wallet.chains.keys.secret_storage import seal, unseal
from merchant_wallet.chains.keys.signer_socket import RemoteSigner
from merchant_wallet.chains.signer import SigningRefused, Source
from merchant_wallet.merchants import store, xpub_pool
from merchant_wallet.merchants.keys import Keyring

PASSPHRASE = "correct horse battery"
QUICK = 2**10
KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
KEY_ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def seal_quickly(secret: bytes, passphrase: str, address: bytes, *, cost: int) -> bytes:
    """Seals like the product, at a thousandth of the cost."""
    assert cost >= 2**18
    return seal(secret, passphrase, address, cost=QUICK)


@pytest.fixture
def safe(wallet: Wallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wallet:
    """A wallet whose keystore has a passphrase; keys are sealed quickly."""
    monkeypatch.setattr(keystore, "seal", seal_quickly)
    passphrase = tmp_path / "passphrase"
    passphrase.touch(mode=0o600)
    passphrase.write_text(PASSPHRASE + "\n")
    wallet.variables |= {"WALLET_KEYSTORE_PASSPHRASE_FILE": str(passphrase), "WALLET_SANDBOX": "false"}
    return wallet


def keys_of(wallet: Wallet) -> keystore.Keystore:
    """The keystore that the commands have written."""
    return open_keystore(wallet.folder / "keys", PASSPHRASE)


def level(wallet: Wallet) -> tuple[int, int]:
    """How many accounts the pool has, and how many are free."""

    async def ask() -> tuple[int, int]:
        async with await connect(wallet.url) as conn:
            return await xpub_pool.read_size(conn)

    return asyncio.run(ask())


def test_keys_are_made_once_and_accounts_derived_ahead(safe: Wallet) -> None:
    made = safe.ask("keys", "create", "--count", 150)
    assert made["accountsDerived"] == 150
    assert level(safe) == (150, 150)
    wallets = keys_of(safe).wallets()
    assert {chain: made[chain] for chain in COIN_TYPES} == {
        chain: format_address(chain, address) for chain, address in wallets.items()
    }
    shown = safe.ask("keys", "show-addresses")
    assert shown == {name: value for name, value in made.items() if name != "accountsDerived"}
    assert "All keys are in" in safe.refuse("keys", "create")


def test_a_merchants_addresses_are_those_whose_keys_the_signer_has(safe: Wallet) -> None:
    safe.run("keys", "create", "--count", 2)

    async def open_one() -> tuple[dict[str, str], int | None]:
        async with await connect(safe.url) as conn:
            made = await store.create(conn, Keyring(bytes(32)), "Shop", seed=None, at_ms=1)
            return made.merchant.account_xpubs, await read_account_no(conn, made.merchant.merchant_id)

    xpubs, account = asyncio.run(open_one())
    assert account == 0
    for chain in COIN_TYPES:
        key = keys_of(safe).deposit_key(chain, Source(account, 0, 4))
        assert key is not None
        assert ExtendedPublicKey.parse(xpubs[chain]).child(0).child(4).key == key.public_key.format()


def test_more_accounts_are_derived_where_the_last_ones_ended(safe: Wallet) -> None:
    safe.run("keys", "create", "--count", 3)
    derived = safe.ask("keys", "derive", "--count", 110)
    assert derived == {"accountsDerived": 110, "accounts": 113, "freeAccounts": 113}
    numbers = [row[0] for row in safe.read("select account_no from xpub_pool order by 1")]
    assert numbers == list(range(113))
    expected = dict(keys_of(safe).derive_accounts(0, 113))
    assert dict(safe.read("select account_no, xpubs from xpub_pool")) == expected


def test_accounts_of_another_seed_are_not_mixed_in(safe: Wallet) -> None:
    safe.run("keys", "create", "--count", 2)
    (safe.folder / "keys").rename(safe.folder / "old keys")
    told = safe.run("keys", "create", "--count", 2, status=1)
    assert "seed of another keystore" in told.stderr
    assert level(safe) == (2, 2)
    assert "seed of another keystore" in safe.refuse("keys", "derive")


def test_without_a_database_keys_are_made_and_accounts_left_for_later(safe: Wallet) -> None:
    del safe.variables["WALLET_DATABASE_URL"]
    result = safe.run("keys", "create")
    assert "keys derive" in result.stderr
    assert "audit log" in result.stderr
    assert keys_of(safe).wallets().keys() == {ERC20, TRC20}


def test_a_key_is_brought_in_from_standard_input(safe: Wallet) -> None:
    brought = json.loads(safe.run("keys", "import", "ERC20", "--json", stdin=KEY.hex()).stdout)
    assert (brought["ERC20"], brought["TRC20"], brought["seed"]) == (KEY_ADDRESS, None, False)
    completed = safe.ask("keys", "create", "--count", 1)
    assert completed["ERC20"] == KEY_ADDRESS
    assert completed["TRC20"] is not None
    again = safe.run("keys", "import", "ERC20", stdin=KEY.hex(), status=2)
    assert "it is not replaced" in again.stderr
    brought_in, made, *_ = safe.read(
        "select action, subject, after from audit_entry where starts_with(actor, 'cli:') order by audit_no"
    )
    assert brought_in == ("keys.import", "wallet ERC20", {"address": KEY_ADDRESS})
    assert made[:2] == ("keys.create", "keystore")
    assert (made[2]["made"], made[2]["ERC20"]) == (["TRC20", "seed"], KEY_ADDRESS)
    assert KEY.hex() not in str(safe.read("select e::text from audit_entry e"))


def test_an_import_says_whether_nodes_show_code_at_the_wallet(safe: Wallet) -> None:
    import_key = ("keys", "import", "ERC20")
    safe.variables["WALLET_ERC20_RPC"] = "http://127.0.0.1:9"
    assert "ERC20: no node says whether the wallet has code" in safe.run(*import_key, stdin=KEY.hex()).stderr
    with use_node() as node:
        safe.variables["WALLET_ERC20_RPC"] = node.url
        for code, is_delegated in (("0x", False), ("0xef0100" + "22" * 20, True)):
            node.ask("anvil_setCode", KEY_ADDRESS, code)
            (safe.folder / "keys" / "ERC20.json").unlink()
            told = safe.run(*import_key, stdin=KEY.hex()).stderr
            assert ("delegated code (EIP-7702)" in told) is is_delegated
            assert "no node says" not in told


def test_the_wallet_of_a_key_without_a_seed_is_taken_by_a_person_alone(safe: Wallet) -> None:
    safe.run("keys", "import", "ERC20", stdin=KEY.hex())
    safe.variables["WALLET_ERC20_RPC"] = "http://127.0.0.1:1"
    [told] = [one for one in safe.ask("doctor", status=1)["checks"] if one["name"] == "keys"]
    for said in ("these chains pay nothing", KEY_ADDRESS, "wallets take"):
        assert said in told["text"]
    assert "no key for TRC20" in safe.refuse("wallets", "take", "TRC20", "--reason", "ours")
    [taken] = safe.ask("wallets", "take", "ERC20", "--reason", "from the safe")["wallets"]
    assert (taken["chainType"], taken["address"]) == ("ERC20", KEY_ADDRESS)
    [(after,)] = safe.read("select after from audit_entry where action = 'wallet.take'")
    assert after == {"address": KEY_ADDRESS, "reason": "from the safe"}
    [told] = [one for one in safe.ask("doctor", status=1)["checks"] if one["name"] == "keys"]
    assert f"the hot wallets are {KEY_ADDRESS};" in told["text"]


def test_a_key_is_brought_in_before_the_database_has_its_tables(safe: Wallet) -> None:
    safe.tamper("drop table audit_entry cascade")
    told = safe.run("keys", "import", "ERC20", stdin=KEY.hex()).stderr
    assert "The key is imported, but the audit log could not be written" in told
    assert to_eip55(keys_of(safe).wallets()[ERC20]) == KEY_ADDRESS


def test_a_geth_key_file_is_brought_in_with_a_passphrase_of_its_own(safe: Wallet, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("geth's own\n")
    sealed = seal(KEY, "geth's own", bytes(20), cost=QUICK).decode()
    refused = safe.run("keys", "import", "TRC20", stdin=sealed, status=2)
    assert "the passphrase is wrong" in refused.stderr
    safe.run("keys", "import", "TRC20", "--file-passphrase", tmp_path / "own", stdin=sealed)
    assert to_eip55(keys_of(safe).wallets()[TRC20]) == KEY_ADDRESS


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (("create",), {"WALLET_KEYSTORE_PASSPHRASE_FILE": ""}, "set WALLET_KEYSTORE_PASSPHRASE_FILE"),
        (("create",), {"WALLET_KEYSTORE_PASSPHRASE_FILE": "/nowhere"}, "can't be read"),
        (
            ("create",),
            {"WALLET_KEYSTORE_PASSPHRASE_FILE": "", "WALLET_KEYSTORE_PASSPHRASE": "short"},
            "at least 12 characters",
        ),
        (("derive",), {}, "keys create"),
        (("import", "BEP20"), {}, "BEP20"),
    ],
)
def test_what_is_missing_is_said(
    safe: Wallet, arguments: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    safe.variables |= variables
    assert said in safe.refuse("keys", *arguments, status=2)
    assert not (safe.folder / "keys").exists()


def test_a_passphrase_file_that_others_can_read_is_refused(safe: Wallet) -> None:
    os.chmod(safe.variables["WALLET_KEYSTORE_PASSPHRASE_FILE"], 0o644)
    assert "chmod 600" in safe.refuse("keys", "create", status=2)


def test_addresses_that_are_not_there_can_not_be_shown(safe: Wallet) -> None:
    assert "There are no keys" in safe.refuse("keys", "show-addresses")


def secrets_of(wallet: Wallet) -> list[bytes]:
    """Every secret of the keystore, and the passphrase."""
    found = [unseal(path.read_bytes(), PASSPHRASE) for path in (wallet.folder / "keys").glob("*.json")]
    assert len(found) == 3
    return [*found, PASSPHRASE.encode()]


def forms_of(secret: bytes) -> list[str]:
    """The forms in which a secret could appear: hexadecimal, a number, base64, Python's repr."""
    return [
        secret.hex(),
        str(int.from_bytes(secret, "big")),
        base64.b64encode(secret).decode().rstrip("="),
        base64.urlsafe_b64encode(secret).decode().rstrip("="),
        repr(secret)[2:-1],
    ]


def test_no_command_about_keys_says_a_secret(safe: Wallet) -> None:
    said = []
    for arguments, status in (
        (("keys", "create", "--count", 3), 0),
        (("keys", "create"), 1),
        (("keys", "show-addresses"), 0),
        (("keys", "show-addresses", "--json"), 0),
        (("keys", "derive", "--count", 2, "--json"), 0),
        (("doctor",), 1),
        (("doctor", "--json"), 1),
    ):
        result = safe.run(*arguments, status=status)
        said += [result.stdout, result.stderr, repr(result)]
    safe.variables["WALLET_KEYSTORE_PASSPHRASE"] = PASSPHRASE
    safe.variables["WALLET_KEYSTORE_PASSPHRASE_FILE"] = ""
    said.append(safe.run("keys", "derive", "--count", 1).output)
    said.append(safe.run("serve", status=2).output)
    for row in safe.read("select xpubs::text from xpub_pool"):
        said.append(row[0])
    for secret in secrets_of(safe):
        for form in forms_of(secret):
            assert not [text for text in said if form.lower() in text.lower()]


def test_no_error_with_its_traceback_says_a_secret(safe: Wallet) -> None:
    safe.run("keys", "create", "--count", 1)
    hexed = KEY.hex()
    results = [
        safe.run("keys", "import", "ERC20", stdin=hexed, status=2),
        safe.run("keys", "import", "ERC20", stdin=hexed + "zz", status=2),
        safe.run("keys", "import", "ERC20", stdin=hexed[:-2], status=2),
        safe.run("keys", "import", "ERC20", stdin='{"secret": "' + hexed + '"}', status=2),
    ]
    for result in results:
        shown = result.output + "".join(traceback.format_exception(result.exception))
        assert hexed[:32] not in shown
        assert PASSPHRASE not in shown


def test_doctor_sees_the_keys(safe: Wallet) -> None:
    def keys() -> dict[str, Any]:
        checks = {check["name"]: check for check in safe.ask("doctor", status=1)["checks"]}
        found: dict[str, Any] = checks["keys"]
        return found

    assert "keys create" in keys()["advice"]
    safe.run("keys", "create", "--count", 5)
    assert "keys derive" in keys()["advice"]
    safe.run("keys", "derive", "--count", 20)
    sound = keys()
    assert sound["ok"] is True
    assert "25 accounts are free" in sound["text"]
    assert safe.ask("keys", "show-addresses")["TRC20"] in sound["text"]
    # Wallets that paid before stay ours. One that still pays waits for workers with these keys.
    safe.tamper("insert into hot_wallet (chain, address) values ('ERC20', %(address)s)", address=b"H" * 20)
    safe.tamper("insert into custody_address values ('ERC20', %(address)s, 'hot', 1)", address=b"B" * 20)
    paying, before = (format_address("ERC20", wallet * 20) for wallet in (b"H", b"B"))
    until = "paying until workers with these keys start"
    assert f"; {until}: ERC20 {paying}; before: ERC20 {before}" in keys()["text"]
    # The accounts are from the seed of another keystore.
    safe.tamper("update xpub_pool set account_no = 1000 where account_no = 0")
    safe.tamper("update xpub_pool set account_no = 0 where account_no = 1")
    stranger = keys()
    assert "nothing is paid: The keystore here has another seed" in stranger["text"]
    assert "with the keystore of this database" in stranger["advice"]
    (safe.folder / "keys" / "ERC20.json").chmod(0o644)
    assert "chmod 600" in keys()["text"]
    safe.variables["WALLET_SIGNER_SOCKET"] = str(safe.folder / "nobody.sock")
    assert "can't be asked" in keys()["text"]
    for name in ("WALLET_SIGNER_SOCKET", "WALLET_KEYSTORE_PASSPHRASE_FILE"):
        safe.variables[name] = ""
    assert "without a signer" in keys()["text"]


@pytest.fixture
def signing(safe: Wallet, tmp_path: Path) -> Iterator[ForkedCommand]:
    """`merchant-wallet signer` as a separate process that has printed `ready`."""
    for chain, key in KEYS.items():
        safe.run("keys", "import", chain, stdin=key.hex())
    variables = {
        "WALLET_ERC20_TOKEN": format_address(ERC20, bytes([0xE]) * 20),
        "WALLET_ERC20_CHAIN_ID": "31337",
        "WALLET_SIGNER_PAYMENT_LIMIT": "150",
        "WALLET_LOG_LEVEL": "debug",
    }
    with safe.begin("signer", "--socket", tmp_path / "s", **variables) as running:
        assert running.read_line() == f"ready: {tmp_path / 's'}"
        yield running


def test_the_signers_process_signs_under_its_own_limits_until_it_is_told_to_stop(
    signing: ForkedCommand, safe: Wallet, tmp_path: Path
) -> None:
    remote = RemoteSigner(tmp_path / "s")
    wallets = asyncio.run(remote.wallets())
    assert wallets == keys_of(safe).wallets()
    signature = asyncio.run(remote.sign(pay(1, 150)))
    assert len(signature) == 65
    with pytest.raises(SigningRefused, match="at most 150 USDT at once"):
        asyncio.run(remote.sign(pay(2, 151)))
    signing.send(signal.SIGTERM)
    status, output, log = signing.finish()
    assert status == 0
    assert not (tmp_path / "s").exists()
    assert '"signed"' in log
    for key in (*KEYS.values(), PASSPHRASE.encode()):
        for form in forms_of(key):
            assert form.lower() not in (output + log).lower()


def test_a_killed_signer_remembers_what_it_signed(
    signing: ForkedCommand, safe: Wallet, tmp_path: Path
) -> None:
    asyncio.run(RemoteSigner(tmp_path / "s").sign(pay(1, 150, nonce=4)))
    signing.send(signal.SIGKILL)
    assert signing.wait() == -signal.SIGKILL
    again = LocalSigner(keys_of(safe), RULES)
    with pytest.raises(SigningRefused, match="with nonce 4 before"):
        asyncio.run(again.sign(pay(1, 150, nonce=5)))


def test_an_order_that_the_signer_refuses_is_released_by_an_operators_word(
    signing: ForkedCommand, safe: Wallet, tmp_path: Path
) -> None:
    remote = RemoteSigner(tmp_path / "s")
    asyncio.run(remote.sign(pay(7, 150, nonce=4)))
    assert "nothing was ever signed" in safe.refuse("keys", "release", 8, "--reason", "a slip")
    assert safe.ask("keys", "release", 7, "--reason", "place 4 was a fill's")["released"] is True
    asyncio.run(remote.sign(pay(7, 150, nonce=5)))
    kept = (safe.folder / "keys" / keystore.JOURNAL).read_text()
    assert "place 4 was a fill's" in kept
    assert '"actor":"cli:' in kept
