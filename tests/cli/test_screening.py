"""`screening` and `merchant payout-rules` at the terminal, and what `doctor` says of screening."""

import asyncio
from pathlib import Path

from tests.callbacks.receiver import Behaviour, Received, Writer, answer, hang, open_receiver
from tests.cli.conftest import Wallet
from tests.cli.test_proposals import WHY, Terminal, last_entry, terminal
from tests.ports import find_port
from tests.screening.provider import SECRET
from tests.withdrawals.conftest import ERC20_ADDRESS, TRC20_ADDRESS

from merchant_wallet.base.db import connect
from merchant_wallet.base.settings import Settings
from merchant_wallet.cli.findings import Finding
from merchant_wallet.cli.screening_checks import check_hook, judge_list
from merchant_wallet.screening import asking, store
from merchant_wallet.screening.facts import DepositFacts, Facts, PayoutFacts
from merchant_wallet.screening.hook import Answer
from merchant_wallet.screening.screening_states import Event
from merchant_wallet.screening.verdicts import Reason, Source, Verdict

__all__ = ["terminal"]


def hold(wallet: Wallet, *, name: str = "Shop", is_order: bool = True) -> int:
    """Something of a new merchant that a worker has held. Returns its number."""
    merchant_id = wallet.open_merchant(name)
    facts: Facts = DepositFacts(merchant_id, "TRC20", "t1", 0, b"s" * 20, b"r" * 20, 5_000_000)
    if is_order:
        facts = PayoutFacts(merchant_id, 7, "a", "ERC20", b"p" * 20, 5_000_000, 4_000_000, 1)

    async def run() -> int:
        async with await connect(wallet.url) as conn:
            known = await asking.begin(conn, facts, 1)
            reason = Reason(Source.LIST, Verdict.HOLD, "2 hops from a mixer")
            return (await store.move(conn, known, Event.HELD, [reason], 2)).screening_no

    return asyncio.run(run())


def test_what_is_held_is_listed_and_shown_with_its_reason(wallet: Wallet) -> None:
    number = hold(wallet)
    (line,) = wallet.ask("screening", "list")["screenings"]
    assert (line["screeningNo"], line["subject"], line["amount"]) == (number, "order 7", "5")
    assert line["why"] == "list: 2 hops from a mixer"
    assert wallet.ask("screening", "list", "--state", "refused")["screenings"] == []
    assert len(wallet.ask("screening", "list", "--state", "all")["screenings"]) == 1
    assert wallet.ask("screening", "show", number)["questions"] == []
    assert "no screening 9" in wallet.refuse("screening", "show", 9)
    assert "1 held" in [one["text"] for one in wallet.look("doctor")["checks"]]


def test_in_the_sandbox_one_person_releases_and_the_audit_log_has_the_reason(wallet: Wallet) -> None:
    number = hold(wallet, is_order=False)
    done = wallet.ask("screening", "release", number, *WHY)
    assert (done["state"], done["subject"]) == ("released", "deposit t1:0")
    entry = last_entry(wallet)
    assert (entry["action"], entry["after"]["reason"]) == ("screening.release", "contract of 3 March")
    assert "decided or asked again" in wallet.refuse("screening", "refuse", number, *WHY)


def test_two_people_release_and_one_refuses(terminal: Terminal) -> None:
    wallet = terminal.wallet
    first, second = hold(wallet), hold(wallet, name="Other", is_order=False)
    proposed = terminal.of("root").ask("screening", "release", first, *WHY)
    assert (proposed["kind"], proposed["state"]) == ("screening.release", "open")
    assert wallet.ask("screening", "show", first)["state"] == "held"
    assert "own" in terminal.of("root").refuse("proposals", "accept", proposed["proposalNo"])
    assert terminal.of("ann").ask("proposals", "accept", proposed["proposalNo"])["state"] == "accepted"
    released = wallet.ask("screening", "show", first)
    assert (released["state"], released["proposalNo"]) == ("released", proposed["proposalNo"])
    assert terminal.of("ann").ask("screening", "refuse", second, *WHY)["state"] == "refused"
    assert last_entry(wallet)["action"] == "screening.refuse"


def test_the_sources_are_asked_again(wallet: Wallet) -> None:
    number = hold(wallet)
    again = wallet.ask("screening", "ask-again", number)
    assert (again["state"], again["round"]) == ("open", 2)
    assert wallet.ask("screening", "list", "--state", "open")["screenings"][0]["screeningNo"] == number


