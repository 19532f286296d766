"""The search box finds parts of extUserIds and names in every cell of the running service, and in Chinese."""

from pathlib import Path
from urllib.parse import quote

from tests.cells.layout import Layout
from tests.cells.two_shops import CellShop, open_shops
from tests.console.conftest import ConsoleUser, People
from tests.journeys.conftest import running

EXT, NAME = "walk-in-Customer-7", "欧阳小明 Ann Miller-Smith"
PARTS = ("in-cust", "IN-CUST", "mer-7", "小明", "阳", "阳小明", "欧", "欧阳", "ller-smi", "ann", "明 an")
NO_PARTS = ("in-cusx", "明小", "王", "ll", "…明", "mith-")
PATHS = ("/console/search?q=", "/console/search/suggestions?q=")


def finds(person: ConsoleUser, path: str, text: str, one: CellShop) -> bool:
    """Whether the page for a text names the sub-user of a merchant, or leads to it."""
    answer = person.get(f"{path}{quote(text)}")
    found = f"/console/merchants/{one.merchant_id}/users/"
    return found in answer.text or found in answer.headers.get("location", "")


def test_a_part_from_the_middle_of_an_ext_user_id_or_a_name_is_found_in_every_cell(
    layout: Layout, tmp_path: Path
) -> None:
    with running(layout.url, tmp_path) as platform:
        shops = open_shops(platform, layout)
        far = shops[1]
        people = People(platform)
        operator, own = people.signed_in("operator"), people.signed_in("merchant", far.merchant_id)
        for one in shops:
            one.shop.client.do("getMerchantCustomer", extUserId=EXT)
            one.rows("update sub_user set username = %s where ext_user_id = %s", NAME, EXT)
        for path in PATHS:
            for part in PARTS:
                assert [finds(operator, path, part, one) for one in shops] == [True, True], (path, part)
                assert [finds(own, path, part, one) for one in shops] == [False, True], (path, part)
            for part in NO_PARTS:
                assert [finds(operator, path, part, one) for one in shops] == [False, False], (path, part)
            assert f"{NAME} · {EXT}" in operator.page(f"{path}{quote('小明')}"), "it says what was found"
        people.leave()
