"""Which connection is closed to make room for a new one."""

from dataclasses import dataclass, field
from ipaddress import ip_network

from merchant_wallet.api.admission import BATCH_SIZE, MIN_IDLE_S, PAUSE_S, Admission, ClientWait

PROXIES = (ip_network("10.0.0.0/8"),)


@dataclass(eq=False)
class AdmittedConnection:
    """A connection that is idle, slow or busy, as a test says."""

    state: ClientWait | None
    gone: bool = False

    def client_wait(self) -> ClientWait | None:
        return self.state

    def evict(self) -> None:
        self.gone = True


@dataclass
class AdmissionUnderTest:
    """An admission with a clock that tests move."""

    max_connections: int = 100
    max_per_source: int = 3
    now_s: float = 1000.0
    held: list[AdmittedConnection] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admission = Admission(self.max_connections, self.max_per_source, PROXIES, lambda: self.now_s)

    def come(
        self, peer: str, idle_s: float | None = 100.0, *, is_slow: bool = False
    ) -> AdmittedConnection | None:
        """A new connection that has been idle for `idle_s`, or is busy with None. Returns None if it is
        refused.
        """
        state = None if idle_s is None else ClientWait(is_slow, self.now_s - idle_s)
        new = AdmittedConnection(state)
        if not self.admission.admit(new, peer):
            return None
        self.held.append(new)
        return new

    def gone(self) -> list[int]:
        """The numbers of the connections that were closed, in the order of their arrival."""
        return [number for number, held in enumerate(self.held) if held.gone]


def test_a_source_at_its_limit_gets_a_new_one_for_its_own_longest_idle() -> None:
    under_test = AdmissionUnderTest()
    under_test.come("192.0.2.1", 999)
    for idle_s in (50, 70, 60):
        under_test.come("192.0.2.2", idle_s)
    assert under_test.come("192.0.2.2") is not None
    assert under_test.gone() == [2]
    assert len(under_test.admission) == 4


def test_slow_ones_go_before_idle_ones() -> None:
    under_test = AdmissionUnderTest()
    under_test.come("192.0.2.2", 500)
    under_test.come("192.0.2.2", 2, is_slow=True)
    under_test.come("192.0.2.2", 3, is_slow=True)
    under_test.come("192.0.2.2")
    assert under_test.gone() == [2]


def test_what_is_answered_stays_and_the_new_one_is_refused() -> None:
    under_test = AdmissionUnderTest()
    for _ in range(3):
        assert under_test.come("192.0.2.2", None)
    assert under_test.come("192.0.2.2") is None
    assert under_test.come("192.0.2.3")
    assert (under_test.gone(), under_test.admission.refused, under_test.admission.closed) == ([], 1, 0)


def test_nobody_goes_in_the_first_second() -> None:
    under_test = AdmissionUnderTest()
    for more_s in (0.25, 0.125, 0.0):
        under_test.come("192.0.2.2", MIN_IDLE_S / 2 + more_s)
    assert under_test.come("192.0.2.2") is None
    under_test.now_s += MIN_IDLE_S / 4
    assert under_test.come("192.0.2.2")
    assert under_test.gone() == [0]


def test_addresses_of_one_ipv6_subscriber_are_one_source() -> None:
    under_test = AdmissionUnderTest()
    for number in range(3):
        under_test.come(f"2001:db8:0:1:{number}::1", 10 - number)
    under_test.come("2001:db8:0:2::1", 999)
    under_test.come("2001:db8:0:1:ffff::1")
    under_test.come("::ffff:192.0.2.2")
    under_test.come("192.0.2.2")
    assert under_test.gone() == [0]


def test_trusted_proxies_have_no_limit_of_their_own_and_0_sets_none() -> None:
    under_test = AdmissionUnderTest()
    assert all([under_test.come("10.1.2.3") for _ in range(50)])
    free = AdmissionUnderTest(max_per_source=0)
    assert all([free.come("192.0.2.2") for _ in range(50)])
    assert under_test.gone() == free.gone() == []


def test_when_all_are_taken_one_of_the_largest_source_goes() -> None:
    under_test = AdmissionUnderTest(max_connections=6, max_per_source=4)
    under_test.come("192.0.2.1", 9999)
    under_test.come("10.0.0.1", 9999)
    for idle_s in (5, 7, 6, 4):
        under_test.come("192.0.2.2", idle_s)
    assert under_test.come("192.0.2.3")
    assert under_test.gone() == [3]
    assert len(under_test.admission) == 6


def test_a_proxys_go_last() -> None:
    under_test = AdmissionUnderTest(max_connections=3, max_per_source=4)
    for idle_s in (300, 200):
        under_test.come("10.0.0.1", idle_s)
    under_test.come("192.0.2.1", 2)
    under_test.come("192.0.2.2", None)
    assert under_test.gone() == [2]
    under_test.come("192.0.2.3", None)
    assert under_test.gone() == [0, 2]


def test_one_that_was_found_and_then_used_stays() -> None:
    under_test = AdmissionUnderTest(max_per_source=3)
    for idle_s in (9, 8, 7):
        under_test.come("192.0.2.2", idle_s)
    under_test.come("192.0.2.2", None)
    under_test.held[1].state = ClientWait(is_slow=False, since_s=under_test.now_s)
    under_test.come("192.0.2.2", None)
    assert under_test.gone() == [0, 2]


def test_a_flood_is_not_a_look_for_each() -> None:
    under_test, looks = AdmissionUnderTest(max_connections=10**6, max_per_source=10 * BATCH_SIZE), 0

    class Counted(AdmittedConnection):
        def client_wait(self) -> ClientWait | None:
            nonlocal looks
            looks += 1
            return super().client_wait()

    crowd = 10 * BATCH_SIZE
    for number in range(crowd):
        assert under_test.admission.admit(Counted(ClientWait(False, float(number))), "192.0.2.2")
    for _ in range(BATCH_SIZE):
        assert under_test.admission.admit(Counted(None), "192.0.2.2")
    assert looks <= crowd + BATCH_SIZE
    busy = AdmissionUnderTest(max_connections=10**6, max_per_source=crowd)
    for _ in range(crowd):
        busy.admission.admit(Counted(None), "192.0.2.2")
    looks = 0
    for _ in range(100):
        assert not busy.admission.admit(Counted(None), "192.0.2.2")
    assert looks == crowd
    busy.now_s += PAUSE_S
    assert not busy.admission.admit(Counted(None), "192.0.2.2")
    assert looks == 2 * crowd


def test_a_connection_that_was_handed_over_is_still_counted_once() -> None:
    under_test = AdmissionUnderTest()
    old, new = under_test.come("192.0.2.2", 5), AdmittedConnection(ClientWait(False, 0.0))
    assert old is not None
    under_test.admission.hand_over(old, new)
    assert len(under_test.admission) == 1
    under_test.admission.release(old)
    assert len(under_test.admission) == 1
    under_test.admission.release(new)
    under_test.admission.release(new)
    under_test.admission.hand_over(new, old)
    assert len(under_test.admission) == 0
    assert under_test.admission._sources == {}
