"""The command line when two people are needed: one proposes, another accepts."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, LiteralString

import pytest
from tests.cli.conftest import Wallet
from tests.cli.test_deposits import hold, watch_only
from tests.waits import BLOCKED_BY

from merchant_wallet import cli
from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.db import connect_sync

WHY = ("--reason", "contract of 3 March")


class Terminal:
    """People at the terminal of one wallet, each under the name they are logged in with."""

    def __init__(self, wallet: Wallet, patch: pytest.MonkeyPatch) -> None:
        self.wallet = wallet
        self._patch = patch

    def of(self, name: str) -> Wallet:
        """The wallet with this person at the terminal."""
        self._patch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_name=name))
        return self.wallet


@pytest.fixture
def terminal(wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A wallet that needs two people, with an owner whose approvals count."""
    wallet.variables["WALLET_SANDBOX_TWO_PEOPLE"] = "true"
    made = Terminal(wallet, monkeypatch)
    made.of("root").run("operator", "create", "ann", "--role", "owner", *WHY)
    wallet.tamper(
        "update operator set totp_sealed = 'x', totp_confirmed_ms = 1, totp_last_step = 1 where name = 'ann'"
    )
    return made


def last_entry(wallet: Wallet) -> dict[str, Any]:
    """The newest entry of the audit log."""
    entry = wallet.ask("audit", "list", "--limit", "1")["entries"][0]
    assert isinstance(entry, dict)
    return entry


def test_while_nobody_else_can_decide_the_shell_is_the_second_person(wallet: Wallet) -> None:
    wallet.variables["WALLET_SANDBOX_TWO_PEOPLE"] = "true"
    wallet.run("operator", "create", "ann", "--role", "owner")
    assert wallet.read("select count(*) from operator_wait") == [(0,)], "the first operator does not wait"
    create = ("operator", "create", "bob", "--role", "owner")
    assert "--reason" in wallet.refuse(*create)
    made = wallet.run(*create, *WHY)
    assert "Nobody else could accept it" in made.stderr
    assert wallet.read("select person, cause from operator_wait") == [("bob", "created")]
    entry = last_entry(wallet)
    assert (entry["action"], entry["after"]["alone"]) == ("operator.create", True)
    assert entry["after"]["reason"] == "contract of 3 March"


