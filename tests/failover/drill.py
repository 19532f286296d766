"""Kills the primary again and again while transfers arrive over HTTP, and counts what is lost.

Every second kill is PostgreSQL alone, whose Patroni gives the primary's place up at once. The others are a
whole server, whose place is free when its `ttl` has passed.
"""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

ROLES: Final = ("wallet", "wallet_web", "wallet_worker")
PASSWORD: Final = "drill"
SETTLED_S: Final = 0.2
"""After a kill no answer of the old primary arrives later than this."""
ANSWERS_BETWEEN: Final = 300
PAUSE_S: Final = 0.1


class Kill(msgspec.Struct, frozen=True, rename="camel"):
    """One kill: what was killed, when another was the primary, and when the first operation succeeded."""

    what: str
    primary: str
    promoted_after_s: float
    first_success_after_promotion_s: float


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

    async def credit(self, wire: Wire, mc_order_id: str) -> int:
        """As the other one's."""
        code = await super().credit(wire, mc_order_id)
        if code == 200:
            self.success_s.append(time.monotonic())
        return code

    def find_first_after(self, moment_s: float) -> float | None:
        """When the first success after a moment arrived."""
        return next((success for success in self.success_s if success > moment_s), None)


class Processes:
    """`serve` and `work` on the cluster, each as its own role."""

    def __init__(self, cluster: Cluster, root: Path) -> None:
        self._cluster = cluster
        self._root = root
        self._running: list[subprocess.Popen[str]] = []
        self.address = ""

    def start(self) -> None:
        """Start both, and wait until they are ready."""
        self.address = self._start("serve", "wallet_web")
        self._start("work", "wallet_worker")

    def environment(self, role: str) -> dict[str, str]:
        """The settings of production, but the sandbox's chains."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("WALLET_")}
        return {
            **kept,
            "WALLET_DATABASE_URL": self._cluster.url(role, PASSWORD),
            "WALLET_SANDBOX": "true",
            "WALLET_MASTER_KEY": MASTER_KEY.hex(),
            "WALLET_DATA": str(self._root / "data"),
            "WALLET_PORT": "0",
            "WALLET_RATE_LIMIT": "0",
            "WALLET_LOG_LEVEL": "warning",
        }

    def _start(self, side: str, role: str) -> str:
        with (self._root / f"{side}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(PROGRAM), side],
                env=self.environment(role),
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
        """Stop both."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.communicate()


def run_drill(root: Path, kills: int, say: Callable[[str], None]) -> Result:
    """The whole drill, in an empty folder that every user may enter."""
    cluster = Cluster(root)
    processes = Processes(cluster, root)
    try:
        say("starting etcd, and three PostgreSQL under Patroni")
        cluster.start()
        app_key, secret = _prepare(cluster)
        processes.start()
        client = TimedClient(processes.address, app_key, secret)
        with _load(client):
            done = [_kill(cluster, client, number, say) for number in range(kills)]
            gap_s = _switch_over(cluster, client, say)
        return _judge(cluster, processes, client, done, gap_s)
    except AssertionError:
        for node in cluster.nodes:
            say(f"{node.name}: {node.log_tail()}")
        raise
    finally:
        processes.stop()
        cluster.stop()


def _prepare(cluster: Cluster) -> tuple[str, str]:
    for role in ROLES:
        cluster.execute(f"create role {role} login password '{PASSWORD}'")
    cluster.execute("create database wallet owner wallet")
    url = cluster.url("wallet", PASSWORD)
    migrate(url, lambda _: None)
    grant(url, {Side.WEB: "wallet_web", Side.WORKER: "wallet_worker"})
    return asyncio.run(furnish(url))


@contextmanager
def _load(client: TimedClient) -> Iterator[None]:
    asyncio.run(client.learn_address())
    stopping = threading.Event()

    def name_orders() -> Iterator[str]:
        for number in itertools.count():
            if stopping.is_set():
                return
            yield f"drill {number}"

    thread = threading.Thread(target=lambda: asyncio.run(client.credit_all(name_orders(), pause_s=PAUSE_S)))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _kill(cluster: Cluster, client: TimedClient, number: int, say: Callable[[str], None]) -> Kill:
    cluster.until_whole()
    _await_answers(client)
    primary = cluster.find_primary()
    assert primary is not None
    others = [node for node in cluster.nodes if node is not primary]
    alone = number % 2 == 0
    if alone:
        primary.kill_postgres()
    else:
        primary.kill()
    killed_s = time.monotonic()
    promoted_s = _await_promotion(others)
    wait_until(lambda: client.find_first_after(killed_s + SETTLED_S), "an operation succeeds again")
    first_s = client.find_first_after(killed_s + SETTLED_S)
    assert first_s is not None
    done = Kill(
        "postgres" if alone else "server",
        primary.name,
        round(promoted_s - killed_s, 2),
        round(first_s - promoted_s, 2),
    )
    say(
        f"kill {number + 1}: {done.what} of {done.primary}; another primary after {done.promoted_after_s} s, "
        f"the first success {done.first_success_after_promotion_s} s later"
    )
    if not alone:
        primary.start()
    return done


def _switch_over(cluster: Cluster, client: TimedClient, say: Callable[[str], None]) -> float:
    """A planned change of the primary. Returns the longest time between two successes."""
    cluster.until_whole()
    _await_answers(client)
    begun_s = time.monotonic()
    cluster.switch_over()
    cluster.until_whole()
    _await_answers(client)
    successes = [moment for moment in list(client.success_s) if moment > begun_s]
    gap_s = round(max(after - before for before, after in itertools.pairwise(successes)), 2)
    say(f"planned change of the primary: {gap_s} s without a success")
    return gap_s


def _await_answers(client: TimedClient) -> None:
    wanted = len(client.answers) + ANSWERS_BETWEEN
    wait_until(lambda: len(client.answers) >= wanted, "operations are answered")


def _await_promotion(others: list[Node]) -> float:
    wait_until(lambda: any(node.is_primary() for node in others), "another node is the primary")
    return time.monotonic()


def _judge(
    cluster: Cluster, processes: Processes, client: TimedClient, done: list[Kill], gap_s: float
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
    answers = client.answers
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
