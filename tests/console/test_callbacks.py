"""Callbacks in the console: failed deliveries and their causes, sending again, pausing."""

import pytest
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal
from tests.rows import each_row

from merchant_wallet.book.commands import Cancel
from merchant_wallet.console.callbacks import show_bytes

CALLBACKS = "/console/callbacks"


def make_event(shop: Shop, state: str = "due") -> str:
    """An order that was cancelled, so that a callback is due. Returns the callback's event."""
    fields = withdrawal(shop.next_order(), "60", "ERC20")
    order = int(shop.client.do("createMerchantWithdrawOrder", **fields)["orderId"])
    shop.ask_book(Cancel(order, "cli:ann"))
    event = f"evt_{order}_4"
    if state != "due":
        shop.platform.rows("update callback set state = %s where event_id = %s", state, event)
    return event


def try_once(shop: Shop, event: str, status: int | None, answer: bytes, error: str | None = None) -> None:
    """Record an attempt, as the sender does."""
    shop.platform.rows(
        "insert into callback_attempt (merchant_id, order_id, status, attempt_no, at_ms, address,"
        " http_status, error, answer, latency_ms)"
        " select merchant_id, order_id, status, 1, 5, '203.0.113.9', %s, %s, %s, 1234"
        " from callback where event_id = %s",
        status,
        error,
        answer,
        event,
    )
    shop.platform.rows("update callback set attempt_no = 1 where event_id = %s", event)


def state_of(shop: Shop, event: str) -> str:
    return str(shop.platform.rows("select state from callback where event_id = %s", event)[0][0])


@pytest.fixture
def careful(shop: Shop) -> Shop:
    shop.change(approval_limit="0")
    return shop