def test_a_held_deposit_is_credited_and_moved_money_recorded_only_by_two_people(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.variables["WALLET_SANDBOX_CONFIRM_MS"] = "0"
    wallet.open_merchant()
    address = wallet.ask("merchant", "show", "Shop")["depositAddress"]
    sent = wallet.ask("deposits", "simulate", address, "25")["txHash"]
    watch_only(wallet)
    hold(wallet, sent)
    released = wallet.ask("deposits", "release", sent, *WHY)
    assert released["before"] == {"status": "held", "block": 1, "cause": "its block 1 has left the chain"}
    recorded = wallet.ask("reconcile", "record", "OUT", "ERC20", "5", "--tx", "ab" * 32, *WHY)
    for made in (released, recorded):
        assert "your own" in wallet.refuse("proposals", "accept", made["proposalNo"])
    assert wallet.read("select status from deposit") == [("held",)]
    assert wallet.read("select count(*) from treasury_movement") == [(0,)]
    for made in (released, recorded):
        terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert wallet.read("select kind, arguments->>'amount' from asked_act") == [("deposits.release", "25")]
    assert wallet.read("select amount, actor from treasury_movement") == [(5_000_000, "cli:bob")]
    # Not to credit it moves nothing: one person does it.
    assert terminal.of("root").ask("deposits", "drop", sent, *WHY)["status"] == "dropped"


def test_payouts_go_on_once_another_person_has_accepted_it(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.run("wallets", "stop", "TRC20", "--reason", "odd balances")
    assert "--reason" in wallet.refuse("wallets", "resume", "TRC20")
    made = wallet.ask("wallets", "resume", "TRC20", "--reason", "the node was replaced")
    assert [stop["chainType"] for stop in wallet.ask("wallets", "list")["stops"]] == ["TRC20"]
    assert "your own" in wallet.refuse("proposals", "accept", made["proposalNo"])
    shown = wallet.ask("proposals", "show", made["proposalNo"])
    assert shown["before"]["stops"][0]["cause"] == "odd balances"
    assert isinstance(shown["before"]["stops"][0]["sinceMs"], int)
    assert shown["before"]["frozenMs"] is None
    assert (made["before"], made["after"]) == (shown["before"], {"stoppedBy": None})
    told = wallet.run("proposals", "show", made["proposalNo"]).stdout
    assert "Cause: odd balances" in told
    assert "Frozen since: none" in told
    assert not set("{}[]") & set(told)
    done = terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert (done["kind"], done["state"], done["subject"]) == ("wallet.thaw", "accepted", "wallet TRC20")
    assert wallet.ask("wallets", "list")["stops"] == []
    entry = last_entry(wallet)
    assert (entry["action"], entry["before"]["stops"][0]["cause"]) == ("wallet.thaw", "odd balances")


def test_a_looser_limit_is_proposed_and_another_person_accepts_it(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    assert wallet.ask("merchant", "set", "Shop", "--approval-limit", "500")["approvalLimit"] == "500"
    loosen = ("merchant", "set", "Shop", "--approval-limit", "5000", "--daily-limit", "9000")
    assert "--reason" in wallet.refuse(*loosen)
    made = wallet.ask(*loosen, *WHY)
    assert (made["approvalLimit"], made["dailyLimit"]) == ("500", "9000"), "what tightens holds at once"
    number = made["proposalNo"]
    (listed,) = wallet.ask("proposals", "list")["proposals"]
    assert (listed["before"], listed["after"]) == ({"approval-limit": "500"}, {"approval-limit": "5000"})
    assert re.search(
        r"Approval above: 500\.00 USDT +Approval above: 5,000\.00 USDT ",
        wallet.run("proposals", "list").stdout,
    )
    assert "your own" in wallet.refuse("proposals", "accept", number)
    done = terminal.of("bob").ask("proposals", "accept", number)
    assert (done["state"], done["proposedBy"], done["decidedBy"]) == ("accepted", "cli:root", "cli:bob")
    assert wallet.ask("merchant", "show", "Shop")["approvalLimit"] == "5000"
    assert last_entry(wallet)["action"] == "merchant.set"
    again = wallet.refuse("proposals", "accept", number)
    assert "decided already" in again


def test_a_key_that_may_do_more_is_proposed_and_another_person_accepts_it(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    wallet.ask("merchant", "set-key", "Shop", "1", "--operations", "queryOrder,getMerchantBalance")
    assert "No key of this merchant" in wallet.refuse("merchant", "add-key", "Shop", "--name", "wide")
    add_till(terminal)
    widen = ("merchant", "set-key", "Shop", "2", "--operations", "any", "--networks", "192.0.2.0/24")
    assert "--reason" in wallet.refuse(*widen)
    made = wallet.ask(*widen, *WHY)
    assert (made["before"], made["after"]) == ({"operations": "queryOrder"}, {"operations": "any"})
    key = wallet.ask("merchant", "keys", "Shop")["keys"][1]
    assert (key["operations"], key["networks"]) == (["queryOrder"], ["192.0.2.0/24"])
    done = terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert done["state"] == "accepted"
    assert wallet.ask("merchant", "keys", "Shop")["keys"][1]["operations"] == []
    assert last_entry(wallet)["action"] == "merchant.set_key"


def test_a_proposal_about_a_key_that_is_revoked_meanwhile_fails(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    add_till(terminal)
    made = wallet.ask("merchant", "set-key", "Shop", "2", "--operations", "any", *WHY)
    wallet.ask("merchant", "revoke-key", "Shop", "2")
    done = terminal.of("bob").ask("proposals", "accept", made["proposalNo"], status=1)
    assert "is revoked" in done["outcome"]
    assert wallet.ask("proposals", "show", made["proposalNo"])["state"] == "failed"


def add_till(terminal: Terminal) -> dict[str, Any]:
    """A key that root proposes and bob accepts. Returns what bob is shown."""
    add = ("merchant", "add-key", "Shop", "--name", "till", "--operations", "queryOrder")
    wallet = terminal.of("root")
    assert "--reason" in wallet.refuse(*add)
    made = wallet.ask(*add, *WHY)
    assert "appSecret" not in made
    done: dict[str, Any] = terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    terminal.of("root")
    return done


def test_key_for_a_merchant_is_made_by_two_who_both_wait_before_they_approve_its_orders(
    terminal: Terminal,
) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    wallet.tamper("delete from staff_secret")
    done = add_till(terminal)
    assert len(done["appSecret"]) == 32
    assert done["appSecret"] not in str(wallet.ask("audit", "list", "--merchant", "Shop"))
    rows = wallet.read("select person, key_no, eligible_ms - made_ms from staff_secret order by person")
    assert rows == [("bob", 2, 86_400_000), ("root", 2, 86_400_000)]
    for command in (("roll-key", "Shop", "2", "--overlap", "0"), ("rotate-secret", "Shop")):
        assert "--reason" in terminal.of("root").refuse("merchant", *command)
        proposed = wallet.ask("merchant", *command, *WHY)
        assert (proposed["before"]["rolled"], proposed["after"]["rolled"]) == (False, True)
        rolled = terminal.of("bob").ask("proposals", "accept", proposed["proposalNo"])
        assert len(rolled["appSecret"]) == 32
    assert "still works" in terminal.of("root").refuse("merchant", "rotate-secret", "Shop", *WHY)
    assert wallet.read("select person, count(*)::int from staff_secret group by person order by person") == [
        ("bob", 3),
        ("root", 3),
    ]


def test_a_proposed_roll_is_stale_once_the_key_has_another_secret(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    made = [
        wallet.ask("merchant", "roll-key", "Shop", "1", "--overlap", "0", *WHY),
        wallet.ask("merchant", "roll-key", "Shop", "1", "--overlap", "5h", *WHY),
        wallet.ask("merchant", "rotate-secret", "Shop", *WHY),
    ]
    first, *others = [proposed["proposalNo"] for proposed in made]
    terminal.of("bob").ask("proposals", "accept", first)
    for number in others:
        assert "Propose it again" in wallet.ask("proposals", "accept", number, status=1)["outcome"]
    assert wallet.read("select count(*)::int from merchant_secret where purpose = 'app'") == [(2,)]


def test_a_proposed_address_that_looks_like_a_known_one_is_named(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    shop = wallet.open_merchant()
    listed, alike = (f"0x742d{digit * 32}f44e" for digit in "12")
    wallet.run("merchant", "set", "Shop", "--allow-address", listed)
    made = wallet.ask("merchant", "set", "Shop", "--allow-address", listed, "--allow-address", alike, *WHY)
    [found] = made["lookalikes"]
    assert (found["address"].lower(), found["looksLike"].lower()) == (alike, listed)
    [waiting] = wallet.ask("proposals", "list")["proposals"]
    assert waiting["lookalikes"] == made["lookalikes"]
    shown = wallet.run("proposals", "show", made["proposalNo"])
    assert "Looks like 0x742d…f44e of the allow-list, but is another" in shown.stderr
    ours = to_eip55(wallet.register(shop, "dave").evm_address)
    cold = wallet.ask("cold", "wallet", "ERC20", f"{ours[:6]}{'0' * 32}{ours[-4:]}".lower(), *WHY)
    assert [(one["looksLike"], one["known"]) for one in cold["lookalikes"]] == [(ours, "ours")]


def test_suspended_merchant_is_resumed_by_two(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    wallet.run("merchant", "suspend", "Shop")
    assert "--reason" in wallet.refuse("merchant", "resume", "Shop")
    made = wallet.ask("merchant", "resume", "Shop", *WHY)
    assert (made["kind"], made["before"], made["after"]) == (
        "merchant.resume",
        {"status": "suspended"},
        {"status": "active"},
    )
    assert wallet.ask("merchant", "show", "Shop")["status"] == "suspended"
    terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert wallet.ask("merchant", "show", "Shop")["status"] == "active"


def test_the_copy_of_a_book_that_is_kept_is_chosen_by_two(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    shop = wallet.open_merchant()
    accept = ("book", "accept-rollback", "--keep", f"{shop}=main", *WHY)
    assert "no evidence" in wallet.refuse(*accept)
    wallet.tamper(
        "insert into rollback_evidence (merchant_id, subject, kind, cause, since_ms)"
        " values (0, 'home', 'behind', 'home was rolled back', 0)"
    )
    [made] = wallet.ask(*accept)["proposals"]
    assert (made["kind"], made["before"], made["after"]) == (
        "merchant.keep_copy",
        {"cell": None},
        {"cell": "main"},
    )
    assert wallet.read("select * from kept_copy") == []
    terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert wallet.read("select merchant_id, cell_id from kept_copy") == [(shop, 0)]
    # What was chosen already needs nobody. The acceptance does not need it, and drops it.
    assert terminal.of("root").ask(*accept)["books"] == []
    assert wallet.read("select * from kept_copy") == []


def test_a_rate_and_operators_are_proposed_too(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    first = wallet.ask("rates", "set", "USDT:KFB", "7.1", *WHY)
    assert first["kind"] == "rate.set"
    terminal.of("bob").run("proposals", "accept", first["proposalNo"])
    terminal.of("root")
    assert wallet.ask("rates", "set", "USDT:KFB", "7.2")["rate"] == "7.2"
    beyond = wallet.run("rates", "set", "USDT:KFB", "8", *WHY)
    assert "Another person accepts it" in beyond.stderr
    made = wallet.ask("operator", "create", "eve", "--role", "operator", *WHY)
    assert made["kind"] == "operator.create"
    taken = terminal.of("bob").ask("proposals", "accept", made["proposalNo"])
    assert len(taken["password"]) == 20
    assert "already" in wallet.refuse("operator", "create", "eve", "--role", "operator", *WHY)
    wallet.run("operator", "disable", "eve")
    stdin = wallet.run(
        "operator", "reset", "eve", "--password-stdin", *WHY, stdin="seven grey herons wade", status=1
    )
    assert "can't be chosen" in stdin.stderr
    for command in (("reset", "eve"), ("enable", "eve"), ("set-role", "eve", "--role", "owner")):
        assert wallet.ask("operator", *command, *WHY)["kind"].startswith("operator.")
    assert wallet.ask("operator", "set-role", "eve", "--role", "auditor")["role"] == "auditor"


def test_the_only_owner_who_is_locked_out_is_reset_from_the_shell(terminal: Terminal) -> None:
    made = terminal.of("root").ask("operator", "reset", "ann", *WHY)
    assert len(made["password"]) == 20
    assert last_entry(terminal.wallet)["after"]["alone"] is True


def test_a_proposal_is_refused_or_withdrawn_at_the_terminal(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    numbers = [
        wallet.ask("merchant", "set", "Shop", "--approval-limit", amount, *WHY)["proposalNo"]
        for amount in ("2000", "3000")
    ]
    refused = terminal.of("bob").ask("proposals", "refuse", numbers[0], "--reason", "no such contract")
    assert (refused["state"], refused["outcome"]) == ("refused", "no such contract")
    assert "Only cli:root" in wallet.refuse("proposals", "withdraw", numbers[1])
    assert terminal.of("root").ask("proposals", "withdraw", numbers[1])["state"] == "withdrawn"
    assert wallet.ask("proposals", "list")["proposals"] == []
    assert len(wallet.ask("proposals", "list", "--decided")["proposals"]) == 2
    assert wallet.ask("proposals", "show", numbers[0])["state"] == "refused"
    assert "no proposal 99" in wallet.refuse("proposals", "show", 99)


def test_an_approval_at_the_terminal_waits_as_the_operators_do(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.credit(wallet.open_merchant(), "USDT", "100")
    order = wallet.order(1001, "40")
    wallet.tamper(
        "insert into operator_wait values ('bob', 1, 4000000000000, 'reset')",
    )
    assert "do not count yet" in terminal.of("bob").refuse("withdrawals", "approve", order)
    assert "do not count yet" in terminal.of("root").refuse("withdrawals", "approve", order), (
        "made its secret"
    )
    assert terminal.of("cy").ask("withdrawals", "approve", order)["approvals"]["given"] == 1


def test_person_whose_account_is_disabled_changes_nothing_at_the_terminal(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    wallet.ask("merchant", "set", "Shop", "--approval-limit", "500")
    wallet.tamper("update operator set status = 'disabled' where name = 'ann'")
    number = last_entry(wallet)["auditNo"]
    ann = terminal.of("Ann")
    commands: tuple[tuple[str, ...], ...] = (
        ("merchant", "set", "Shop", "--approval-limit", "400"),
        ("merchant", "set", "Shop", "--approval-limit", "600", *WHY),
        ("merchant", "suspend", "Shop"),
        ("merchant", "roll-key", "Shop", "1", *WHY),
        ("merchant", "move", "Shop", "main"),
        ("cell", "move", "far", "--undo"),
        ("callbacks", "pause", "Shop"),
        ("wallets", "stop", "TRC20", "--reason", "odd balances"),
        ("rates", "set", "USDT:KFB", "7.1"),
        ("operator", "end-sessions", "ann"),
    )
    for command in commands:
        assert "Your account was disabled" in ann.refuse(*command), command
    assert last_entry(wallet)["auditNo"] == number
    assert wallet.ask("merchant", "show", "Shop")["approvalLimit"] == "500"


def test_all_acts_of_the_terminal_are_recorded_with_their_right() -> None:
    """`session.author` reads the right again. What uses another way is named here, with its reason."""
    others = {
        "session.py": "makes the author",
        "archive.py": "the files are written",
        "backups.py": "the back-up is made",
        "finance.py": "the month is prepared, which decides nothing",
        "keys.py": "the keystore has its keys, perhaps before there was a database",
        "sweep.py": "the sweeps are open; who asked for it was held",
    }
    ways = ("Author(", ".afterwards", "records.append", "audit.append")
    folder = Path(str(cli.__file__)).parent
    found = {path.name for path in folder.glob("*.py") if any(way in path.read_text() for way in ways)}
    assert found == set(others)


def test_a_reason_is_kept_also_where_one_person_is_enough(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    # Tightening takes one person. In the sandbox one person is enough for everything.
    wallet.run("merchant", "set", "Shop", "--approval-limit", "500", *WHY)
    assert last_entry(wallet)["after"] == {"approvalLimit": "500", "reason": WHY[1]}
    wallet.variables["WALLET_SANDBOX_TWO_PEOPLE"] = "false"
    wallet.run("wallets", "stop", "TRC20", "--reason", "odd balances")
    commands = (
        ("merchant", "set", "Shop", "--approval-limit", "5000"),
        ("rates", "set", "USDT:KFB", "7.1"),
        ("operator", "create", "bob", "--role", "auditor"),
        ("operator", "reset", "bob"),
        ("operator", "set-role", "bob", "--role", "operator"),
        ("operator", "enable", "bob"),
        ("wallets", "resume", "TRC20"),
    )
    for command in commands:
        wallet.run(*command, *WHY)
        after = last_entry(wallet)["after"]
        assert after["reason"] == WHY[1], command
        assert "alone" not in after, command
    number = last_entry(wallet)["auditNo"]
    too_long = wallet.refuse("rates", "set", "USDT:KFB", "7.2", "--reason", "x" * 501)
    assert "1 to 500 printable characters" in too_long
    assert last_entry(wallet)["auditNo"] == number


@pytest.mark.parametrize(
    ("command", "meanwhile"),
    [
        (("enable", "eve"), "update operator set status = 'disabled' where name = 'eve'"),
        (
            ("set-role", "eve", "--role", "operator"),
            "update operator set role = 'auditor' where name = 'eve'",
        ),
    ],
    ids=["disabled", "lowered"],
)
def test_what_somebody_took_away_meanwhile_is_given_back_by_two(
    terminal: Terminal, command: tuple[str, ...], meanwhile: LiteralString
) -> None:
    wallet = terminal.of("root")
    made = wallet.ask("operator", "create", "eve", "--role", "operator", *WHY)
    terminal.of("bob").run("proposals", "accept", made["proposalNo"])
    terminal.of("root")
    with connect_sync(wallet.url) as other, ThreadPoolExecutor(1) as late:
        with other.transaction():
            other.execute(meanwhile)
            answer = late.submit(wallet.ask, "operator", *command, *WHY)
            with connect_sync(wallet.url) as watcher:
                while watcher.execute(BLOCKED_BY, [other.info.backend_pid]).fetchone() is None:
                    assert not answer.done()
        assert answer.result()["kind"].startswith("operator.")
