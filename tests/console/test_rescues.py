"""Rescues in the console of a live service: looked for, proposed by one person, accepted by another."""

import json

from tests.console.conftest import ConsoleUser, People
from tests.console.money_scene import decide_rescue, open_sweep
from tests.journeys.conftest import Platform

from merchant_wallet.base.addresses import parse_evm, to_eip55, to_tron

SETTINGS = {"sandbox": False, "erc20_rpc": ("http://127.0.0.1:9",)}
RESCUES = "/console/rescues"
INBOX = "/console/inbox?show=all"
OTHER = to_eip55(b"o" * 20)
SAFE = to_eip55(b"s" * 20)
WHY = "the customer sent another token"


def open_shop(platform: Platform) -> str:
    """The own deposit address of a merchant with keys from the pool."""
    shop = platform.open_merchant()
    keys = json.dumps({"ERC20": "", "TRC20": ""})
    platform.rows("insert into xpub_pool values (%s, %s, %s)", shop.merchant_id, keys, shop.merchant_id)
    [(address,)] = platform.rows(
        "select address from merchant_address where merchant_id = %s and chain = 'ERC20'", shop.merchant_id
    )
    return to_eip55(bytes(address))


def propose(person: ConsoleUser, deposit: str, **changes: str) -> tuple[int, str]:
    """The status and the page or the place of an answer."""
    form = {"chain": "ERC20", "address": deposit, "token": OTHER, "amount": "all", "to": SAFE, "reason": WHY}
    answer = person.post(f"{RESCUES}/propose", form | changes)
    return answer.status_code, answer.headers.get("location", answer.text)


def test_two_people_decide_a_rescue_and_the_log_has_its_facts(platform: Platform, people: People) -> None:
    address = open_shop(platform)
    ann, bea = people.signed_in("owner"), people.signed_in("owner")
    status, place = propose(ann, address)
    assert status == 303
    assert SAFE in bea.page(place)
    ann.post(f"{place}/accept")
    assert platform.rows("select count(*) from rescue") == [(0,)], "nobody accepts an own proposal"
    bea.post(f"{place}/accept")
    [(contract, asked, recipient)] = platform.rows("select contract, asked, recipient from rescue")
    assert (to_eip55(contract), asked, to_eip55(recipient)) == (OTHER, None, SAFE)
    [(facts,)] = platform.rows("select after from audit_entry where action = 'rescue.transfer'")
    assert (facts["address"], facts["asset"], facts["amount"], facts["to"]) == (address, OTHER, "all", SAFE)
    assert SAFE in ann.page(RESCUES)
    # While it is under way nothing else is decided about the address.
    assert "is being moved from this address" in propose(ann, address, amount="5")[1]


def test_what_a_rescue_may_not_be_is_refused_in_a_sentence(platform: Platform, people: People) -> None:
    address, other = open_shop(platform), open_shop(platform)
    ann = people.signed_in("owner")
    own_token = to_eip55(platform.base.settings.chains["ERC20"].token)
    for changes, cause in (
        ({"token": own_token}, "the token of the settings"),
        ({"token": "USDC"}, "A token is named by its contract"),
        ({"to": other}, "That address is ours"),
        ({"to": OTHER}, "Nothing can be sent there"),
        ({"address": SAFE}, "no deposit address of ours"),
        ({"amount": "1.5"}, "whole number of smallest units"),
        ({"amount": str(2**256)}, "whole number of smallest units"),
        ({"address": "player-7"}, "no address of this chain"),
        ({"chain": "nowhere"}, "no nodes for that chain"),
        ({"reason": ""}, "Say why"),
    ):
        status, page = propose(ann, address, **changes)
        assert (status, cause in page) == (422, True), cause


