"""`doctor`: each fault is found and named, and the line says what to do."""

import asyncio
import json
import os
from typing import Any

import psycopg
import pytest
from devnet.chains import run_devnet
from tests.chains.http_front import front_of
from tests.cli.conftest import Wallet
from tests.recycled_databases import as_superuser
from tests.roles import as_web

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.clock import MAX_SKEW_MS, now_ms
from merchant_wallet.base.connection_limits import WORK_CONNECTIONS
from merchant_wallet.book.writer import Writer
from merchant_wallet.cli.doctor import judge_build, print_findings
from merchant_wallet.cli.findings import Finding
from merchant_wallet.cli.server_checks import judge_roles, judge_skew
from merchant_wallet.processes.python_build import runs_optimised

ALL = [
    "python",
    "configuration",
    "database",
    "tls",
    "texts",
    "session settings",
    "durability",
    "standbys",
    "migrations",
    "roles",
    "programs",
    "program clocks",
    "connections",
    "clock",
    "master key",
    "keys",
    "chains",
    "nonces",
    "checkpoints",
    "payouts",
    "disk",
    "notifications",
    "accounts",
    "sources",
]


def examine(wallet: Wallet, status: int) -> dict[str, dict[str, Any]]:
    found = wallet.ask("doctor", status=status)
    assert found["ok"] is (status == 0)
    return {check["name"]: check for check in found["checks"]}


def wrong(checks: dict[str, dict[str, Any]]) -> list[str]:
    for check in checks.values():
        assert check["ok"] == (check["advice"] is None)
    return [name for name, check in checks.items() if not check["ok"]]


