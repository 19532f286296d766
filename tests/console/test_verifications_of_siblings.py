"""A book's verification is seen, and can be ended, in whichever process a page is answered."""

import os

from merchant_wallet.base.siblings import Siblings, create_shared_memory
from merchant_wallet.console.verifier import CANCELLED, RUNNING, Verification, Verifier


def _is_busy(verifier: Verifier) -> bool:
    return verifier.current is not None


def test_a_running_verification_is_seen_and_ended_by_another_process() -> None:
    memory = create_shared_memory()
    runs, other = Verifier(Siblings(memory, 2)), Verifier(Siblings(memory, 3))
    made = Verification(7, "operator:ann", 1000, checkpoints=True, done=5, total=10)
    runs.show(made)
    found = other.find(7)
    assert found is not None
    assert (found.percent, found.state, found.started_by) == (50, RUNNING, "operator:ann")
    assert _is_busy(other)
    assert other.find(8) is None
    assert not other.cancel(8)
    assert other.cancel(7)
    runs.hear(made)
    assert made.is_unwanted
    made.state = CANCELLED
    runs.show(made)
    assert not _is_busy(other)
    # What a process has verified ends with it.
    Siblings(memory, 1).clear(2)
    assert other.find(7) is None
    os.close(memory)
