"""What the benchmark reads from wrk and /proc, and how it judges goals."""

import os

import msgspec
import pytest
from bench.goals import (
    CALLBACK_RATE,
    CEILING_256,
    CEILING_SHARE,
    COLD_MIB,
    COLD_SHARE,
    FAIRNESS_P99,
    GOALS,
    HOT_256,
    LARGE_SHARE,
    MILLION_MIB,
    PAGE_P99,
    PAGES_SHARE,
    THOUSAND_256,
    THOUSAND_SHARE,
    WRITER_BESIDE_P99,
    Goal,
    figures_of,
    judge,
    judge_all,
)
from bench.meters import (
    TICKS_PER_S,
    compute_percentile,
    family_of,
    find_process,
    read_busy,
    read_processor_s,
    read_stat,
)
from bench.plans import (
    Choice,
    is_picked,
    make_ceiling_plans,
    make_cold_memory_plan,
    make_cold_plans,
    make_fairness_plans,
    make_matrix_plans,
)
from bench.report import Machine, format_failures, format_machine, format_row, read_machine
from bench.rows import Cost, Row
from bench.wrk import WrkFailed, read_output

from merchant_wallet.processes.python_build import runs_optimised

OUTPUT = """Running 3s test @ http://127.0.0.1:1
result: {"threads":[{"answered":101,"seconds":0.5,"used_up":false,"refusals":{"42200":2}},\
{"answered":51,"seconds":0.5,"used_up":true,"refusals":{"42200":1,"HTTP502":4}}],\
"p50_us":11000,"p99_us":20000,"max_us":30000,"errors":{"connect":0,"read":1,"write":0,"timeout":0}}
"""
COST = Cost(90.0, 20.0, 10.0, 5.0, 0.0, 80.0)


def make_row(name: str, rate: float, p99_ms: float = 1.0, refusals: dict[str, int] | None = None) -> Row:
    """A row with these figures."""
    errors = {"connect": 0, "read": 0, "write": 0, "timeout": 0}
    return Row(name, "hot", "mix", 64, 1000, rate, 1.0, p99_ms, 2.0, refusals or {}, errors, False, COST)


def test_a_result_adds_up_over_its_threads() -> None:
    result = read_output(OUTPUT)
    assert result.answered == 152
    assert result.rate == pytest.approx(300)
    assert result.refusals == {"42200": 3, "HTTP502": 4}
    assert result.used_up


def test_output_without_a_result_says_what_wrk_said() -> None:
    with pytest.raises(WrkFailed, match="unable to connect"):
        read_output("unable to connect to 127.0.0.1:1 Connection refused\n")


def test_a_row_with_a_refusal_is_told_as_failed() -> None:
    row = make_row("hot/mix/64", 10.0, refusals={"42200": 3})
    assert row.failures == 3
    assert format_failures(row) == "42200×3"
    assert "FAILED" in format_row(row)
    assert "FAILED" not in format_row(make_row("hot/mix/64", 10.0))


def test_a_goal_at_its_bound_is_met_and_one_to_stay_below_is_not() -> None:
    at_least, below = Goal("a", "x", 8000), Goal("b", "x", 8000, below=True)
    assert judge(at_least, {"x": 8000.0}).verdict == "met"
    assert judge(at_least, {"x": 7999.9}).verdict == "missed"
    assert judge(below, {"x": 8000.0}).verdict == "missed"
    assert judge(below, {"x": 7999.9}).verdict == "met"


def test_a_goal_without_its_figure_is_neither_met_nor_missed() -> None:
    judgement = judge(GOALS[0], {})
    assert (judgement.verdict, judgement.measured) == ("not measured", None)


def list_row_names(*, quick: bool) -> list[str]:
    """The rows that some goal's figure is read from, in a full or a quick run."""
    fairness = [plan for plan, _ in make_fairness_plans(1)]
    plans = make_matrix_plans(1, quick=quick) + make_ceiling_plans(1, quick=quick) + fairness
    return [plan.name for plan in plans]


def test_every_goal_finds_its_figure_among_the_rows_of_a_full_run() -> None:
    figures = figures_of([make_row(name, 10_000.0) for name in list_row_names(quick=False)])
    unmeasured = [goal.goal for goal in judge_all(figures) if goal.verdict == "not measured"]
    assert len(unmeasured) == 9, unmeasured
    assert FAIRNESS_P99 in figures
    assert WRITER_BESIDE_P99 not in figures
    assert COLD_SHARE not in figures
    assert COLD_MIB not in figures
    assert PAGE_P99 not in figures
    assert PAGES_SHARE not in figures
    assert MILLION_MIB not in figures
    assert LARGE_SHARE not in figures
    assert CALLBACK_RATE not in figures


def test_a_quick_run_has_every_row_that_a_goal_is_set_for() -> None:
    full = figures_of([make_row(name, 1.0) for name in list_row_names(quick=False)])
    quick = figures_of([make_row(name, 1.0) for name in list_row_names(quick=True)])
    wanted = {goal.figure for goal in GOALS} & full.keys()
    assert wanted <= quick.keys()