def test_payout_rules_are_set_and_shown(wallet: Wallet) -> None:
    wallet.open_merchant()
    hours = "Mon-Fri 09:00-18:00 Asia/Shanghai"
    command = ("merchant", "payout-rules", "Shop")
    shown = wallet.ask(*command, "--limit", "100", "--count", "5", "--window", "6", "--hours", hours)
    assert (shown["payoutLimit"], shown["payoutLimitCount"], shown["payoutWindow"]) == ("100", 5, 6)
    assert (shown["payoutHours"], shown["firstPayoutLimit"]) == (hours, None)
    assert wallet.ask(*command, "--first", "0")["firstPayoutLimit"] == "0"
    assert wallet.ask(*command, "--hours", "none")["payoutHours"] is None
    assert "days, times and a time zone" in wallet.refuse(*command, "--hours", "always")
    assert "at least one rule" in wallet.refuse(*command, status=2)


def test_a_looser_rule_needs_a_second_person_and_a_stricter_one_does_not(terminal: Terminal) -> None:
    wallet = terminal.of("root")
    wallet.open_merchant()
    command = ("merchant", "payout-rules", "Shop")
    assert wallet.ask(*command, "--limit", "100", "--window", "24")["payoutLimit"] == "100"
    assert wallet.ask(*command, "--limit", "50", "--window", "48")["payoutLimit"] == "50"
    for looser in (("--limit", "51"), ("--limit", "none"), ("--window", "47")):
        assert "proposalNo" in wallet.ask(*command, *looser, *WHY)
    shown = wallet.ask("merchant", "show", "Shop")
    assert (shown["payoutLimit"], shown["payoutWindow"]) == ("50", 48)


def test_a_list_is_tried_before_it_is_used(wallet: Wallet, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text(f"{ERC20_ADDRESS} hold\n{TRC20_ADDRESS}\n")
    found = wallet.ask("screening", "check-list", listed, "--address", TRC20_ADDRESS)
    assert (found["addresses"], found["verdict"]) == (2, "refuse")
    listed.write_text("nonsense\n")
    assert "line 1" in wallet.refuse("screening", "check-list", listed)


def examine(wallet: Wallet, behave: Behaviour | None = None, *, timeout_ms: int = 30_000) -> Finding:
    """What `doctor` says of a screening URL. Without `behave` nobody is there."""

    async def run() -> Finding:
        async with open_receiver() as provider, await connect(wallet.url) as conn:
            provider.behave = behave or answer()
            port = find_port() if behave is None else provider.port
            url = f"http://127.0.0.1:{port}/screen"
            settings = Settings(screening_url=url, screening_secret=SECRET, screening_timeout_ms=timeout_ms)
            return await check_hook(conn, settings, url)

    return asyncio.run(run())


def test_doctor_says_whether_the_provider_answers(wallet: Wallet) -> None:
    for status in (200, 401, 404, 405):
        found = examine(wallet, answer(status))
        assert (found.advice, f"HTTP {status} to a GET" in found.text) == (None, True), status
    away = (None, answer(503), answer(429))
    for found in (
        *[examine(wallet, behave) for behave in away],
        *[examine(wallet, behave, timeout_ms=300) for behave in (hang, be_slow_to_begin)],
    ):
        assert "the URL does not answer" in found.text
        assert "without an answer orders and deposits wait" in (found.advice or "")


def test_doctor_says_that_the_last_question_had_no_usable_answer(wallet: Wallet) -> None:
    async def ask(error: str | None) -> None:
        async with await connect(wallet.url) as conn:
            facts = DepositFacts(merchant_id, "TRC20", f"t{error}", 0, b"s" * 20, b"r" * 20, 5_000_000)
            known = await asking.begin(conn, facts, 1)
            await asking.begin_question(conn, known, 2 if error else 1)
            if error:
                await asking.fail_question(conn, known, error)
            else:
                await asking.answer_question(conn, known, Answer(Verdict.PASS), 1)

    merchant_id = wallet.open_merchant()
    asyncio.run(ask(None))
    assert examine(wallet, answer(405)).advice is None
    asyncio.run(ask("the answer is not authentic: the signature is wrong"))
    found = examine(wallet, answer(405))
    assert "not authentic" in found.text
    assert "compare the secrets" in (found.advice or "")


async def be_slow_to_begin(request: Received, writer: Writer) -> None:
    """Says nothing for longer than the time limit."""
    await asyncio.sleep(5)


def test_doctor_reads_the_list_and_misses_the_secret(wallet: Wallet, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    assert judge_list(listed).advice is not None
    listed.write_text(ERC20_ADDRESS)
    assert "a list of 1 address in" in judge_list(listed).text
    without = Settings(screening_url="https://screen.example/ask")

    async def run() -> Finding:
        async with await connect(wallet.url) as conn:
            return await check_hook(conn, without, "https://screen.example/ask")

    assert "WALLET_SCREENING_SECRET" in (asyncio.run(run()).advice or "")