def test_a_rescue_without_a_sweep_is_ended_with_a_reason_and_leaves_the_inbox(
    platform: Platform, people: People
) -> None:
    address = open_shop(platform)
    ann, bea = people.signed_in("owner"), people.signed_in("owner")

    def decide() -> int:
        bea.post(f"{propose(ann, address)[1]}/accept")
        return int(platform.rows("select max(rescue_no) from rescue")[0][0])

    def end(number: int, reason: str = WHY) -> str:
        return ann.follow(ann.post(f"{RESCUES}/{number}/end", {"reason": reason})).text

    failed = decide()
    cause, text = "the token answers false", f"Rescue {failed} on ERC20 has failed"
    platform.rows("update rescue set cause = %s, ended_ms = 1 where rescue_no = %s", cause, failed)
    assert text in ann.page(INBOX)
    assert f"End rescue {failed}?" in ann.page(RESCUES)
    assert "A reason of 1 to 500" in end(failed, "")
    for number in (failed + 1, 2**64):
        assert ann.post(f"{RESCUES}/{number}/end", {"reason": WHY}).status_code == 404
    assert "The rescue is ended" in end(failed)
    assert text not in ann.page(INBOX)
    begun_by_nobody = decide()
    assert "The rescue is ended" in end(begun_by_nobody)
    assert "It was not ended" in end(begun_by_nobody)
    page, actor = ann.page(RESCUES), f"operator:{ann.name}"
    for number, why in ((failed, cause), (begun_by_nobody, f"{actor} ended it: {WHY}")):
        assert f"End rescue {number}?" not in page
        shown = "select cause, ended_by, ended_by_ms > 1 from rescue where rescue_no = %s"
        assert platform.rows(shown, number) == [(why, actor, True)]
        logged = (
            "select actor, after ->> 'reason' from audit_entry"
            " where action = 'rescue.end' and (after ->> 'rescueNo')::bigint = %s"
        )
        assert platform.rows(logged, number) == [(actor, WHY)]


def test_a_rescue_with_a_sweep_is_ended_with_it_by_a_worker(platform: Platform, people: People) -> None:
    ann, address = people.signed_in("owner"), open_shop(platform)
    number = decide_rescue(platform, parse_evm(address))
    sweep_id = open_sweep(platform, parse_evm(address))
    platform.rows(
        "update sweep set rescue_no = %s, rescued = 5, amount = 0, coin_price = 0, step = 'failed',"
        " cause = 'x', ended_ms = 1 where sweep_id = %s",
        *(number, sweep_id),
    )
    place = f"/console/safety/sweeps/{sweep_id}/end"
    assert place in ann.page(RESCUES)
    asked = ann.post(place, {"reason": WHY})
    assert "/console/safety/acts/" in asked.headers["location"]
    ended = ann.follow(ann.post(f"{RESCUES}/{number}/end", {"reason": WHY}))
    assert "It was not ended" in ended.text


def test_nothing_is_rescued_where_no_worker_would_begin_it(platform: Platform, people: People) -> None:
    [(address,)] = platform.rows(
        "select t.address from merchant_address t join merchant_address e using (merchant_id)"
        " where t.chain = 'TRC20' and e.address = %s",
        parse_evm(open_shop(platform)),
    )
    ann, changes = people.signed_in("owner"), {"chain": "TRC20", "token": "TRX", "to": to_tron(b"s" * 20)}
    status, page = propose(ann, to_tron(bytes(address)), **changes)
    assert (status, "no nodes for that chain" in page) == (422, True)
    assert 'value="TRC20"' not in ann.page(RESCUES)


def test_a_token_that_calls_itself_markup_is_shown_as_text(platform: Platform, people: People) -> None:
    ann = people.signed_in("owner")
    tx_hash = "0x" + "ab" * 32
    assert "Look for it on the chains" in ann.page(f"/console/search?q={tx_hash}")
    place = ann.post(f"{RESCUES}/look", {"what": tx_hash}).headers["location"]
    moved = {"token": OTHER, "symbol": "<script>alert(1)", "isCoin": False, "isOurToken": False}
    moved |= {"units": "125", "amount": "12.5", "from": SAFE, "to": SAFE, "own": None}
    moved |= {"merchantId": None, "extUserId": None}
    seen = {"chainType": "ERC20", "state": "final", "why": None, "moved": [moved]}
    result = {"lookedFor": tx_hash, "isHash": True, "found": True, "chains": [seen]}
    platform.rows(
        "update asked_act set state = 'done', result = %s, ended_ms = 1 where kind = 'rescue.look'",
        json.dumps(result),
    )
    page = ann.page(place)
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    nothing = {**result, "found": False, "chains": [seen | {"state": "unknown", "moved": []}]}
    platform.rows("update asked_act set result = %s where kind = 'rescue.look'", json.dumps(nothing))
    assert "the same on every EVM chain" in ann.page(place)
    assert ann.post(f"{RESCUES}/look", {"what": "player-7"}).headers["location"] == RESCUES
