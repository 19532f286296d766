"""Signatures on the wire: both methods, both encodings, every kind of text, two secrets at once."""

from typing import Any

import pytest
from tests.journeys.client import Client, Number, hmac_sign, md5_sign, string_to_sign, write_form, write_json
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import NOTIFY_URL, OPERATIONS, all_fields, withdrawal

from merchant_wallet.merchants.keys import APP

CLOCK_MS = 1763712000000
CREATE = "/merchant/createMerchantWithdrawOrder"
BALANCE = "/merchant/getMerchantBalance"
FORM = "application/x-www-form-urlencoded"

# The test vector of the documentation for client developers.
SECRET = "0123456789abcdef0123456789abcdef"
VECTOR = {
    "appKey": "demo",
    "timestamp": "1763712000000",
    "nonceStr": "a1B2c3D4e5F6g7H8",
    "mcOrderId": "10001",
    "chainType": "TRC20",
    "currency": "USDT",
    "amount": "12.50",
    "address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    "notifyUrl": "https://example.com/n?a=1&b=2",
}
STRING_TO_SIGN = (
    "/merchant/createMerchantWithdrawOrder\naddress=TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC\namount=12.50\nappKey=demo\n"
    "chainType=TRC20\ncurrency=USDT\nmcOrderId=10001\nnonceStr=a1B2c3D4e5F6g7H8\n"
    "notifyUrl=https://example.com/n?a=1&b=2\ntimestamp=1763712000000"
)
HMAC_SIGN = "48a6def3592a734ec4b9ee728e0e781a"
MD5_SIGN = "E288E4BDC300EE1855AC79F4517AAEAF"

TEXTS = {
    "an ampersand and equal signs": "a=1&b=2&&c==",
    "a plus": "1+1",
    "spaces": " a  b ",
    "a percent sign": "100%25 %zz %",
    "quotes and backslashes": "\"'\\ \\n \\u0041",
    "slashes and question marks": "https://x/?y#z",
    "an umlaut in one character": "\u00fc",
    "an umlaut of two characters": "u\u0308",
    "the Angstrom sign, which normalisation would change": "\u212b",
    "an emoji outside the basic plane": "😀👩‍👩‍👧",
    "right to left": "مرحبا",
    "a line separator": "a\u2028b",
    "a no-break space and a zero-width one": "a\u00a0b\u200bc",
    "letters whose case folds oddly": "İıſß",
    "the last code point": "\U0010ffff",
    "what looks like markup": "<b>&amp;</b>",
    "what looks like an array of the database": 'NULL {a,"b"} \\x00',
    "what looks like SQL": "'; drop table entry; --",
    "a number with a fraction": "0012.500",
}


@pytest.fixture(scope="module")
def demo(platform: Platform) -> Shop:
    """The vector's merchant, with its appKey and secret."""
    shop = platform.open_merchant()
    sealed = platform.base.keyring.seal(SECRET, shop.merchant_id, APP, 1)
    platform.rows("update merchant set app_key = 'demo' where merchant_id = %s", shop.merchant_id)
    platform.rows(
        "update merchant_secret set sealed = %s where merchant_id = %s and purpose = 'app'",
        sealed,
        shop.merchant_id,
    )
    shop.fund("USDT", "1000")
    return Shop(platform, shop.merchant_id, shop.with_client(app_key="demo", secret=SECRET))


def forget_nonces(shop: Shop) -> None:
    """The vector has only one nonce, and each test sends it. Its order is then a repeat."""
    shop.platform.rows("delete from nonce where merchant_id = %s", shop.merchant_id)


def test_the_client_signs_the_vector_as_documented() -> None:
    assert string_to_sign(CREATE, VECTOR) == STRING_TO_SIGN
    assert hmac_sign(SECRET, STRING_TO_SIGN) == HMAC_SIGN
    assert md5_sign(SECRET, VECTOR) == MD5_SIGN


