"""Exchange rates in the console: set, paused, refused where a round trip would gain money, and logged."""

from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Platform, Shop

RATES = "/console/rates"
SETTINGS = {"sandbox_confirm_ms": 50}


def change(person: ConsoleUser, do: str, direction: str, **fields: str) -> str:
    """The text of the page after a change."""
    form = {
        "do": do,
        "direction": direction,
        **{name.replace("_", "-"): text for name, text in fields.items()},
    }
    answer = person.post(RATES, form)
    if answer.status_code == 303:
        answer = person.follow(answer)
    return read_text(answer.text)


def rate(platform: Platform, column: str) -> object:
    return platform.rows(f"select {column} from rate where merchant_id = 0")[0][0]


def restore(platform: Platform) -> None:
    platform.set_rate("KFB:USDT", "0.14")
    platform.set_rate("USDT:KFB", "7.1")


def test_a_rate_is_set_with_its_age_and_the_log_says_what_it_was(platform: Platform, people: People) -> None:
    operator = people.signed_in("operator")
    assert "Saved." in change(operator, "set", "USDT:KFB", rate_usdt_kfb="7.05", rate_usdt_kfb_hours="10 min")
    assert rate(platform, "usdt_kfb_e8") == 705_000_000
    assert rate(platform, "usdt_kfb_max_age_ms") == 600_000
    found = platform.rows(
        "select before, after from audit_entry where action = 'rate.set' order by audit_no desc"
    )
    assert found[0][0]["rate"] == "7.1"
    assert found[0][1] == {"rate": "7.05", "paused": False, "maxAgeMs": 600_000}
    assert "7.05" in read_text(operator.page(f"{RATES}?merchant=platform").split("What was changed")[1])
    restore(platform)


def test_a_loop_that_makes_money_is_refused_with_the_largest_rate_and_what_was_typed_stays(
    platform: Platform, people: People
) -> None:
    operator = people.signed_in("operator")
    told = change(operator, "set", "USDT:KFB", rate_usdt_kfb="8")
    assert "a loop of exchanges would make money".lower() in told.lower()
    assert "7.14285714" in told
    answer = operator.post(RATES, {"do": "set", "direction": "USDT:KFB", "rate-usdt-kfb": "8"})
    assert answer.status_code == 422
    assert 'value="8"' in answer.text
    assert rate(platform, "usdt_kfb_e8") == 710_000_000


def test_a_loop_through_a_merchants_own_rate_names_the_merchant(
    shop: Shop, platform: Platform, people: People
) -> None:
    shop.set_rate("KFB:USDT", "0.1408")
    told = change(people.signed_in("operator"), "set", "USDT:KFB", rate_usdt_kfb="7.12")
    assert "which has a rate of its own, a loop of exchanges would make money" in told
    assert rate(platform, "usdt_kfb_e8") == 710_000_000


def test_a_direction_is_paused_resumed_and_taken_away(platform: Platform, people: People) -> None:
    operator = people.signed_in("operator")
    change(operator, "pause", "KFB:USDT")
    assert rate(platform, "kfb_usdt_paused") is True
    assert "Paused" in read_text(operator.page(RATES))
    change(operator, "resume", "KFB:USDT")
    assert rate(platform, "kfb_usdt_paused") is False
    change(operator, "remove", "KFB:USDT")
    assert rate(platform, "kfb_usdt_e8") is None
    assert "No rate: refused" in read_text(operator.page(RATES))
    restore(platform)


def test_what_is_no_rate_or_age_is_said_beside_its_field(platform: Platform, people: People) -> None:
    operator = people.signed_in("operator")
    told = change(operator, "set", "USDT:KFB", rate_usdt_kfb="seven", rate_usdt_kfb_hours="-1")
    assert "A rate is above 0" in told
    assert "Hours such as 1.5, or 30 min" in told
    assert operator.post(RATES, {"do": "set", "direction": "USDT:BTC"}).status_code == 400
    assert rate(platform, "usdt_kfb_e8") == 710_000_000


def test_merchants_with_their_own_and_the_past_are_listed(shop: Shop, people: People) -> None:
    shop.set_rate("USDT:KFB", "6.9")
    shop.pause_rate("KFB:USDT")
    operator = people.signed_in("operator")
    page = operator.page(f"{RATES}?merchant={shop.merchant_id}")
    assert page.count(f'href="/console/merchants/{shop.merchant_id}/rates"') == 4
    assert "6.9" in read_text(page)
    assert "No change matches" in operator.page(f"{RATES}?merchant=nobody")


def test_history_goes_on_by_key(platform: Platform, people: People) -> None:
    for number in range(33):
        platform.set_rate("USDT:KFB", f"7.0{number:02d}")
    operator = people.signed_in("operator")
    first = operator.page(f"{RATES}?merchant=platform")
    link = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "7.032" in first.split("What was changed")[1]
    assert "7.032" not in operator.page(link).split("What was changed")[1]
    restore(platform)


def test_an_auditor_only_looks_and_a_merchants_user_is_not_told(shop: Shop, people: People) -> None:
    auditor = people.signed_in("auditor")
    assert 'name="do"' not in auditor.page(RATES)
    assert auditor.post(RATES, {"do": "pause", "direction": "USDT:KFB"}).status_code == 403
    user = people.signed_in("merchant", shop.merchant_id)
    assert user.get(RATES).status_code == 404
    assert user.post(RATES, {"do": "pause", "direction": "USDT:KFB"}).status_code == 404
