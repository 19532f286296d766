"""Takes the primary away again and again while transfers arrive over HTTP, and counts what is lost.

The faults, in turn:
- `postgres`: PostgreSQL alone is killed, and its Patroni gives the primary's place up at once.
- `server`: all is killed. The place is free when its `ttl` has passed, here and below.
- `freeze`: every process of the server stands still, and its kernel keeps the connections.
- `cut`: the server loses its network, and all that it sends or should get.
- `hang`: Patroni stands still. PostgreSQL goes on beside the new primary.

Two `serve` have the hosts in either order, and each has a merchant of its own.
"""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
from tests.crash.client import Client, Wire
from tests.crash.service import PROGRAM, furnish
from tests.crash.shop import MASTER_KEY
from tests.failover.cluster import Cluster, Node
from tests.waits import wait_until

from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate

UNAVAILABLE: Final = 50300
ROLES: Final = ("wallet", "wallet_web", "wallet_worker")
PASSWORD: Final = "drill"
SETTLED_S: Final = 0.2
"""After a kill no answer of the old primary arrives later than this."""
ANSWERS_BETWEEN: Final = 300
PAUSE_S: Final = 0.2
STEADY_S: Final = 15.0
"""After the first success stalls are looked for during this time."""
FAULTS: Final = ("postgres", "server", "freeze", "cut", "hang")


class Kill(msgspec.Struct, frozen=True, rename="camel"):
    """One fault of the primary: what it was, when another was the primary, and when operations succeeded.

    Of the two `serve` the later one counts. `longest_wait_s`: the longest that a call waited for its answer.
    `longest_stall_s`: the longest time without a success after the first one. `refusals`: answers 50300.
    """

    what: str
    primary: str
    promoted_after_s: float
    first_success_after_promotion_s: float
    longest_wait_s: float
    longest_stall_s: float
    refusals: int


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """The drill. `lost` are order ids that were answered with success and are not in the database.

    `switchover_gap_s`: the longest time between two successes in a planned change.
    """

    kills: list[Kill]
    switchover_gap_s: float
    answered: int
    lost: list[str]
    contradicted: list[str]
    verified: bool


class TimedClient(Client):
    """A merchant's program that remembers when it was answered."""

    def __init__(self, url: str, app_key: str, secret: str) -> None:
        super().__init__(url, app_key, secret)
        self.success_s: list[float] = []
        self.waits_s: list[tuple[float, float]] = []
        self.refused_s: list[float] = []

    async def credit(self, wire: Wire, mc_order_id: str) -> int:
        """As the other one's."""
        sent_s = time.monotonic()
        code = await super().credit(wire, mc_order_id)
        answered_s = time.monotonic()
        self.waits_s.append((answered_s, answered_s - sent_s))
        if code == 200:
            self.success_s.append(answered_s)
        elif code == UNAVAILABLE:
            self.refused_s.append(answered_s)
        return code

    def find_first_after(self, moment_s: float) -> float | None:
        """When the first success after a moment arrived."""
        return next((success for success in self.success_s if success > moment_s), None)

    def find_longest_wait(self, since_s: float) -> float:
        """The longest wait for an answer that came after a moment."""
        return max((wait for answered, wait in list(self.waits_s) if answered > since_s), default=0.0)

    def find_longest_stall(self, since_s: float) -> float:
        """The longest time without a success between the successes after a moment."""
        successes = [success for success in list(self.success_s) if success >= since_s]
        return max((after - before for before, after in itertools.pairwise(successes)), default=0.0)


class Processes:
    """Two `serve` and one `work` on the cluster, each as its own role."""

    def __init__(self, cluster: Cluster, root: Path) -> None:
        self._cluster = cluster
        self._root = root
        self._running: list[subprocess.Popen[str]] = []
        self.addresses: list[str] = []

    def start(self) -> None:
        """Start all, and wait until they are ready."""
        self.addresses = [self._start("serve", "wallet_web", backwards=order) for order in (False, True)]
        self._start("work", "wallet_worker")

    def environment(self, role: str, *, backwards: bool = False) -> dict[str, str]:
        """The settings of production, but the sandbox's chains."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("WALLET_")}
        return {
            **kept,
            "WALLET_DATABASE_URL": self._cluster.url(role, PASSWORD, backwards=backwards),
            "WALLET_SANDBOX": "true",
            "WALLET_MASTER_KEY": MASTER_KEY.hex(),
            "WALLET_DATA": str(self._root / "data"),
            "WALLET_PORT": "0",
            "WALLET_RATE_LIMIT": "0",
            "WALLET_LOG_LEVEL": "warning",
        }

    def _start(self, side: str, role: str, *, backwards: bool = False) -> str:
        with (self._root / f"{side}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(PROGRAM), side],
                env=self.environment(role, backwards=backwards),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._running.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("ready: "):
                return line.removeprefix("ready: ").strip()
        raise AssertionError((self._root / f"{side}.log").read_text()[-3000:])

    def stop(self) -> None:
        """Stop all."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.communicate()