def test_what_was_not_taken_is_shown_first_and_the_rest_on_demand(careful: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    events = {state: make_event(careful, state) for state in ("due", "dead_letter", "paused")}
    done = make_event(careful)
    careful.platform.rows(
        "update callback set state = 'delivered', delivered_ms = 9 where event_id = %s", done
    )
    mine = f"{CALLBACKS}?merchant={careful.merchant_id}"

    def listed(query: str) -> list[str]:
        page = operator.page(mine + query)
        return [one for one in (*events.values(), done) if f"{CALLBACKS}/{one}" in page]

    assert listed("") == list(events.values())
    assert listed("&state=parked") == [events["dead_letter"]]
    assert listed("&state=all") == [*events.values(), done]
    assert listed("&event=deposit") == []
    assert operator.get(f"{CALLBACKS}?after=nonsense").status_code == 404


def test_a_callback_behind_another_of_its_order_says_what_it_waits_for(careful: Shop, people: People) -> None:
    first = make_event(careful)
    second = first.removesuffix("4") + "6"
    careful.platform.rows(
        "insert into callback (merchant_id, order_id, status, event_type, event_id, created_ms)"
        " select merchant_id, order_id, 6, event_type, %s, created_ms"
        " from callback where event_id = %s",
        second,
        first,
    )
    operator = people.signed_in("operator")
    assert f"waits for {first}" in read_text(operator.page(f"{CALLBACKS}?merchant={careful.merchant_id}"))
    assert f'<a href="{CALLBACKS}/{first}">' in operator.page(f"{CALLBACKS}/{second}")
    assert "Waits for" not in read_text(operator.page(f"{CALLBACKS}/{first}"))


def test_each_attempt_shows_status_time_and_the_first_bytes_as_text(careful: Shop, people: People) -> None:
    event = make_event(careful)
    try_once(careful, event, 500, b"<script>alert(1)</script>\x00\x1b[31m\xff", "HTTP status 500")
    page = people.signed_in("operator").page(f"{CALLBACKS}/{event}")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x1b" not in page
    told = read_text(page)
    for text in ("500", "1,234 ms", "203.0.113.9", "HTTP status 500"):
        assert text in told


def test_an_accepted_attempt_shows_what_was_odd_about_it(careful: Shop, people: People) -> None:
    event = make_event(careful)
    odd = "the word success has U+200B zero width space at character 8"
    try_once(careful, event, 200, "success\u200b".encode(), f"accepted, although {odd}")
    page = people.signed_in("operator").page(f"{CALLBACKS}/{event}")
    assert f"Accepted, although: {odd}" in read_text(page)
    assert "success&lt;U+200B&gt;" in page
    assert "answer-error" not in page


def test_a_url_that_no_callback_can_go_to_is_warned_of_before_it_is_tried(
    careful: Shop, people: People
) -> None:
    operator, warning = people.signed_in("operator"), "Callbacks to 10.0.0.1 will fail"
    fields = {**withdrawal(careful.next_order(), "60", "ERC20"), "notifyUrl": "http://10.0.0.1/paid"}
    order = int(careful.client.do("createMerchantWithdrawOrder", **fields)["orderId"])
    assert warning in read_text(operator.page(f"/console/withdrawals/{order}"))
    careful.ask_book(Cancel(order, "cli:ann"))
    assert warning in read_text(operator.page(f"{CALLBACKS}/evt_{order}_4"))
    assert "will fail" not in operator.page(f"{CALLBACKS}/{make_event(careful)}")


@each_row(
    ("answer", "shown"),
    [
        (b"", ""),
        (b" ok\r\n\r\n fine ", "ok fine"),
        (b"a\x00b\x07c", "a<U+0000>b<U+0007>c"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("\u202eright to left".encode(), "<U+202E>right to left"),
        (b"x" * 500, "x" * 200 + "\u2026"),
    ],
)
def test_what_can_not_be_seen_is_shown_as_such(answer: bytes, shown: str) -> None:
    assert show_bytes(answer) == shown


def test_one_callback_or_all_dead_letters_are_sent_again(careful: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    parked = [make_event(careful, "dead_letter") for _ in range(2)]
    told = operator.follow(operator.post(f"{CALLBACKS}/{parked[0]}/resend"))
    assert "It is sent at once" in read_text(told.text)
    assert [state_of(careful, one) for one in parked] == ["due", "dead_letter"]
    told = operator.follow(operator.post(f"{CALLBACKS}/merchants/{careful.merchant_id}/resend-parked"))
    assert "Sent at once: 1." in read_text(told.text)
    assert [state_of(careful, one) for one in parked] == ["due", "due"]
    actions = careful.platform.rows(
        "select action, subject from audit_entry where merchant_id = %s order by audit_no",
        careful.merchant_id,
    )
    assert ("callback.resend", f"callback {parked[0]}") in actions
    assert ("callback.resend", "callback all that are parked") in actions


def test_one_is_paused_and_resumed_and_what_has_moved_on_is_left_alone(careful: Shop, people: People) -> None:
    operator, event = people.signed_in("operator"), make_event(careful)
    operator.post(f"{CALLBACKS}/{event}/pause")
    assert state_of(careful, event) == "paused"
    told = operator.follow(operator.post(f"{CALLBACKS}/{event}/pause"))
    assert "It has moved on; nothing was changed." in read_text(told.text)
    operator.post(f"{CALLBACKS}/{event}/resume")
    assert state_of(careful, event) == "due"


def test_a_paused_merchant_is_named_until_it_is_resumed(careful: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    told = operator.follow(operator.post(f"{CALLBACKS}/merchants/{careful.merchant_id}/pause"))
    assert "No callbacks are sent to" in read_text(told.text)
    again = operator.follow(operator.post(f"{CALLBACKS}/merchants/{careful.merchant_id}/pause"))
    assert "It was paused already." in read_text(again.text)
    resumed = operator.follow(operator.post(f"{CALLBACKS}/merchants/{careful.merchant_id}/resume"))
    assert "What waited for it is sent." in read_text(resumed.text)
    assert "No callbacks are sent to" not in read_text(
        operator.page(f"{CALLBACKS}?merchant={careful.merchant_id}")
    )


def test_a_merchants_user_resends_its_own_and_can_do_nothing_else(
    careful: Shop, platform: Platform, people: People
) -> None:
    other = platform.open_merchant(approval_limit="0")
    other.fund("USDT", "100")
    foreign, mine = make_event(other, "dead_letter"), make_event(careful, "dead_letter")
    user = people.signed_in("merchant", careful.merchant_id)
    assert foreign not in user.page(f"{CALLBACKS}?state=all&merchant={other.merchant_id}")
    assert user.get(f"{CALLBACKS}/{foreign}").status_code == 404
    assert user.post(f"{CALLBACKS}/{foreign}/resend").status_code == 404
    assert user.post(f"{CALLBACKS}/merchants/{other.merchant_id}/resend-parked").status_code == 404
    assert state_of(other, foreign) == "dead_letter"
    assert user.post(f"{CALLBACKS}/{mine}/pause").status_code == 404
    assert user.post(f"{CALLBACKS}/merchants/{careful.merchant_id}/pause").status_code == 403
    assert user.post(f"{CALLBACKS}/{mine}/resend").status_code == 303
    assert state_of(careful, mine) == "due"


def test_an_auditor_reads_and_changes_nothing(careful: Shop, people: People) -> None:
    event, auditor = make_event(careful, "dead_letter"), people.signed_in("auditor")
    assert "data-opens" not in auditor.page(f"{CALLBACKS}/{event}").split('id="main"')[1]
    assert auditor.post(f"{CALLBACKS}/{event}/resend").status_code == 403
    assert state_of(careful, event) == "dead_letter"


@pytest.mark.parametrize("event", ["evt_1_2", "nonsense", "evt_99999999999999999999_2", "merchants"])
def test_what_was_never_told_is_not_there(people: People, event: str) -> None:
    assert people.signed_in("operator").get(f"{CALLBACKS}/{event}").status_code == 404