@pytest.mark.parametrize(("method", "sign"), [("HMAC", HMAC_SIGN), ("MD5", MD5_SIGN)])
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_the_documented_vector_is_accepted(method: str, sign: str, encoding: str, demo: Shop) -> None:
    forget_nonces(demo)
    demo.change(sign_method=method)
    client = demo.with_client(method=method, encoding=encoding)
    answer = client.do("createMerchantWithdrawOrder", **VECTOR, sign=sign)
    assert (answer["amount"], answer["mcOrderId"]) == ("12.5", "10001")


def test_the_vectors_answer_is_signed_over_code_nonce_and_data(demo: Shop) -> None:
    forget_nonces(demo)
    demo.change(sign_method="HMAC")
    answer = demo.client.do("createMerchantWithdrawOrder", **VECTOR, sign=HMAC_SIGN)
    signed = "\n".join(
        [
            CREATE,
            "address=TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
            "amount=12.5",
            "amountArrival=12.5",
            "chainType=TRC20",
            "code=200",
            "currency=USDT",
            "mcOrderId=10001",
            "nonceStr=a1B2c3D4e5F6g7H8",
            f"orderId={answer['orderId']}",
            "txnStatus=0",
        ]
    )
    assert answer["sign"] == hmac_sign(SECRET, signed)[:20]


@pytest.mark.parametrize("method", ["HMAC", "MD5"])
def test_each_operations_answer_is_signed_by_the_merchants_method(method: str, shop: Shop) -> None:
    shop.user("alice", "50")
    asked = all_fields(shop.client)
    shop.change(sign_method=method)
    for operation in OPERATIONS:
        shop.with_client(method=method).do(operation, **asked[operation])


def test_answers_to_two_requests_have_different_signatures(same_shop: Shop) -> None:
    first, second = same_shop.client.do("getMerchantBalance"), same_shop.client.do("getMerchantBalance")
    assert first.without_sign() == second.without_sign()
    assert first["sign"] != second["sign"]


@pytest.mark.parametrize("encoding", ["json", "form"])
@pytest.mark.parametrize("method", ["HMAC", "MD5"])
def test_any_text_is_signed_as_it_is(encoding: str, method: str, shop: Shop) -> None:
    if method == "MD5":
        shop.change(sign_method="MD5")
    client = shop.with_client(encoding=encoding, method=method)
    for what, text in TEXTS.items():
        answer = client.do("getMerchantCustomer", extUserId=text[:20], memo=text)
        assert answer["extUserId"] == text[:20], what


def test_an_id_is_kept_apart_from_its_other_normal_form(same_shop: Shop) -> None:
    ids = {same_shop.user(text)["userId"] for text in ("\u00fc", "u\u0308", "\u212b", "\u00c5", "ü ", "Ü")}
    assert len(ids) == 6


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_unknown_fields_are_signed(encoding: str, same_shop: Shop) -> None:
    client = same_shop.with_client(encoding=encoding)
    fields = client.common()
    sign = client.sign(BALANCE, fields)
    assert client.call("getMerchantBalance", **fields, sign=sign, added="later").code == 40101
    client.do("getMerchantBalance", added="in time", Zebra="1", _low="2", a="3", A="4", a1="5", a_="6")


@pytest.mark.parametrize("encoding", ["json", "form"])
@pytest.mark.parametrize("absent", ["", None])
def test_an_empty_field_is_left_out_of_what_is_signed(encoding: str, absent: Any, same_shop: Shop) -> None:
    client = same_shop.with_client(encoding=encoding)
    fields = client.common()
    sign = hmac_sign(client.secret, string_to_sign(BALANCE, fields))
    client.do("getMerchantBalance", **fields, sign=sign, note=absent)


def test_zero_is_not_left_out_of_what_is_signed(same_shop: Shop) -> None:
    fields = same_shop.client.common()
    sign = same_shop.client.sign(BALANCE, fields)
    same_shop.client.expect(40101, "getMerchantBalance", **fields, sign=sign, note=Number(0))
    same_shop.client.do("getMerchantBalance", note=Number(0))


