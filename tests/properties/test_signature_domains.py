"""No signed text is valid as two of these: a request, an answer, a callback. For both methods.

The tests try what a forger could: one of our signatures, and every way to split the signed text into fields.
The values contain text that somebody chose. With MD5 such a text can look like a field, or hide one.
"""

import re
from typing import Any

import msgspec
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from tests.callbacks.test_payloads import MERCHANT

from merchant_wallet.api.gate import Gate, refuse_callback, require_app_key
from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.api.wire import Fields, list_present_texts
from merchant_wallet.base.codes import Refused
from merchant_wallet.base.signing import (
    CALLBACK_PATH,
    EVENT_ID,
    HMAC,
    MD5,
    Method,
    build_md5_string_to_sign,
    find_hidden_field,
    sign,
    sign_response,
    verify,
)
from merchant_wallet.book.outcomes import (
    Balances,
    Exchanged,
    Outcome,
    Quoted,
    SubUserFound,
    Transferred,
    Withdrawal,
)
from merchant_wallet.callbacks.payloads import CallbackEvent, DepositEvent, WithdrawalEvent, build_payload
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.processes.routes import OPERATIONS

NOW_MS = 1_763_712_000_000
NONCE = "n1"
CONTEXT = OperationContext(
    sandbox=True,
    approval_deadline_ms=1,
    position_limit_units=None,
    forbidden_addresses=frozenset(),
    own_wallets=(),
    make_link=lambda merchant_id, user_id: f"https://pay.example/w/{user_id}",
)
GATE = Gate(
    tolerance_s=300,
    rate_limit=0,
    failed_auth_limit=0,
    sandbox=True,
    monotonic=lambda: 0.0,
    clock=lambda: NOW_MS,
)
find_names = re.compile(r"(?:^|(?<=&))([A-Za-z0-9_]{1,64})=").finditer

# Texts that somebody chose, with everything that could help a forger.
pieces = st.sampled_from(
    [
        "x",
        "https://example.com/n?a=1",
        "&",
        "=",
        "é",
        "&appKey=demo",
        "appKey=demo",
        "&nonceStr=n9",
        f"&timestamp={NOW_MS}",
        f"&appKey=demo&nonceStr=n9&timestamp={NOW_MS}",
        "&eventId=evt_1_2",
        "&amount=1",
        "&b=2",
        "&zz=3",
        "&key=k",
    ]
)
chosen = st.lists(pieces, min_size=1, max_size=4).map("".join)
methods = st.sampled_from([HMAC, MD5])
units = st.integers(1, 10**12)
ids = st.integers(1, 2**53 - 1)
operations = st.sampled_from(OPERATIONS)

withdrawals_told = st.builds(
    WithdrawalEvent,
    order_id=ids,
    status=st.integers(2, 6),
    at_ms=ids,
    mc_order_id=chosen,
    amount_units=units,
    fee_units=st.just(1),
    rate_e8=st.integers(0, 10**8),
    chain=st.sampled_from(["ERC20", "TRC20"]),
    address=chosen,
    created_ms=ids,
    tx_hash=st.none() | st.just("ab12"),
)
deposits_told = st.builds(
    DepositEvent,
    entry_id=ids,
    at_ms=ids,
    user_id=st.none() | ids,
    ext_user_id=st.none() | chosen,
    chain=st.just("TRC20"),
    address=st.just(bytes(range(20))),
    tx_hash=st.just("cd34"),
    log_index=st.integers(0, 9),
    amount_units=units,
    currency=st.sampled_from(["USDT", "KFB"]),
    arrival_units=units,
    rate_e8=st.integers(0, 10**9),
    seen_ms=ids,
)
told = withdrawals_told | deposits_told
withdrawals = st.builds(
    Withdrawal,
    order_id=ids,
    mc_order_id=chosen,
    amount_units=units,
    fee_units=st.just(1),
    rate_e8=st.just(0),
    chain=st.just("TRC20"),
    address=chosen,
    notify_url=chosen,
    status=st.integers(0, 6),
    step_no=st.just(1),
    approved_ms=st.none(),
    deadline_ms=ids,
    created_ms=ids,
    finished_ms=st.none(),
    notified_ms=st.none() | ids,
    tx_hash=st.none(),
)
transfers = st.builds(
    Transferred,
    entry_id=ids,
    mc_order_id=chosen,
    currency=st.just("KFB"),
    amount_units=units,
    arrival_units=units,
    fee_units=st.just(0),
    rate_e8=st.just(0),
)
OUTCOMES: dict[str, st.SearchStrategy[Any]] = {
    "transferFromUserToMerchant": transfers,
    "transferFromMerchantToUser": transfers,
    "createMerchantWithdrawOrder": withdrawals,
    "queryOrder": withdrawals,
    "getMerchantCustomer": st.builds(
        SubUserFound,
        user_id=ids,
        ext_user_id=chosen,
        username=chosen,
        currency=st.just("KFB"),
        balance_units=units,
        evm_address=st.just(bytes(range(20))),
        tron_address=st.just(bytes(range(20))),
    ),
    "getMerchantBalance": st.builds(Balances, usdt_units=units, kfb_units=units),
    "exchange": st.builds(
        Exchanged,
        entry_id=ids,
        send_currency=st.just("USDT"),
        receive_currency=st.just("KFB"),
        amount_units=units,
        arrival_units=units,
        rate_e8=st.just(7),
    ),
    "getWithdrawFee": st.builds(Quoted, amount_units=units, fee_units=st.just(1), rate_e8=st.just(0)),
}