def test_a_wallet_in_good_order_has_nothing_wrong(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.credit("Shop", "USDT", "1")
    wallet.variables["WALLET_PORT"] = "tcp://10.96.0.10:8080"
    checks = examine(wallet, 0)
    assert list(checks) == ALL
    assert "(WALLET_PORT): set enableServiceLinks" in checks["configuration"]["hint"]
    assert checks["accounts"]["hint"] is None
    wallet.tamper(
        "with made as (insert into operator (name, role, password_hash, created_ms)"
        " select n, 'operator', '$argon2id$', 1 from unnest(array['bob', 'Ann', 'eve']) n"
        " returning operator_id, name)"
        " insert into notification_contact"
        " (operator_id, email, email_asked_ms, email_confirmed_ms, time_zone)"
        " select operator_id, case name when 'bob' then 'A@b.example' else 'a@b.example' end, 1,"
        " case when name <> 'eve' then 2 end, 'UTC' from made"
    )
    said = wallet.run("doctor").stdout
    assert said.count("ok ") + said.count("hint ") == len(ALL)
    assert "one e-mail address for several accounts: Ann and bob\n" in said
    wallet.tamper(
        "insert into refused_request"
        " (merchant_id, at_ms, request_id, path, code, msg, source, content_type, fields, left_out)"
        " select merchant_id, extract(epoch from now()) * 1000 - ms, '', '', 1, '', source, '', '{}', '{}'"
        " from merchant, (values (0, '192.0.2.7'), (0, '::'), (86400000, '::')) seen (ms, source)"
    )
    assert "1 of 2 requests of the last day have no address" in examine(wallet, 1)["sources"]["text"]


@pytest.mark.new_database
def test_a_database_that_nobody_serves_lacks_a_place_for_nonces(wallet: Wallet) -> None:
    elsewhere = Wallet(wallet.url, wallet.folder.with_name("elsewhere"))
    checks = examine(elsewhere, 1)
    assert wrong(checks) == ["nonces"]
    assert "merchant-wallet up" in checks["nonces"]["advice"]
    assert "the first start creates it" in checks["master key"]["text"]
    assert not elsewhere.folder.exists()


def test_limits_and_defaults_are_told_of_our_own_roles_alone(wallet: Wallet) -> None:
    name, foreign = f"Limited-{os.getpid()}", f"foreign_{os.getpid()}"
    ours = f'"{name}"'
    with psycopg.connect(as_superuser(wallet.url), autocommit=True) as server:
        for role in (ours, foreign):
            server.execute(f"create role {role} login connection limit 3".encode())
            server.execute(f"alter role {role} set statement_timeout = '5s'".encode())
        try:
            server.execute(f"grant select on book to {ours}".encode())
            wallet.tamper("update side_role set role_name = %(role)s where side = 'worker'", role=name)
            checks = {check["name"]: check for check in wallet.ask("doctor")["checks"]}
        finally:
            server.execute(f"drop owned by {ours}; drop role {ours}, {foreign}".encode())
    assert f"statement_timeout = 5s (role {ours})" in checks["session settings"]["text"]
    assert f"`alter role {ours} connection limit {WORK_CONNECTIONS}`" in checks["connections"]["hint"]
    assert foreign not in str(checks)


def test_an_absent_database_ends_the_checks(wallet: Wallet) -> None:
    wallet.variables["WALLET_DATABASE_URL"] = "postgresql://wallet@127.0.0.1:1/wallet"
    checks = examine(wallet, 1)
    assert list(checks) == ALL[:3]
    assert wrong(checks) == ["database"]
    assert checks["database"]["text"].startswith("The database can't be reached: ")
    assert checks["database"]["advice"] == "Check whether it runs, and the host and the port in its URL."
    wallet.variables["WALLET_DATABASE_URL"] = ""
    assert "merchant-wallet up --data" in examine(wallet, 1)["database"]["text"]


def test_missing_and_foreign_migrations_are_told_apart(empty_database_url: str, wallet: Wallet) -> None:
    wallet.tamper("update schema_migration set checksum = 'x'")
    changed = examine(wallet, 1)
    assert wrong(changed) == ["migrations"]
    assert "was changed" in changed["migrations"]["text"]
    wallet.variables["WALLET_DATABASE_URL"] = empty_database_url
    missing = examine(wallet, 1)
    assert wrong(missing) == ["migrations"]
    assert missing["migrations"]["advice"] == "run `merchant-wallet migrate`"


def test_a_wrong_or_missing_master_key_is_seen(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.credit("Shop", "USDT", "1")
    elsewhere = Wallet(wallet.url, wallet.folder.with_name("elsewhere"))
    assert wrong(examine(elsewhere, 1)) == ["master key"]
    assert not elsewhere.folder.exists()
    elsewhere.variables["WALLET_MASTER_KEY"] = "ab" * 32
    checks = examine(elsewhere, 1)
    assert "does not open" in checks["master key"]["text"]
    assert "WALLET_MASTER_KEY" in checks["master key"]["advice"]


def test_a_frozen_payout_is_named_with_where_to_look(wallet: Wallet) -> None:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "USDT", "100")
    order_id = wallet.order(merchant_id, "10")
    wallet.tamper(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
        " frozen_cause, frozen_ms) values (%(merchant)s, %(order)s, 'TRC20', 1, 'w', 0, %(cause)s, 1)",
        cause="the order is not what the journal says",
        merchant=merchant_id,
        order=order_id,
    )
    checks = examine(wallet, 1)
    assert wrong(checks) == ["payouts"]
    assert "not what the journal says" in checks["payouts"]["text"]
    assert f"withdrawals show {merchant_id} {order_id}" in checks["payouts"]["advice"]


def test_a_wrong_setting_is_the_only_thing_looked_at(wallet: Wallet) -> None:
    wallet.variables["WALLET_PORT"] = "many"
    checks = examine(wallet, 1)
    assert list(checks) == ["python", "configuration"]
    assert "WALLET_PORT" in checks["configuration"]["text"]


def refuse_constant_calls(path: str, headers: dict[str, str]) -> tuple[int, bytes] | None:
    """As a java-tron without constant calls answers."""
    text = b"this node does not support constant".hex()
    answer = {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": text}}
    return (200, json.dumps(answer).encode()) if path.endswith("/triggerconstantcontract") else None


def test_real_chains_are_asked_whether_they_fit_the_settings(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.credit("Shop", "USDT", "1")
    nobody = {"WALLET_SIGNER_SOCKET": str(wallet.folder / "no signer")}
    with run_devnet() as devnet:
        wallet.variables |= devnet.settings | nobody
        checks = examine(wallet, 1)
        assert list(checks) == ALL
        # The tests' server does not sync to disk. With real money that is a fault.
        assert wrong(checks) == ["durability", "keys"]
        assert "ERC20 over 1 node(s), TRC20 over 2 node(s)" in checks["configuration"]["text"]
        assert "ERC20 and TRC20 fit" in checks["chains"]["text"]
        assert checks["chains"]["hint"] is None
        one_side = f"{devnet.settings['WALLET_TRC20_RPC']}, http://127.0.0.1:9"
        wallet.variables |= {"WALLET_TRC20_RPC": one_side, "WALLET_TRC20_RPC_LIMITS": "127.0.0.1:9 15/s"}
        chains = examine(wallet, 1)["chains"]
        assert chains["text"].endswith("fit the settings; limits of calls: 127.0.0.1:9 15/s")
        wallet.variables["WALLET_TRC20_RPC_LIMITS"] = ""
        hint = chains["hint"]
        assert hint == "TRC20, node 127.0.0.1:9: /wallet/getblock: connection refused"
        with front_of(devnet.settings["WALLET_TRC20_RPC"].split(",")[0], refuse_constant_calls) as port:
            wallet.variables["WALLET_TRC20_RPC"] = (
                f"{devnet.settings['WALLET_TRC20_RPC']}, http://127.0.0.1:{port}"
            )
            hint = examine(wallet, 1)["chains"]["hint"]
        assert hint.startswith(f"TRC20, node 127.0.0.1:{port}: could not call decimals()")
        assert "set vm.supportConstant in java-tron" in hint
        wallet.variables |= devnet.settings
        wallet.tamper("insert into hot_wallet (chain, address) values ('ERC20', %(empty)s)", empty=b"e" * 20)
        gas = examine(wallet, 1)
        assert wrong(gas) == ["durability", "keys", "hot wallet"]
        assert gas["hot wallet"]["text"].endswith("holds 0 ETH for fees")
        wallet.tamper(
            "with made as (insert into payout (merchant_id, order_id, chain, fence, claimed_until_ms)"
            " select merchant_id, 1, 'ERC20', 0, 0 from merchant returning *)"
            " insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms,"
            " recipient) select merchant_id, order_id, 'ERC20', %(empty)s, 1, 1, %(empty)s from made",
            empty=b"e" * 20,
        )
        wallet.tamper(
            "insert into worker_report values ('signer', 'signer', %(report)s, 'w', %(now_ms)s)",
            report='{"wallets": {"ERC20": "0xother"}}',
            now_ms=now_ms(),
        )
        successor = devnet.token.replace()
        replaced = examine(wallet, 1)
        assert wrong(replaced) == ["durability", "keys", "chains", "hot wallet"]
        said = f"ERC20: the issuer has replaced the token's contract by {to_eip55(successor.address)}"
        assert replaced["chains"]["text"] == said
        assert "move on to the new contract" in replaced["chains"]["advice"]
        waiting = replaced["hot wallet"]["text"]
        assert "1 order waits for the key of 0x6565" in waiting
        assert "the workers have that of 0xother" in waiting
        wallet.tamper("delete from hot_wallet")
        wallet.variables["WALLET_ERC20_CHAIN_ID"] = "5"
        misfit = examine(wallet, 1)
        assert wrong(misfit) == ["durability", "keys", "chains"]
        assert "the chain id is 31337, the setting says 5" in misfit["chains"]["text"]
    assert "TRC20" in examine(wallet, 1)["chains"]["text"]
    wallet.variables |= {"WALLET_ERC20_RPC": "", "WALLET_TRC20_RPC": ""}
    without = examine(wallet, 1)
    assert "WALLET_TRC20_RPC" in without["configuration"]["advice"]
    assert without["chains"]["text"] == "no chain has a node"


def test_only_what_the_round_trip_can_not_explain_is_skew() -> None:
    assert judge_skew(1000, 1400, 1700).advice is None
    assert judge_skew(1000, 1000 - MAX_SKEW_MS, 1700).advice is None
    assert judge_skew(1000, 999 - MAX_SKEW_MS, 1700).advice is not None
    late = judge_skew(1000, 1701 + MAX_SKEW_MS, 1700)
    assert late.text.startswith(f"{MAX_SKEW_MS + 1} ms")
    assert late.advice is not None


def test_a_python_built_without_optimisation_is_a_hint_and_no_fault(
    wallet: Wallet, capsys: pytest.CaptureFixture[str]
) -> None:
    wallet.open_merchant()
    wallet.credit("Shop", "USDT", "1")
    check = examine(wallet, 0)["python"]
    assert check["ok"] is True
    assert (check["hint"] is None) is runs_optimised()
    plain = judge_build(optimised=False)
    assert (plain.advice, judge_build(optimised=True).hint) == (None, None)
    print_findings([plain, judge_build(optimised=True), Finding("clock", "late", "set it")])
    first, what_to_do, second, third, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("hint   python: ")
    assert "--enable-optimizations" in what_to_do
    assert second.startswith("ok     python: ")
    assert third == "wrong  clock: late"


def test_a_side_that_could_change_entries_is_a_hint_and_no_fault(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.credit("Shop", "USDT", "1")
    assert examine(wallet, 0)["roles"]["hint"] is None

    async def look_while_the_owner_writes() -> dict[str, Any]:
        writer = Writer(wallet.url, connections=1)
        await writer.open()
        try:
            return await asyncio.to_thread(examine, wallet, 0)
        finally:
            await writer.close()

    found = asyncio.run(look_while_the_owner_writes())["roles"]
    assert found["text"] == "wallet writes to books and could change entries"
    # The sides have roles already: what was done is not said again.
    assert found["hint"].startswith("name the sides' own roles in the URLs")

    wallet.tamper("delete from side_role")
    assert "no database roles of their own" in examine(wallet, 0)["roles"]["text"]
    wallet.variables["WALLET_DATABASE_URL"] = as_web(wallet.url)
    assert "the role of one side" in examine(wallet, 0)["roles"]["text"]


def test_roles_are_judged_by_what_they_could_change() -> None:
    sides = [("wallet_web", "web", False), ("wallet_worker", "worker", False)]
    sound = judge_roles(sides)
    assert (sound.word, sound.text) == (
        "ok",
        "web side wallet_web, worker side wallet_worker; none can change what was written",
    )
    assert "--web-role" in str(judge_roles([]).hint)
    assert "--web-role" in str(judge_roles([("wallet", None, True)]).hint)
    strong = judge_roles([*sides, ("wallet", None, True)])
    assert (strong.word, strong.text) == ("hint", "wallet writes to books and could change entries")