def test_a_number_and_the_string_of_its_text_have_one_signature(shop: Shop) -> None:
    client = shop.client
    as_string = {**client.common(), **withdrawal("1", "12.50")}
    as_number = {**as_string, "amount": Number("12.50")}
    sign = client.sign(CREATE, as_string)
    assert sign == client.sign(CREATE, as_number)
    client.do("createMerchantWithdrawOrder", **as_number, sign=sign)


@pytest.mark.parametrize("printed_again", ["12.5", "12.500", "1.25e1"])
def test_a_number_printed_again_is_not_what_was_signed(printed_again: str, same_shop: Shop) -> None:
    client = same_shop.client
    fields = {**client.common(), **withdrawal("1", Number("12.50"))}
    sign = client.sign(CREATE, fields)
    again = {**fields, "amount": Number(printed_again), "sign": sign}
    client.expect(40101, "createMerchantWithdrawOrder", **again)


def test_an_exponent_is_signed_as_its_literal_and_then_refused_as_an_amount(same_shop: Shop) -> None:
    same_shop.client.expect(40001, "createMerchantWithdrawOrder", **withdrawal("1", Number("1E2")))


def test_a_forms_plus_is_a_space_and_its_escapes_are_decoded(shop: Shop) -> None:
    url = "https://example.com/n?a=1&b=2+3"
    client = shop.with_client(encoding="form")
    client.do("createMerchantWithdrawOrder", **withdrawal("a b+c", notifyUrl=url))
    repeat = shop.client.do("createMerchantWithdrawOrder", **withdrawal("a b+c", notifyUrl=url))
    assert repeat["mcOrderId"] == "a b+c"
    fields = {**client.common(), **withdrawal("d e", notifyUrl=url)}
    body = write_form({**fields, "sign": client.sign(CREATE, fields)})
    assert b"d+e" in body
    assert client.send(CREATE, body.replace(b"d+e", b"d%20e"), FORM).code == 200


@pytest.mark.parametrize("number", [*range(0x20), 0x7F, 0x80, 0x85, 0x9F])
def test_a_control_character_is_refused_wherever_it_stands(number: int, same_shop: Shop) -> None:
    for encoding in ("json", "form"):
        client = same_shop.with_client(encoding=encoding)
        answer = client.expect(40001, "getMerchantBalance", note=f"a{chr(number)}b")
        assert "note" in answer.msg


def test_one_value_cannot_pose_as_two_lines(same_shop: Shop) -> None:
    client = same_shop.client
    genuine = {**client.common(), **withdrawal("1", notifyUrl=NOTIFY_URL)}
    sign = client.sign(CREATE, genuine)
    posing = {**genuine, "address": f"{genuine['address']}\namount={genuine.pop('amount')}"}
    posing = {name: value for name, value in posing.items() if name != "amount"}
    assert string_to_sign(CREATE, posing) == string_to_sign(CREATE, {**genuine, "amount": "10"})
    client.expect(40001, "createMerchantWithdrawOrder", **{**posing, "sign": sign})


def test_a_signature_is_good_for_its_own_operation_alone(shop: Shop) -> None:
    shop.user("alice", "50")
    asked = all_fields(shop.client)
    for operation in OPERATIONS:
        fields = {**shop.client.common(), **asked[operation]}
        for other in OPERATIONS:
            if other != operation:
                sign = shop.client.sign(f"/merchant/{other}", fields)
                shop.client.expect(40101, operation, **{**fields, "sign": sign})
        shop.client.do(operation, **fields)