def test_speeds_of_a_run_are_compared_with_other_rows_of_it() -> None:
    rows = [make_row(HOT_256, 600.0), make_row(CEILING_256, 800.0), make_row(THOUSAND_256, 300.0)]
    figures = figures_of(rows)
    assert (figures[CEILING_SHARE], figures[THOUSAND_SHARE]) == (0.75, 0.5)
    assert CEILING_SHARE not in figures_of(rows[:1])
    assert CEILING_SHARE not in figures_of([rows[0], make_row(CEILING_256, 0.0)])


def test_the_processor_time_of_postgresql_is_told_for_each_answer() -> None:
    # A fifth of a core is 200 ms in a second.
    assert figures_of([make_row("a", 1000.0)])["a:postgres_ms"] == pytest.approx(0.2)
    assert "a:postgres_ms" not in figures_of([make_row("a", 0.0)])
    without_database = msgspec.structs.replace(COST, postgres_cpu=None)
    row = msgspec.structs.replace(make_row("a", 1000.0), cost=without_database)
    assert "a:postgres_ms" not in figures_of([row])


def test_names_of_rows_are_their_own() -> None:
    plans = make_matrix_plans(1, quick=False) + make_ceiling_plans(1, quick=False)
    assert len(plans) == 2 * 9 * 4 + 12
    plans += [*make_cold_plans(1), make_cold_memory_plan(), *[plan for plan, _ in make_fairness_plans(1)]]
    assert len({plan.name for plan in plans}) == len(plans)


@pytest.mark.parametrize(
    ("only", "picked"),
    [(None, True), ("hot/exchange", True), ("exch", True), ("*/exchange/64", True), ("exchange/6?", False)],
)
def test_a_row_is_picked_by_a_part_of_its_name_or_a_pattern(only: str | None, picked: bool) -> None:
    assert is_picked("hot/exchange/64", only) is picked


def test_only_the_merchants_that_rows_need_are_prepared() -> None:
    assert Choice(quick=False, large=False, only="hot/exchange", seconds=1).populations == ["hot"]
    assert Choice(quick=False, large=True, only="large", seconds=1).populations == ["large"]
    assert Choice(quick=True, large=False, only=None, seconds=1).populations == [
        "hot",
        "thousand",
        "single",
    ]
    assert Choice(quick=True, large=False, only="memory", seconds=1).populations == []


def test_the_floods_rows_are_measured_together_or_not_at_all() -> None:
    assert len(Choice(quick=True, large=False, only="beside reads", seconds=1).flood) == 3
    assert Choice(quick=True, large=False, only="hot", seconds=1).flood == []


def test_fairness_is_measured_alone_and_beside_the_crowd_or_not_at_all() -> None:
    (alone, nobody), (beside, crowd) = Choice(
        quick=True, large=False, only="beside 4,000", seconds=1
    ).fairness
    assert (alone.population, beside.population, nobody) == ("single", "single", None)
    assert crowd is not None
    assert crowd.population != beside.population
    assert crowd.seconds == beside.seconds
    assert Choice(quick=True, large=False, only="hot", seconds=1).fairness == []


def test_cold_rows_are_measured_when_asked_for() -> None:
    without = Choice(quick=False, large=False, only=None, seconds=1)
    assert (without.cold, without.cold_memory) == (None, None)
    both = Choice(quick=True, large=False, cold=True, only="cold", seconds=1)
    assert both.populations == ["thousand", "cold"]
    assert both.cold is not None
    assert [plan.population for plan in both.cold] == ["cold", "thousand"]
    memory = Choice(quick=True, large=False, cold=True, only="cold/memory", seconds=1)
    assert memory.cold is None
    assert memory.cold_memory == both.cold_memory
    assert memory.populations == ["cold"]


def test_a_process_is_read_whatever_its_name_holds() -> None:
    text = "7 (a) (b c) S 3 1 1 0 -1 4194560 1 2 3 4 100 50 200 25 20 0"
    assert read_stat(text) == (3, 150 / TICKS_PER_S, 225 / TICKS_PER_S)


def test_waiting_for_a_disk_is_no_work_of_the_machine() -> None:
    assert read_busy("cpu 100 200 300 9999 8888 10 20 7 0 0\ncpu0 1") == (630 / TICKS_PER_S, 7 / TICKS_PER_S)


def test_a_family_holds_grandchildren_and_no_strangers() -> None:
    processes = {
        pid: read_stat(f"{pid} (x) S {parent} " + "0 " * 13) for pid, parent in ((2, 1), (3, 2), (4, 9))
    }
    assert family_of(1, processes) == {1, 2, 3}


def test_this_process_is_found_and_has_worked() -> None:
    assert read_processor_s(os.getpid()) > 0
    with pytest.raises(LookupError, match="no such word"):
        find_process(os.getpid(), ("no such word",))


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [compute_percentile(values, hundredths) for hundredths in (0, 50, 99, 100)] == [
        1.0,
        50.0,
        99.0,
        100.0,
    ]


@pytest.mark.parametrize(("optimised", "told"), [(True, "(optimised)"), (False, "without optimisation")])
def test_the_machines_line_says_how_its_python_was_built(optimised: bool, told: str) -> None:
    assert told in format_machine(Machine(2, "a processor", "Linux", "3.11.2", optimised, "2026-11-21"))


def test_of_this_machine_it_is_known_how_its_python_was_built() -> None:
    assert read_machine().python_optimised is runs_optimised()
