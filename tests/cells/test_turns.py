"""People take turns for the connections to an apart cell, too."""

from pathlib import Path

import pytest
from tests.cells.layout import Layout
from tests.cells.two_shops import open_shops
from tests.console.conftest import People
from tests.console.test_turns import SEARCH, known
from tests.journeys.conftest import running
from tests.web.held_connections import PATIENCE_MS, patient_pages, waiting_pages

from merchant_wallet.web import cells
from merchant_wallet.web.cells import CellPools

__all__ = ["patient_pages"]


def test_a_merchants_pages_leave_its_cell_to_others_and_all_together_to_acts_of_safety(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CellPools.__init__, "__defaults__", (2,))
    for limit in ("OPEN_S", "ANSWER_S", "HOLD_S"):
        monkeypatch.setattr(cells, limit, PATIENCE_MS / 1000)
    with running(layout.url, tmp_path) as platform:
        _, far = open_shops(platform, layout)
        other = platform.open_merchant(cell_id=layout.far_id)
        people = People(platform)
        ann, ben, carol = [
            known(people.signed_in("merchant", one))
            for one in (far.merchant_id, far.merchant_id, other.merchant_id)
        ]
        owner = known(people.signed_in("owner"))
        searches = [lambda: ann.get(SEARCH), lambda: ben.get(SEARCH)] * 6
        with waiting_pages(platform, "far.sub_user", searches, waiting=1):
            carol.page(f"/console/books/{other.merchant_id}")
        searches = [lambda: ann.get(SEARCH), lambda: carol.get(SEARCH)] * 6
        with waiting_pages(platform, "far.sub_user", searches, waiting=2):
            status = f"/console/merchants/{far.merchant_id}/status"
            assert owner.post(status, {"status": "suspended"}).status_code == 303
            assert far.rows("select status from far.merchant where merchant_id = %s", far.merchant_id) == [
                ("suspended",)
            ]
        people.leave()