@pytest.mark.parametrize("method", ["HMAC", "MD5"])
def test_a_signature_may_be_written_in_either_case(method: str, shop: Shop) -> None:
    shop.change(sign_method=method)
    client = shop.with_client(method=method)
    for change in (str.upper, str.lower):
        fields = client.common()
        client.do("getMerchantBalance", **fields, sign=change(client.sign(BALANCE, fields)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda sign: sign[:20],
        lambda sign: sign[:31],
        lambda sign: sign[:-1] + ("0" if sign[-1] != "0" else "1"),
        lambda sign: sign[::-1],
        lambda sign: "0" * 32,
        lambda sign: "ф" * 32,
        lambda sign: "x",
    ],
)
def test_a_signature_that_differs_anywhere_is_refused(spoil: Any, same_shop: Shop) -> None:
    fields = same_shop.client.common()
    sign = same_shop.client.sign(BALANCE, fields)
    same_shop.client.expect(40101, "getMerchantBalance", **fields, sign=spoil(sign))


def test_a_signature_longer_than_32_characters_is_malformed(same_shop: Shop) -> None:
    fields = same_shop.client.common()
    answer = same_shop.client.expect(
        40001, "getMerchantBalance", **fields, sign=same_shop.client.sign(BALANCE, fields) + "0"
    )
    assert "sign" in answer.msg


def test_the_other_method_is_refused(shop: Shop) -> None:
    shop.with_client(method="MD5").expect(40101, "getMerchantBalance")
    shop.change(sign_method="MD5")
    shop.client.expect(40101, "getMerchantBalance")


def test_in_the_sandbox_a_mismatch_shows_what_the_server_signed(shop: Shop) -> None:
    fields = {**shop.client.common(), "note": "grüße & co", "nothing": None, "zero": Number(0)}
    answer = shop.client.expect(40101, "getMerchantBalance", **fields, sign="0" * 32)
    assert answer.data == {"stringToSign": string_to_sign(BALANCE, fields)}
    shop.change(sign_method="MD5")
    answer = shop.client.expect(40101, "getMerchantBalance", **fields, sign="0" * 32)
    lines = string_to_sign(BALANCE, fields).split("\n")[1:]
    assert answer.data == {"stringToSign": "&".join(lines)}


def test_a_mismatch_shows_neither_secret_nor_signature(same_shop: Shop) -> None:
    fields = same_shop.client.common()
    right = same_shop.client.sign(BALANCE, fields)
    answer = same_shop.client.expect(40101, "getMerchantBalance", **fields, sign="0" * 32)
    assert same_shop.client.secret not in answer.text
    assert right not in answer.text


def test_while_a_secret_is_rotated_both_are_right_and_each_signs_its_own_answer(shop: Shop) -> None:
    older = shop.client
    newer = shop.with_client(secret=shop.rotate_secret())
    for client in (older, newer, older):
        client.do("getMerchantBalance")
    shop.retire_secret()
    newer.do("getMerchantBalance")
    older.expect(40101, "getMerchantBalance")


def test_a_merchants_secret_signs_for_no_other_merchant(shop: Shop, platform: Platform) -> None:
    other = platform.open_merchant()
    shop.with_client(secret=other.client.secret).expect(40101, "getMerchantBalance")


def test_an_answer_can_be_verified_from_its_raw_text_alone(shop: Shop, clock: Clock) -> None:
    client = Client(shop.client.port, shop.client.app_key, shop.client.secret, now_ms=clock)
    fields = client.common()
    answer = client.post(BALANCE, {**fields, "sign": client.sign(BALANCE, fields)})
    expected = (
        f"{BALANCE}\ncode=200\nkfbBalance=1000\nmerchantId={shop.merchant_id}\n"
        f"nonceStr={fields['nonceStr']}\nusdtBalance=1000"
    )
    sign = hmac_sign(client.secret, expected)
    assert answer.text == (
        f'{{"code":200,"msg":"success","data":{{"merchantId":{shop.merchant_id},'
        f'"usdtBalance":1000,"kfbBalance":1000,"sign":"{sign}"}}}}'
    )
    assert write_json({"n": Number("1.50")}) == b'{"n":1.50}'
