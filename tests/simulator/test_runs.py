"""Runs of the simulator with fixed seeds: a whole service, its faults and its acts, against the model."""

import asyncio

import pytest
from simulator.shrinking import Plan
from simulator.story import run, write_report

SEEDS = (1, 2, 3)
SECONDS = 20.0


@pytest.mark.timeout(900)  # Its set-up and its checks are dozens of commands, beside other tests.
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_contradicts_the_model(seed: int) -> None:
    outcome = asyncio.run(run(Plan(seed, SECONDS, merchants=3)))
    report = "\n".join(write_report(outcome))
    assert outcome.fault is None, report
    assert outcome.orders > 0, report
    assert outcome.faults.total() > 0, report
