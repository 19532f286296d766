"""The page Safety: stop and resume all, asked acts with their outcome, and what only workers see."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.money_scene import open_sweep
from tests.console.test_banner import all_goes_on, banner, hold, stop
from tests.console.test_withdrawals import Till, audit, till
from tests.journeys.conftest import MASTER_KEY, Platform
from tests.roles import as_worker

from merchant_wallet.approvals.acts.worker import ActWorker
from merchant_wallet.base import db
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.config import load_settings
from merchant_wallet.processes.act_performers import make_performers
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.worker import make_readers
from merchant_wallet.reporting.payout_pace import Pace

__all__ = ["all_goes_on", "till"]

SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0}
SAFETY = "/console/safety"
WHY = "a node lies"


@pytest.fixture(autouse=True)
def nothing_asked(platform: Platform) -> Iterator[None]:
    """Each test begins without asked acts and reports."""
    yield
    platform.rows("delete from asked_act")
    platform.rows("delete from worker_report")


def work(platform: Platform) -> None:
    """One turn of the worker that carries out what people asked for."""
    environment = {
        "WALLET_MASTER_KEY": MASTER_KEY.hex(),
        "WALLET_SANDBOX": "true",
    }

    async def turn() -> None:
        base = make_base(load_settings(environment), as_worker(platform.url))
        connect = partial(db.connect, as_worker(platform.url))
        worker = ActWorker(connect, make_performers(base, connect, make_readers), clock=platform.clock)
        await worker.begin_waiting()
        await worker.finish_under_way()
        await worker.close()

    # A browser's test has an event loop of its own in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(turn())).result()


def ask(person: ConsoleUser, path: str, **form: str) -> str:
    """Ask for an act; the URL of its page."""
    answer = person.post(f"{SAFETY}/{path}", form)
    assert answer.status_code == 303
    return str(answer.headers["location"])


def test_one_person_stops_every_chain_and_two_resume_them(till: Till, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    before = len(audit(till.platform, "wallet TRC20"))
    told = ann.follow(ann.post(f"{SAFETY}/stop-all", {"reason": WHY}))
    assert "Stopped: nothing new is signed on ERC20, TRC20." in read_text(told.text)
    assert "All stopped" in read_text(told.text)
    assert "Payouts on ERC20, TRC20 are stopped" in banner(ben, "/console")
    told = ann.follow(ann.post(f"{SAFETY}/resume-all", {"reason": "the node was replaced"}))
    assert "Proposed for ERC20, TRC20. Another person must accept each." in read_text(told.text)
    assert "Payouts on ERC20, TRC20 are stopped" in banner(ben, "/console"), "a proposal resumes nothing"
    proposals = till.platform.rows(
        "select proposal_no from proposal where state = 'open' order by proposal_no"
    )
    for (number,) in proposals[-2:]:
        ben.post(f"/console/proposals/{number}/accept")
    assert banner(ben, "/console") == ""
    assert audit(till.platform, "wallet TRC20")[before:] == [
        (f"operator:{ann.name}", "wallet.freeze"),
        (f"operator:{ann.name}", "wallet.thaw.propose"),
        (f"operator:{ben.name}", "wallet.thaw"),
    ]


def test_stopping_all_needs_a_reason_and_stops_what_others_have_not(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    ann.post(f"{SAFETY}/stop-all", {"reason": ""})
    assert till.platform.rows("select count(*) from payout_stop") == [(0,)]
    stop(till.platform, "TRC20", f"operator:{ann.name}")
    told = ann.follow(ann.post(f"{SAFETY}/stop-all", {"reason": WHY}))
    assert "Stopped: nothing new is signed on ERC20." in read_text(told.text)


def test_a_worker_compares_when_asked_and_its_page_shows_the_outcome(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    url = ask(ann, "all/reconcile")
    assert "Waits for a worker" in read_text(ann.page(url))
    assert ask(people.again(ann), "all/reconcile") == url, "the same is asked once"
    work(till.platform)
    told = read_text(people.again(ann).page(url))
    assert "Done" in told
    assert "Books match the chain" in told
    assert audit(till.platform, "all chains") == [
        (f"operator:{ann.name}", "reconcile.run.asked"),
        ("worker", "reconcile.run"),
    ]


def test_blocks_are_read_again_from_a_number_on(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    refused = ann.follow(ann.post(f"{SAFETY}/TRC20/rescan", {"first_block": "0"}))
    assert "Type the number of the first block to read again" in read_text(refused.text)
    till.platform.rows(
        "insert into chain_cursor (chain, final_number, final_hash, head_number, head_hash, moved_ms)"
        " values ('TRC20', 5000, 'x', 5000, 'x', 1) on conflict (chain) do update set final_number = 5000"
    )
    url = ask(people.again(ann), "TRC20/rescan", first_block="1")
    work(till.platform)
    assert "The watchers read again from block 1 on." in read_text(people.again(ann).page(url))
    assert till.platform.rows("select final_number from chain_cursor where chain = 'TRC20'") == [(0,)]


def test_a_range_of_blocks_is_read_again_and_says_what_was_missing(till: Till, people: People) -> None:
    ann, platform = people.signed_in("operator"), till.platform
    for last in ("4", "0", "x", "1,000,005", "9" * 5000):
        form = {"first_block": "5", "last_block": last}
        told = ann.follow(ann.post(f"{SAFETY}/TRC20/rescan", form))
        assert "Nothing was asked: the last block is a number from the first block on" in read_text(told.text)
    assert platform.rows("select count(*) from asked_act") == [(0,)]
    platform.rows("delete from chain_cursor where chain = 'TRC20'")
    url = ask(people.again(ann), "TRC20/rescan", first_block="1", last_block="1")
    other = people.again(ann)
    told = other.follow(other.post(f"{SAFETY}/TRC20/rescan", {"first_block": "1"}))
    assert "Another one for the same chain is under way" in read_text(told.text)
    work(platform)
    assert "The chain was not read up to the last block yet." in read_text(people.again(ann).page(url))


def test_a_sweep_in_the_sandbox_fails_with_a_sentence(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    url = ask(ann, "TRC20/sweep-plan")
    work(till.platform)
    told = read_text(people.again(ann).page(url))
    assert "Failed" in told
    assert "There is nothing to sweep: the sandbox's chains hold no real deposits." in told


def test_a_sweep_that_cannot_go_on_is_shown_and_ended_with_a_reason(till: Till, people: People) -> None:
    ann, platform = people.signed_in("operator"), till.platform
    sweep_id = open_sweep(platform, b"D" * 20)
    page = ann.page(SAFETY)
    assert format_address("TRC20", b"D" * 20) in page
    assert "Open sweeps" in read_text(page)
    assert "dear" in read_text(page)
    untold = ann.follow(ann.post(f"{SAFETY}/sweeps/{sweep_id}/end", {"reason": ""}))
    assert "reason" in read_text(untold.text)
    assert ann.post(f"{SAFETY}/sweeps/{sweep_id + 1}/end", {"reason": WHY}).status_code == 404
    url = ask(people.again(ann), f"sweeps/{sweep_id}/end", reason=WHY)
    work(platform)
    assert "The sweep is ended." in read_text(people.again(ann).page(url))
    [(step, cause)] = platform.rows("select step, cause from sweep where sweep_id = %s", sweep_id)
    assert (step, cause) == ("failed", f"operator:{ann.name} ended it: {WHY}")
    assert audit(platform, f"sweep {sweep_id}") == [
        (f"operator:{ann.name}", "sweep.end.asked"),
        ("worker", "sweep.end"),
    ]


def test_an_act_that_no_worker_has_begun_is_cancelled(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    url = ask(ann, "TRC20/sweep-plan")
    told = ann.follow(ann.post(f"{url}/cancel"))
    assert "Cancelled before a worker began." in read_text(told.text)
    again = people.again(ann)
    assert "It can't be cancelled any more" in read_text(again.follow(again.post(f"{url}/cancel")).text)
    assert again.post(f"{SAFETY}/acts/987654/cancel").status_code == 404


def run_worker(platform: Platform) -> None:
    """A worker that was seen a moment ago."""
    platform.rows(
        "insert into instance (instance_id, side, version, schema_version, host, pid, started_ms, seen_ms)"
        " select gen_random_uuid(), 'worker', '1', 1, 'h', 7, t, t"
        " from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as t) now"
    )


def test_without_a_worker_nothing_is_called_going_on(till: Till, people: People) -> None:
    ann, platform = people.signed_in("operator"), till.platform
    platform.rows("delete from instance where side = 'worker'")
    platform.rows(
        "insert into worker_report values ('signer', 'signer', %s, 'w', %s),"
        " ('chain set-up', 'all', %s, 'w', %s)",
        *(Jsonb({"answers": True}), platform.clock() - 90_000),
        *(Jsonb({"fits": True, "wrong": []}), platform.clock() - 90_000),
    )
    page = read_text(ann.page(SAFETY))
    assert "Nothing is paid, no deposit is read, and asked acts wait." in page
    assert "Going on" not in page
    assert "Every order goes on" not in page
    assert "not known now" in page, "the report is old"
    told = people.again(ann)
    answer = told.post(f"{SAFETY}/TRC20/sweep-plan")
    page = read_text(told.follow(answer).text)
    assert "no worker runs now, so nothing happens until one is started" in page
    assert "It waits until one is started" in page
    run_worker(platform)
    page = read_text(people.again(ann).page(SAFETY))
    assert "No worker runs" not in page
    assert "Going on" in page
    assert "It waits until one is started" not in read_text(
        people.again(ann).page(answer.headers["location"])
    )
    platform.rows("delete from instance where side = 'worker'")


def test_each_act_has_its_fields_on_the_page(till: Till, people: People) -> None:
    page = people.signed_in("operator").page(SAFETY)
    for name in ("first_block", "last_block", "every_address", "again"):
        assert f'name="{name}"' in page, name


def test_two_people_record_what_was_moved_by_hand(till: Till, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    form = {"chain": "TRC20", "direction": "IN", "amount": "5,000.5", "tx_hash": "AB" * 32, "reason": "float"}
    comma = ann.post(f"{SAFETY}/record", {**form, "amount": "8,20"})
    assert (comma.status_code, "in a wrong place in 8,20." in read_text(comma.text)) == (422, True)
    wrong = ann.post(f"{SAFETY}/record", {**form, "tx_hash": "abc"})
    assert (wrong.status_code, "5,000.5" in wrong.text) == (422, True)
    proposal = people.again(ann).post(f"{SAFETY}/record", form).headers["location"]
    assert till.platform.rows("select count(*) from treasury_movement") == [(0,)]
    ben.post(f"{proposal}/accept")
    assert till.platform.rows("select chain, direction, amount, tx_hash, actor from treasury_movement") == [
        ("TRC20", "IN", 5_000_500_000, "ab" * 32, f"operator:{ben.name}")
    ]
    again = people.again(ann).post(f"{SAFETY}/record", form)
    assert (again.status_code, "recorded already" in read_text(again.text)) == (422, True)


def test_two_people_correct_a_record_by_its_number(till: Till, people: People) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    form = {"chain": "TRC20", "direction": "OUT", "amount": "100", "tx_hash": "cd" * 32, "reason": "a theft"}

    def propose(**changes: str) -> str:
        return people.again(ann).post(f"{SAFETY}/record", form | changes).headers["location"]

    people.again(ben).post(f"{propose()}/accept")
    read = "select movement_no, direction, corrects from treasury_movement where tx_hash = %s order by 1"
    [(number, _, _)] = till.platform.rows(read, "cd" * 32)
    unnamed = people.again(ann).post(f"{SAFETY}/record", form | {"direction": "IN"})
    assert (unnamed.status_code, f"Record {number} says OUT 100 USDT" in read_text(unnamed.text)) == (
        422,
        True,
    )
    for odd in ("it", "0", str(number + 1)):
        wrong = people.again(ann).post(f"{SAFETY}/record", form | {"direction": "IN", "corrects": odd})
        assert wrong.status_code == 422, odd
    proposal = propose(direction="IN", corrects=str(number))
    assert "Corrects record" in people.again(ben).page(proposal)
    people.again(ben).post(f"{proposal}/accept")
    page = read_text(people.again(ben).page(SAFETY))
    assert f"corrects record {number}" in page
    assert f"corrected by record {number + 1}" in page
    # Two have proposed it anew: the second is told so.
    anew = propose()
    till.platform.rows("update proposal set subject = 'aside' where state = 'open'")
    other = propose(reason="a theft, again")
    people.again(ben).post(f"{anew}/accept")
    told = people.again(ben)
    assert "could not be carried out" in read_text(told.follow(told.post(f"{other}/accept")).text)
    assert [row[1:] for row in till.platform.rows(read, "cd" * 32)] == [
        ("OUT", None),
        ("IN", number),
        ("OUT", None),
    ]


def test_what_workers_report_is_shown_with_its_age_and_old_reports_as_old(till: Till, people: People) -> None:
    now_ms = till.platform.clock()
    node: dict[str, Any] = {
        "chain": "TRC20",
        "name": "node-a:443",
        "head": 900,
        "headMs": now_ms,
        "final": 880,
        "tookMs": 12,
        "failure": None,
        "callsToday": 61_234,
        "callsPerSecond": 15,
        "callsPerDay": 100_000,
        "restsUntilMs": None,
    }
    slow = {**node, "name": "node-b:443", "head": 850}
    dead = {**node, "name": "node-c:443", "head": None, "headMs": None, "final": None, "failure": "timed out"}
    dead["restsUntilMs"] = now_ms
    old = {**node, "name": "node-d:443", "head": 700}
    for place, report in enumerate((node, slow, dead, old), 1):
        till.platform.rows(
            "insert into worker_report values ('node', %s, %s, 'w', %s)",
            f"TRC20 {place}",
            Jsonb(report),
            now_ms - (120_000 if report is old else 1_000),
        )
    page = (
        read_text(people.signed_in("auditor").page(SAFETY))
        .split("As workers saw them.")[1]
        .split("Programs")[0]
    )
    first, second, third, fourth = page.split("node-")[1:]
    assert "900" in first
    assert "old" not in first
    assert " 50 " in second, "50 blocks behind the best"
    assert "61,234 of 100,000 a day at most 15 a second" in " ".join(first.split())
    assert "timed out" in third
    assert "rests" in third
    assert "rests" not in first + second + fourth
    assert "old" in fourth
    assert " 200 " not in fourth, "where it is now is not known"


def test_frozen_orders_have_their_act_and_each_blocker_says_who_frees_it(till: Till, people: People) -> None:
    order = till.order("40", chain="TRC20")
    hold(till, order, frozen_cause="it may have been paid", frozen_ms=5)
    operator = people.signed_in("operator")
    page = operator.page(SAFETY)
    assert f"/console/withdrawals/{order}/thaw" in page
    told = read_text(page)
    assert "it may have been paid" in told
    assert "Who can free it: Owner, Operator" in told
    auditor = people.signed_in("auditor").page(SAFETY)
    assert "/thaw" not in auditor
    assert "stop-all" not in auditor


def test_how_long_a_wallet_lasts_follows_from_the_last_week() -> None:
    assert Pace(2.0, 500).count_days(1_000) == 2.0
    assert Pace().count_days(1_000) is None