def merchant_of(method: Method) -> Merchant:
    return msgspec.structs.replace(MERCHANT, sign_method=method)


@st.composite
def readings(draw: st.DrawFn, text: str, wanted: frozenset[str], unwanted: str) -> dict[str, str]:
    """One way to split what MD5 signed into fields: `wanted` ones if possible, never `unwanted` ones."""
    starts = [(found[1], found.start(), found.end()) for found in find_names(text)]
    assume(starts)
    cuts, closely = [starts[0]], draw(st.booleans())
    for number, (name, start, end) in enumerate(starts[1:], 2):
        last = cuts[-1][0]
        if name <= last or name == unwanted:
            continue
        comes_again = any(name == later for later, _, _ in starts[number:])
        # The next wanted field ends it. So such a field is as short as possible.
        must = last in wanted or (name in wanted and not comes_again)
        may = name in wanted or not closely
        if (must and closely) or (may and draw(st.booleans())):
            cuts.append((name, start, end))
    ends = [start - 1 for _, start, _ in cuts[1:]] + [len(text)]
    fields = {name: text[end:last] for (name, _, end), last in zip(cuts, ends, strict=True)}
    assume(all(fields.values()))
    assert build_md5_string_to_sign(fields) == text
    return fields


REQUEST_FIELDS = frozenset({"appKey", "nonceStr", "timestamp"})


def is_request(merchant: Merchant, operation: Operation, texts: dict[str, str], given_sign: str) -> bool:
    """Whether the service would accept these fields as a request."""
    fields: Fields = {**texts, "sign": given_sign}
    try:
        if require_app_key(fields) != merchant.app_key:
            return False
        refuse_callback(fields)
        GATE.authenticate(merchant, operation.path, fields, "127.0.0.1")
    except Refused:
        return False
    return True


def is_callback(merchant: Merchant, texts: dict[str, str], given_sign: str) -> bool:
    """Whether a receiver that follows the documented rules would accept these fields as a callback."""
    if EVENT_ID not in texts:
        return False
    if merchant.sign_method == MD5 and find_hidden_field(texts) is not None:
        return False
    return verify(merchant.sign_method, merchant.secrets, CALLBACK_PATH, texts, given_sign) is not None


def letter_texts(merchant: Merchant, event_told: CallbackEvent) -> tuple[dict[str, str], str]:
    """What a callback signs, and its signature."""
    payload = build_payload(merchant, "evt_8589934599_2", event_told.fields(), NONCE, NOW_MS)
    body = msgspec.json.decode(payload.body)
    texts = {name: str(value) for name, value in body.items() if value is not None}
    return texts, texts.pop("sign")


@given(methods, told, operations, st.data())
def test_no_callback_is_a_request(
    method: Method, event_told: CallbackEvent, operation: Operation, data: st.DataObject
) -> None:
    merchant = merchant_of(method)
    texts, given_sign = letter_texts(merchant, event_told)
    assert len(given_sign) == 32
    assert is_callback(merchant, texts, given_sign) or find_hidden_field(texts)
    assert not is_request(merchant, operation, texts, given_sign)
    signed = build_md5_string_to_sign(texts)
    read = data.draw(readings(signed, REQUEST_FIELDS, EVENT_ID))
    if method == MD5:
        # The signature itself is valid. The rule refuses it.
        assert verify(MD5, merchant.secrets, operation.path, read, given_sign)
    assert not is_request(merchant, operation, read, given_sign)
    without = {name: text for name, text in texts.items() if name != EVENT_ID}
    assert not is_request(merchant, operation, without, given_sign)


