"""What a withdrawal order must have: address, notifyUrl, fee, limits."""

import pytest
from tests.journeys.client import Number
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import (
    ADDRESSES,
    ERC20_ADDRESS,
    FAILING,
    TRC20_ADDRESS,
    USDT_CONTRACTS,
    ZERO,
    quote,
    withdrawal,
)
from tests.rows import each_row

from merchant_wallet.base.units import DAY_MS

CLOCK_MS = 1763712000000
CREATE = "createMerchantWithdrawOrder"
CHAINS = ("ERC20", "TRC20")


@pytest.mark.parametrize("chain", CHAINS)
def test_an_address_of_its_chain_is_accepted_and_shown_as_sent(chain: str, shop: Shop) -> None:
    answer = shop.client.do(CREATE, **withdrawal("1", chain=chain))
    assert (answer["address"], answer["chainType"]) == (ADDRESSES[chain], chain)


def test_an_erc20_address_may_be_in_lower_case(shop: Shop) -> None:
    address = ERC20_ADDRESS.lower()
    assert shop.client.do(CREATE, **withdrawal("1", chain="ERC20", address=address))["address"] == address


@pytest.mark.parametrize(
    ("chain", "address"),
    [
        ("ERC20", TRC20_ADDRESS),
        ("ERC20", ERC20_ADDRESS.replace("C", "c", 1)),
        ("ERC20", f"0x{ERC20_ADDRESS[2:].upper()}"),
        ("ERC20", f"0X{ERC20_ADDRESS[2:].lower()}"),
        ("ERC20", ERC20_ADDRESS[2:]),
        ("ERC20", ERC20_ADDRESS[:-1]),
        ("ERC20", f"{ERC20_ADDRESS}0"),
        ("ERC20", f"0x{'g' * 40}"),
        ("ERC20", f"0x{'１' * 40}"),
        ("ERC20", f" {ERC20_ADDRESS}"),
        ("ERC20", ZERO["ERC20"]),
        ("ERC20", USDT_CONTRACTS["ERC20"]),
        ("ERC20", USDT_CONTRACTS["ERC20"].lower()),
        ("TRC20", ERC20_ADDRESS),
        ("TRC20", TRC20_ADDRESS[:-1]),
        ("TRC20", f"{TRC20_ADDRESS[:-1]}D"),
        ("TRC20", TRC20_ADDRESS.lower()),
        ("TRC20", TRC20_ADDRESS.replace("J", "0", 1)),
        ("TRC20", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"),
        ("TRC20", "T" * 34),
        ("TRC20", ZERO["TRC20"]),
        ("TRC20", USDT_CONTRACTS["TRC20"]),
    ],
)
def test_an_address_that_would_lose_the_funds_is_refused(chain: str, address: str, same_shop: Shop) -> None:
    same_shop.client.expect(40005, CREATE, **withdrawal("1", chain=chain, address=address))
    assert same_shop.balances()[0] == "1000"


@each_row(
    ("field", "value", "code", "odd"),
    [
        ("address", f"{TRC20_ADDRESS}\u200b", 40005, "U+200B zero width space at character 35"),
        ("address", f"\ufeff{TRC20_ADDRESS[1:]}", 40005, "U+FEFF byte order mark at character 1"),
        ("amount", "12\u00a0", 40001, "U+00A0 no-break space at character 3"),
        ("currency", "USDT\u00ad", 40003, "U+00AD soft hyphen at character 5"),
        ("chainType", "\u202eTRC20", 40004, "U+202E right-to-left override at character 1"),
    ],
)
def test_a_character_that_nobody_sees_is_named_in_the_refusal(
    field: str, value: str, code: int, odd: str, same_shop: Shop
) -> None:
    fields = {**withdrawal("1", chain="TRC20"), field: value}
    refusal = same_shop.client.expect(code, CREATE, **fields)
    assert refusal.msg.startswith(f"{field} ")
    assert refusal.msg.endswith(f" (it has {odd})")


HOST = "https://example.com/"
URLS: list[tuple[str, int]] = [
    ("https://example.com", 200),
    ("https://example.com/notify", 200),
    ("https://example.com/n?a=1&b=2", 200),
    ("https://example.com:8443/n", 200),
    ("https://example.com/%7Euser/%20", 200),
    ("https://example.com/n#part", 200),
    ("HTTPS://EXAMPLE.COM/", 200),
    ("https://xn--bcher-kva.example/", 200),
    ("https://192.0.2.1/n", 200),
    ("https://my_shop.example./n", 200),
    ("https://example.com:/n", 200),
    ("https://[2001:db8::1]:8443/n", 200),
    ("http://example.com/n", 200),
    ("http://localhost:9000/n", 200),
    (HOST + "x" * (100 - len(HOST)), 200),
    (HOST + "x" * (101 - len(HOST)), 40001),
    ("example.com/n", 40006),
    ("//example.com/n", 40006),
    ("/n", 40006),
    ("https:", 40006),
    ("https://", 40006),
    ("https:///n", 40006),
    ("https:example.com", 40006),
    ("https://:443/", 40006),
    ("ftp://example.com/", 40006),
    ("javascript:alert(1)", 40006),
    ("file:///etc/passwd", 40006),
    ("https://user@example.com/", 40006),
    ("https://user:pass@example.com/", 40006),
    ("https://@example.com/", 40006),
    ("https://example.com:0/", 40006),
    ("https://example.com:65536/", 40006),
    ("https://example.com:port/", 40006),
    ("https://[::1/", 40006),
    ("https://[::1]x/", 40006),
    ("https://[::1%25eth0]/", 40006),
    ("https://[1::2::3]/", 40006),
    ("https://./", 40006),
    ("https://example..com/", 40006),
    ("https://example.com%00/", 40006),
    ("https://%31%32%37.0.0.1/", 40006),
    ("https://a,b/", 40006),
    ("https://exa mple.com/", 40006),
    (" https://example.com/", 40006),
    ("https://example.com/ ", 40006),
    ("https://example.com\\@evil.example/", 40006),
    ("https://bücher.example/", 40006),
    ("https://example.com/ü", 40006),
    ("https://example.com/<n>", 40006),
    ('https://example.com/"', 40006),
    ("https://example.com/n\n", 40001),
    ("https://example.com/\u2028", 40006),
]


def test_a_notify_url_is_judged_by_its_form(shop: Shop) -> None:
    for number, (url, code) in enumerate(URLS):
        answer = shop.client.call(CREATE, **withdrawal(str(number), notifyUrl=url))
        assert answer.code == code, f"{url!r}: {answer.text}"


@each_row("chain", ["erc20", "BEP20", "ERC-20", "TRON", "TRC20 ", "USDT"])
def test_another_chain_is_refused(chain: str, same_shop: Shop) -> None:
    same_shop.client.expect(40004, CREATE, **withdrawal("1", chain=chain))


@pytest.mark.parametrize("currency", ["KFB", "usdt", "USDC", "USDT "])
def test_another_currency_is_refused(currency: str, same_shop: Shop) -> None:
    same_shop.client.expect(40003, CREATE, **withdrawal("1", currency=currency))
    same_shop.client.expect(40003, "getWithdrawFee", **quote() | {"currency": currency})


def test_the_fee_is_the_rates_share_but_at_least_the_minimum_and_a_quote_says_so_before(shop: Shop) -> None:
    for number, (amount, rate, minimum, fee) in enumerate(
        (
            ("100", "0", "0", "0"),
            ("100", "0.01", "0", "1"),
            ("100", "0.01", "5", "5"),
            ("100", "0.05", "5", "5"),
            ("100", "0.06", "5", "6"),
            ("0.01", "0.00005", "0", "0.000001"),
            ("0.01", "0.00004999", "0", "0"),
            ("0.05", "0.00333333", "0", "0.000167"),
            ("5.01", "0", "5", "5"),
        )
    ):
        shop.change(withdraw_fee_rate=rate, withdraw_fee_min=minimum)
        quoted = shop.client.do("getWithdrawFee", **quote(amount))
        made = shop.client.do(CREATE, **withdrawal(str(number), amount))
        found = shop.client.do("queryOrder", orderId=made["orderId"], mcOrderId=str(number))
        assert quoted["fee"] == found["fee"] == fee
        assert quoted["rate"] == found["rate"] == rate
        assert quoted["amount"] == made["amount"] == found["amount"]
        assert quoted["amountArrival"] == made["amountArrival"] == found["amountArrival"]


@pytest.mark.parametrize(("rate", "minimum"), [("0", "10"), ("0", "11"), ("1", "0")])
def test_an_amount_that_does_not_exceed_its_fee_is_refused_by_quote_and_order(
    rate: str, minimum: str, shop: Shop
) -> None:
    shop.change(withdraw_fee_rate=rate, withdraw_fee_min=minimum)
    shop.client.expect(42201, "getWithdrawFee", **quote("10"))
    shop.client.expect(42201, CREATE, **withdrawal("1", "10"))


def test_an_orders_fee_stays_as_it_was_at_creation(shop: Shop) -> None:
    made = shop.client.do(CREATE, **withdrawal("1", "100"))
    shop.change(withdraw_fee_rate="0.1")
    found = shop.client.do("queryOrder", orderId=made["orderId"], mcOrderId="1")
    assert (found["fee"], found["amountArrival"]) == ("0", "100")


def test_an_order_takes_its_amount_from_the_balance_at_once(shop: Shop) -> None:
    shop.client.do(CREATE, **withdrawal("1", "999.99"))
    shop.client.expect(42200, CREATE, **withdrawal("2", "0.02"))
    shop.client.do(CREATE, **withdrawal("2", "0.01"))
    assert shop.balances() == ("0", "1000")


def test_a_daily_limit_holds_for_the_days_sum_and_begins_anew(shop: Shop, clock: Clock) -> None:
    shop.change(daily_limit="100")
    shop.client.do(CREATE, **withdrawal("1", "60"))
    answer = shop.client.expect(42202, CREATE, **withdrawal("2", "40.01"))
    assert "daily withdrawal limit" in answer.msg
    shop.client.do(CREATE, **withdrawal("2", "40"))
    clock.advance(DAY_MS - clock() % DAY_MS - 1)
    shop.client.expect(42202, CREATE, **withdrawal("3", "0.01"))
    clock.advance(1)
    shop.client.do(CREATE, **withdrawal("3", "100"))


def test_an_allow_list_names_addresses_of_both_chains_in_any_spelling(shop: Shop) -> None:
    shop.change(allowed_addresses=f"{ERC20_ADDRESS.lower()} {TRC20_ADDRESS}")
    shop.client.do(CREATE, **withdrawal("1", chain="ERC20"))
    shop.client.do(CREATE, **withdrawal("2", chain="ERC20", address=ERC20_ADDRESS.lower()))
    shop.client.do(CREATE, **withdrawal("3", chain="TRC20"))
    for number, chain in enumerate(CHAINS):
        shop.client.expect(40403, CREATE, **withdrawal(f"a{number}", chain=chain, address=FAILING[chain]))


def test_an_order_is_found_by_both_its_ids_and_by_no_other(shop: Shop, platform: Platform) -> None:
    made = shop.client.do(CREATE, **withdrawal("1"))
    other = shop.client.do(CREATE, **withdrawal("2"))
    shop.client.do("queryOrder", orderId=made["orderId"], mcOrderId="1")
    shop.client.do("queryOrder", orderId=str(made["orderId"]), mcOrderId=Number(1))
    for order_id, mc_order_id in [
        (made["orderId"], "2"),
        (other["orderId"], "1"),
        (Number(int(made["orderId"]) + 10_000), "1"),
        (Number(0), "1"),
        (Number(2**53), "1"),
        (Number(2**63), "1"),
        ("9" * 20, "1"),
    ]:
        shop.client.expect(40401, "queryOrder", orderId=order_id, mcOrderId=mc_order_id)


def test_another_merchants_order_is_not_found(shop: Shop, platform: Platform) -> None:
    made = shop.client.do(CREATE, **withdrawal("1"))
    stranger = platform.open_merchant()
    stranger.client.expect(40401, "queryOrder", orderId=made["orderId"], mcOrderId="1")


def test_a_transfer_is_no_order_that_can_be_queried(shop: Shop) -> None:
    moved = shop.client.do("exchange", amount="1", sendCurrency="USDT", receiveCurrency="KFB", mcOrderId="1")
    shop.client.expect(40401, "queryOrder", orderId=moved["transactionId"], mcOrderId="1")
