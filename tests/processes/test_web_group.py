"""The supervisor of several web processes: members that are killed at any moment, and what its end says.

The members are real processes that say what a web process says, and do nothing.
"""

import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import msgspec
import pytest
from tests.crash.service import alive
from tests.waits import TIMEOUT_S, wait_until

from merchant_wallet.base import restarts
from merchant_wallet.base.config import ConfigError, load_settings
from merchant_wallet.processes import ending, web_group, web_member
from merchant_wallet.processes.web_group import MAX_KILLED, WebGroup, open_inheritance
from merchant_wallet.processes.web_member import HAND_OVER, Member, Membership

READY = "echo ready: http://127.0.0.1:1; exec sleep 600"
STARTING = "exec sleep 600"
HEARS_LATE = "trap 'trap \"exit 0\" USR1' USR1; while :; do sleep 0.05; done"
"""It hands over when it is told a second time."""
DEAF = "trap '' USR1; exec sleep 600"
Step = tuple[Callable[[], bool], Callable[[], None]]


class Group:
    """A group of two, and its members in the order of their starts. `members` says what they do."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.settings = load_settings(
            {"WALLET_DATA": str(folder), "WALLET_PORT": "0", "WALLET_PROCESSES": "2"}
        )
        self.inheritance = open_inheritance(self.settings)
        self.started: list[Member] = []
        self.announced: list[str] = []
        self._commands: Iterator[str] = iter(())
        patch.setattr(restarts, "FIRST_PAUSE_S", 0.0)
        patch.setattr(web_group, "POLL_S", 0.01)
        patch.setattr(web_member, "own_command", lambda: ["/bin/sh", "-c", next(self._commands)])
        patch.setattr(web_group, "start_member", self._start)

    def _start(self, membership: Membership, inherited: Iterable[int]) -> Member:
        self.started.append(web_member.start_member(membership, inherited))
        return self.started[-1]

    def run(self, members: Iterable[str], steps: list[Step]) -> int:
        """Run until all steps were done or the group ends. Returns its exit status."""
        self._commands = chain(members, repeat(READY))
        # It takes what it is given, so it gets a copy.
        fds = [os.dup(fd) for fd in self.inheritance.list_fds()]
        copied = msgspec.structs.replace(self.inheritance, listening_fd=fds[0], shared_fd=fds[1])
        group = WebGroup(self.settings, self.announced.append, copied)
        turns = iter(range(int(TIMEOUT_S / web_group.POLL_S)))

        def is_over() -> bool:
            next(turns)
            if steps and steps[0][0]():
                steps.pop(0)[1]()
            return not steps

        try:
            group.run(is_over)
        finally:
            for fd in fds[1:]:
                os.close(fd)
        return group.status

    def kill(self, *numbers: int) -> Callable[[], None]:
        """Kill members by their numbers, all at once."""

        def kill() -> None:
            for number in numbers:
                self.started[number].signal(signal.SIGKILL)

        return kill

    def has_ready(self, *numbers: int) -> Callable[[], bool]:
        """Whether these members were started and are ready."""
        return lambda: (
            len(self.started) > max(numbers) and all(self.started[each].is_ready for each in numbers)
        )

    def has_started(self, count: int) -> Callable[[], bool]:
        """Whether so many members were started."""
        return lambda: len(self.started) >= count

    def is_announced(self) -> bool:
        """Whether the group has said that it is ready."""
        return bool(self.announced)


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    made = Group(tmp_path, monkeypatch)
    yield made
    for fd in made.inheritance.list_fds():
        os.close(fd)


def _has_signal(member: Member, mask: str, number: signal.Signals) -> bool:
    status = Path(f"/proc/{member.pid}/status").read_text()
    found = re.search(rf"^{mask}:\s*([0-9a-f]+)$", status, re.MULTILINE)
    assert found is not None
    return bool(int(found[1], 16) >> (number - 1) & 1)


def nothing() -> None:
    """The last step: see that it came so far."""


def test_members_killed_while_the_group_starts_are_replaced(group: Group) -> None:
    steps: list[Step] = [
        # One answers already, the other is not ready.
        (lambda: group.has_ready(0)() and group.has_started(2)(), group.kill(1)),
        # The one that answers is killed with the one that is not ready.
        (group.has_started(3), group.kill(0, 2)),
        (group.is_announced, nothing),
    ]
    assert group.run([READY, STARTING, STARTING], steps) == 0
    assert not steps
    assert len(group.started) == 5


def test_each_of_many_members_may_be_killed_while_the_group_starts(group: Group) -> None:
    group.settings = replace(group.settings, processes=8)
    count = MAX_KILLED + 1
    steps: list[Step] = [(group.has_started(8), group.kill(*range(count))), (group.is_announced, nothing)]
    assert group.run([STARTING] * count, steps) == 0
    assert not steps
    assert len(group.started) == 8 + count


def test_members_killed_at_once_when_all_were_ready_are_replaced(group: Group) -> None:
    steps: list[Step] = [(group.is_announced, group.kill(0, 1)), (group.has_ready(2, 3), nothing)]
    assert group.run([], steps) == 0
    assert not steps


def test_members_killed_while_others_take_their_place_hinder_nothing(group: Group) -> None:
    first: list[Step] = [(group.is_announced, nothing)]
    assert group.run([], first) == 0
    old = [web_member.start_member(Membership(0, 0, 0, seat, False, ""), ()) for seat in (2, 3)]
    group.announced.clear()
    group.inheritance = msgspec.structs.replace(
        group.inheritance, members=[(member.pid, member.seat, False) for member in old]
    )
    group.started.clear()
    steps: list[Step] = [
        (group.has_started(1), group.kill(0)),
        (group.has_started(2), lambda: old[1].signal(signal.SIGKILL)),
        (group.is_announced, nothing),
    ]
    assert group.run([STARTING], steps) == 0
    assert not steps
    # One for the killed new one, and two that stay.
    assert len(group.started) == 3


def test_a_member_that_missed_the_word_to_hand_over_hears_it_again_and_one_that_stays_is_killed(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_member, "REMINDER_S", 0.1)
    monkeypatch.setattr(web_group, "KILL_MARGIN_S", 2.0)
    monkeypatch.setattr(ending, "hand_over_limit_s", lambda settings: 0.0)
    members = [HEARS_LATE, DEAF]
    monkeypatch.setattr(web_member, "own_command", lambda: ["/bin/sh", "-c", members.pop(0)])
    late, deaf = [web_member.start_member(Membership(0, 0, 0, seat, False, ""), ()) for seat in (2, 3)]
    wait_until(
        lambda: _has_signal(deaf, "SigIgn", HAND_OVER) and _has_signal(late, "SigCgt", HAND_OVER),
        "both have begun",
    )
    monkeypatch.setattr(web_member, "own_command", lambda: ["/bin/sh", "-c", READY])
    group.inheritance = msgspec.structs.replace(
        group.inheritance, members=[(late.pid, late.seat, True), (deaf.pid, deaf.seat, True)]
    )
    stayed: list[set[int]] = []
    both = {late.pid, deaf.pid}
    steps: list[Step] = [
        (lambda: late.pid not in alive(both), lambda: stayed.append(alive(both))),
        (lambda: not alive(both), nothing),
    ]
    assert group.run([], steps) == 0
    assert stayed == [{deaf.pid}]


def test_members_that_are_killed_at_each_start_end_the_group_with_a_status_of_its_own(group: Group) -> None:
    # The two take turns, so the first of them is killed once more than it may be.
    kills = [(group.has_started(number + 1), group.kill(number)) for number in range(2 * MAX_KILLED + 1)]
    assert group.run(repeat(STARTING), [*kills, (lambda: False, nothing)]) == 1
    assert not group.announced


def test_a_member_that_refuses_to_start_ends_the_group_with_its_status_and_its_reason(group: Group) -> None:
    assert group.run(["exit 2"], [(lambda: False, nothing)]) == 2
    with pytest.raises(ConfigError, match=r"^there is no database\.$"):
        group.run(["echo failed: there is no database; exit 1"], [(lambda: False, nothing)])