@given(methods, operations, operations, st.data())
def test_no_answer_is_a_request_or_a_callback(
    method: Method, asked: Operation, operation: Operation, data: st.DataObject
) -> None:
    merchant = merchant_of(method)
    outcome: Outcome = data.draw(OUTCOMES[asked.name])
    texts = list_present_texts(asked.answer(merchant, outcome, CONTEXT))
    try:
        given_sign = sign_response(
            method, merchant.secrets[0], asked.path, texts, 200, NONCE, asked.sign_length
        )
    except ValueError:
        event("not signed")
        assert method == MD5
        assert find_hidden_field(texts)
        return
    assert len(given_sign) == asked.sign_length
    whole = sign_response(method, merchant.secrets[0], asked.path, texts, 200, NONCE)
    bound = {**texts, "code": "200", "nonceStr": NONCE}
    read = data.draw(readings(build_md5_string_to_sign(texts), REQUEST_FIELDS | {EVENT_ID}, ""))
    for fields in (texts, bound, read):
        for made in (given_sign, whole):
            assert not is_request(merchant, operation, fields, made)
            assert not is_callback(merchant, fields, made)


own_fields = st.dictionaries(
    st.sampled_from(["address", "amount", "b", "mcOrderId", "notifyUrl", "z", "zz", EVENT_ID]),
    chosen,
    max_size=5,
)


@given(methods, own_fields, operations, st.data())
@example(MD5, {"notifyUrl": "https://example.com/n?a=1&b=2"}, OPERATIONS[2], None)
def test_no_request_is_a_callback(
    method: Method, own: dict[str, str], operation: Operation, data: st.DataObject | None
) -> None:
    merchant = merchant_of(method)
    texts = {"appKey": merchant.app_key, "nonceStr": NONCE, "timestamp": str(NOW_MS), **own}
    given_sign = sign(method, merchant.secrets[0], operation.path, texts)
    if not is_request(merchant, operation, texts, given_sign):
        assert EVENT_ID in texts or (method == MD5 and find_hidden_field(texts))
        return
    event("a request")
    assert not is_callback(merchant, texts, given_sign)
    if data is not None:
        read = data.draw(readings(build_md5_string_to_sign(texts), frozenset({EVENT_ID}), ""))
        assert not is_callback(merchant, read, given_sign)


@given(own_fields, operations, st.data())
def test_with_md5_all_readings_of_a_request_share_its_nonce_and_its_timestamp(
    own: dict[str, str], operation: Operation, data: st.DataObject
) -> None:
    """So nobody who splits it differently can use it a second time or later."""
    merchant = merchant_of(MD5)
    texts = {"appKey": merchant.app_key, "nonceStr": NONCE, "timestamp": str(NOW_MS), **own}
    given_sign = sign(MD5, merchant.secrets[0], operation.path, texts)
    if not is_request(merchant, operation, texts, given_sign):
        return
    signed = build_md5_string_to_sign(texts)
    names = [found[1] for found in find_names(signed)]
    assert [names.count(name) for name in (*REQUEST_FIELDS, EVENT_ID)] == [1, 1, 1, 0]
    read = data.draw(readings(signed, REQUEST_FIELDS, ""))
    if is_request(merchant, operation, read, given_sign):
        event("read in another way" if read != texts else "read as it was meant")
        assert {name: read[name] for name in REQUEST_FIELDS} == {name: texts[name] for name in REQUEST_FIELDS}


@given(methods, own_fields, operations, st.integers(0, 31))
def test_a_request_is_signed_with_the_whole_signature(
    method: Method, own: dict[str, str], operation: Operation, length: int
) -> None:
    merchant = merchant_of(method)
    texts = {**own, "appKey": merchant.app_key, "nonceStr": NONCE, "timestamp": str(NOW_MS)}
    given_sign = sign(method, merchant.secrets[0], operation.path, texts)
    assert not is_request(merchant, operation, texts, given_sign[:length])
