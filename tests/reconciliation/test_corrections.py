"""A record of the treasury that was wrong: its correction names it, and then neither explains anything."""

from collections.abc import Sequence

import psycopg
import pytest
from tests.reconciliation.conftest import (
    COIN,
    HOT,
    START_MS,
    STRANGER,
    InReconciliation,
    ReconciliationScene,
)
from tests.rows import each_row

from merchant_wallet.custody.treasury import TreasuryShown, record_treasury
from merchant_wallet.custody.two_person_changes import (
    CORRECT,
    RECORD,
    Corrects,
    NewRecord,
    RecordRefused,
    find_replaced,
    make_kinds,
)

THEFT = 30 * COIN


@pytest.mark.parametrize("is_seen_first", [True, False], ids=["seen first", "recorded first"])
def test_a_corrected_record_explains_nothing_and_may_be_made_anew(
    in_reconciliation: InReconciliation, is_seen_first: bool
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        await scene.fund(100 * COIN)
        theft = scene.chain.put((HOT, STRANGER, THEFT))
        if is_seen_first:
            assert await scene.lines() == {"unknown out": "-30"}
        for _ in range(2):
            wrong = await scene.record("OUT", THEFT, theft)
            assert await scene.lines() == {}
            # The clock of the machine that corrects it is behind: nothing depends on it.
            scene.deposits.clock.advance(-60_000)
            await scene.record("IN", THEFT, theft, corrects=wrong)
            compared = await scene.compare()
            assert [(line["kind"], line["effect"]) for line in compared["lines"]] == [("unknown out", "-30")]
            assert (compared["unexplained"], compared["treasury"]) == ("0", "100")
        await scene.record("OUT", THEFT, theft)
        for _ in range(2):
            compared = await scene.compare()
            assert (compared["sound"], compared["lines"], compared["treasury"]) == (True, [], "70")
        with pytest.raises(RecordRefused, match="recorded already"):
            await scene.record("OUT", THEFT, theft)

    in_reconciliation(scenario)


def test_the_database_takes_only_a_correction_of_exactly_the_record_and_only_one(
    in_reconciliation: InReconciliation,
) -> None:
    async def scenario(scene: ReconciliationScene) -> None:
        connection = scene.deposits.connection
        wrong = await scene.record("OUT", THEFT, "0xa")

        async def put(
            direction: str,
            units: int = THEFT,
            tx_hash: str = "0xa",
            corrects: int | None = None,
            replaces: int | None = None,
        ) -> int | None:
            return await record_treasury(
                connection,
                "ERC20",
                direction,
                units,
                tx_hash=tx_hash,
                reason="x",
                actor="op",
                now_ms=START_MS,
                corrects=corrects,
                replaces=replaces,
            )

        for direction, units, tx_hash in (("OUT", THEFT, "0xa"), ("IN", 1, "0xa"), ("IN", THEFT, "0xb")):
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                await put(direction, units, tx_hash, corrects=wrong)
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            await put("OUT", replaces=wrong)
        assert await put("IN", corrects=wrong) is not None
        assert await put("IN", corrects=wrong) is None
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            await put("OUT", THEFT + 1, replaces=wrong)
        assert await put("OUT") is None
        assert await put("OUT", replaces=wrong) is not None
        assert await put("OUT", replaces=wrong) is None

    in_reconciliation(scenario)


def test_only_a_correction_has_the_kind_of_corrections() -> None:
    kinds: list[tuple[Corrects, str]] = [(None, RECORD), ("none", RECORD), (7, CORRECT)]
    for corrects, kind in kinds:
        assert NewRecord("ERC20", "IN", THEFT, "0xa", corrects).kind == kind
    assert set(make_kinds()) == {RECORD, CORRECT}


def known(*records: tuple[int, str, int, int | None, int | None]) -> list[TreasuryShown]:
    return [
        TreasuryShown("ERC20", no, direction, units, "0xa", "x", "op", 1, corrects, corrected_by)
        for no, direction, units, corrects, corrected_by in records
    ]


OUT = (7, "OUT", THEFT, None, None)
TAKEN_BACK = ((7, "OUT", THEFT, None, 8), (8, "IN", THEFT, 7, None))

RULES: list[tuple[str, Sequence[TreasuryShown], str, int, Corrects, int | str | None]] = [
    ("the first of its transaction", [], "OUT", THEFT, None, None),
    ("the same again", known(OUT), "OUT", THEFT, None, "recorded already"),
    ("another amount", known(OUT), "OUT", 1, None, None),
    ("the correction", known(OUT), "IN", THEFT, 7, None),
    ("what could be a correction", known(OUT), "IN", THEFT, None, "Record 7 says OUT 30 USDT of the same"),
    ("what is said to be none", known(OUT), "IN", THEFT, "none", None),
    ("a correction of another amount", known(OUT), "IN", 1, 7, "Record 7 says OUT 30 USDT. Its correction"),
    ("a correction in its direction", known(OUT), "OUT", THEFT, 7, "Record 7 says OUT 30 USDT. Its correct"),
    ("a correction of nothing", known(OUT), "IN", THEFT, 6, "no record 6 of this transaction"),
    ("a second correction", known(*TAKEN_BACK), "IN", THEFT, 7, "corrected already, by record 8"),
    ("a correction of a correction", known(*TAKEN_BACK), "OUT", THEFT, 8, "is a correction itself"),
    ("anew", known(*TAKEN_BACK), "OUT", THEFT, None, 7),
    ("the other direction after a correction", known(*TAKEN_BACK), "IN", THEFT, None, None),
    (
        "anew, twice",
        known(*TAKEN_BACK, (9, "OUT", THEFT, None, 10), (10, "IN", THEFT, 9, None)),
        "OUT",
        THEFT,
        None,
        9,
    ),
    ("half of a pair that names nothing", known(OUT, (8, "IN", THEFT, None, None)), "OUT", THEFT, 8, None),
]


@each_row("what, records, direction, units, corrects, expected", RULES)
def test_which_records_are_taken(
    what: str,
    records: Sequence[TreasuryShown],
    direction: str,
    units: int,
    corrects: Corrects,
    expected: int | str | None,
) -> None:
    new = NewRecord("ERC20", direction, units, "0xa", corrects)
    if isinstance(expected, str):
        with pytest.raises(RecordRefused, match=expected):
            find_replaced(new, records)
    else:
        assert find_replaced(new, records) == expected, what