def run_drill(
    root: Path,
    kills: int,
    say: Callable[[str], None],
    faults: Sequence[str] = FAULTS,
    *,
    synchronous: bool = True,
) -> Result:
    """The whole drill, in an empty folder that every user may enter."""
    cluster = Cluster(root, synchronous=synchronous)
    processes = Processes(cluster, root)
    try:
        say("starting etcd, and three PostgreSQL under Patroni")
        cluster.start()
        merchants = _prepare(cluster)
        processes.start()
        clients = [
            TimedClient(address, *merchant)
            for address, merchant in zip(processes.addresses, merchants, strict=True)
        ]
        with _load(clients):
            done = [
                _take_away(cluster, clients, fault, number, say)
                for number, fault in enumerate(itertools.islice(itertools.cycle(faults), kills), 1)
            ]
            gap_s = _switch_over(cluster, clients, say)
        return _judge(cluster, processes, clients, done, gap_s)
    except AssertionError:
        for node in cluster.nodes:
            say(f"{node.name}: {node.log_tail()}")
        raise
    finally:
        processes.stop()
        cluster.stop()


def _prepare(cluster: Cluster) -> list[tuple[str, str]]:
    for role in ROLES:
        cluster.execute(f"create role {role} login password '{PASSWORD}'")
    cluster.execute("create database wallet owner wallet")
    url = cluster.url("wallet", PASSWORD)
    migrate(url, lambda _: None)
    grant(url, {Side.WEB: "wallet_web", Side.WORKER: "wallet_worker"})
    return [asyncio.run(furnish(url)) for _ in range(2)]


@contextmanager
def _load(clients: Sequence[TimedClient]) -> Iterator[None]:
    stopping = threading.Event()

    def name_orders(client_no: int) -> Iterator[str]:
        for number in itertools.count():
            if stopping.is_set():
                return
            yield f"drill {client_no} {number}"

    def send(client_no: int) -> None:
        asyncio.run(clients[client_no].credit_all(name_orders(client_no), pause_s=PAUSE_S))

    for client in clients:
        asyncio.run(client.learn_address())
    threads = [threading.Thread(target=send, args=(client_no,)) for client_no in range(len(clients))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def _take_away(
    cluster: Cluster, clients: Sequence[TimedClient], fault: str, number: int, say: Callable[[str], None]
) -> Kill:
    cluster.until_whole()
    _await_answers(clients)
    primary = cluster.find_primary()
    assert primary is not None
    others = [node for node in cluster.nodes if node is not primary]
    acts = {
        "postgres": primary.kill_postgres,
        "server": primary.kill,
        "freeze": primary.freeze,
        "cut": primary.cut,
        "hang": primary.hang,
    }
    acts[fault]()
    begun_s = time.monotonic()
    promoted_s = _await_promotion(others)
    # A primary whose Patroni hangs answers until then.
    after_s = promoted_s if fault == "hang" else begun_s + SETTLED_S
    firsts = [_await_success(client, after_s) for client in clients]
    ends_s = time.monotonic() + STEADY_S
    wait_until(lambda: time.monotonic() > ends_s, "some seconds passed")
    done = Kill(
        fault,
        primary.name,
        round(promoted_s - begun_s, 2),
        round(max(firsts) - promoted_s, 2),
        round(max(client.find_longest_wait(begun_s) for client in clients), 2),
        round(
            max(client.find_longest_stall(first) for client, first in zip(clients, firsts, strict=True)), 2
        ),
        sum(refused > begun_s for client in clients for refused in list(client.refused_s)),
    )
    say(
        f"{number}: {done.what} of {done.primary}; another primary after {done.promoted_after_s} s, "
        f"the first success {done.first_success_after_promotion_s} s later, longest wait "
        f"{done.longest_wait_s} s, longest stall after it {done.longest_stall_s} s, "
        f"{done.refusals} times 50300"
    )
    ends = {"server": primary.start, "freeze": primary.thaw, "hang": primary.thaw, "cut": primary.mend}
    if fault in ends:
        ends[fault]()
    return done


def _switch_over(cluster: Cluster, clients: Sequence[TimedClient], say: Callable[[str], None]) -> float:
    """A planned change of the primary. Returns the longest time between two successes."""
    cluster.until_whole()
    _await_answers(clients)
    begun_s = time.monotonic()
    cluster.switch_over()
    cluster.until_whole()
    _await_answers(clients)
    gap_s = round(max(client.find_longest_stall(begun_s) for client in clients), 2)
    say(f"planned change of the primary: {gap_s} s without a success")
    return gap_s


def _await_answers(clients: Sequence[TimedClient]) -> None:
    for client in clients:
        wanted = len(client.answers) + ANSWERS_BETWEEN
        wait_until(lambda: len(client.answers) >= wanted, "operations are answered")  # noqa: B023


def _await_success(client: TimedClient, after_s: float) -> float:
    found = wait_until(partial(client.find_first_after, after_s), "an operation succeeds again")
    assert found is not None
    return found


def _await_promotion(others: list[Node]) -> float:
    wait_until(lambda: any(node.is_primary() for node in others), "another node is the primary")
    return time.monotonic()


def _judge(
    cluster: Cluster, processes: Processes, clients: Sequence[TimedClient], done: list[Kill], gap_s: float
) -> Result:
    question = "select mc_order_id, entry_id from entry where mc_order_id like 'drill %'"
    with psycopg.connect(cluster.url("wallet", PASSWORD)) as connection:
        stored: dict[str, Any] = dict(connection.execute(question.encode()).fetchall())
    verified = subprocess.run(
        [str(PROGRAM), "book", "verify"],
        env=processes.environment("wallet"),
        stdout=sys.stderr,
        check=False,
    )
    answers = {order: ids for client in clients for order, ids in client.answers.items()}
    return Result(
        kills=done,
        switchover_gap_s=gap_s,
        answered=len(answers),
        lost=sorted(answers.keys() - stored.keys()),
        contradicted=sorted(
            order for order, ids in answers.items() if order in stored and set(ids) != {stored[order]}
        ),
        verified=verified.returncode == 0,
    )
