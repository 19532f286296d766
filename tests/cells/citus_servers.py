"""A Citus of a test's own: a coordinator, two nodes, and a synchronous standby of the first one.

`WALLET_TEST_CITUS_BIN` is the folder of the programs of a PostgreSQL that has the extension. Nodes are named
by their folders of sockets.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.cells.citus_layout import move_schema
from tests.clusters import Cluster
from tests.conftest import FAR
from tests.folders import make_folder

from merchant_wallet.base.db import connect_sync

PROGRAMS: Final = os.environ.get("WALLET_TEST_CITUS_BIN", "")
NO_PROGRAMS: Final = "WALLET_TEST_CITUS_BIN names no PostgreSQL with Citus: its failovers are not tested"


class CitusServers(NamedTuple):
    """The servers. `standby` streams from `first`, whose commits wait for it."""

    coordinator: Cluster
    first: Cluster
    second: Cluster
    standby: Cluster

    def place_at_first(self) -> None:
        """Let the first node have the cell's schema."""
        query = f"select nodename from citus_shards where table_name = '{FAR}.book'::regclass"
        if self.coordinator.execute(query) != str(self.first.sockets):
            with connect_sync(self.coordinator.url()) as connection:
                move_schema(connection, FAR)

    def replace_node(self, old: Cluster, new: Cluster) -> None:
        """Tell the catalogue that a node is another server now, as Patroni does after a failover."""
        self.coordinator.execute(
            f"select citus_update_node(nodeid, '{new.sockets}', 5432) from pg_dist_node"
            f" where nodename = '{old.sockets}'"
        )


@contextmanager
def citus_servers() -> Iterator[CitusServers]:
    """All four, started."""
    root = make_folder("wallet-citus-")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root)
        servers = CitusServers(*(Cluster(root, name, Path(PROGRAMS)) for name in "cfsb"))
        for cluster in servers:
            if cluster is servers.standby:
                cluster.copy(servers.first)
            else:
                cluster.initialize("--locale=C")
            with (cluster.folder.cluster / "postgresql.conf").open("a") as settings:
                # A node also connects to itself.
                settings.write(f"citus.local_hostname = '{cluster.sockets}'\n")
                settings.write("shared_preload_libraries = 'citus'\n")
            stack.callback(_kill, cluster)
            cluster.start()
            if cluster is not servers.standby:
                cluster.execute("create extension citus")
        servers.first.execute("alter system set synchronous_standby_names = '*'")
        servers.first.execute("select pg_reload_conf()")
        coordinator = servers.coordinator
        coordinator.execute(f"select citus_set_coordinator_host('{coordinator.sockets}', 5432)")
        for node in (servers.first, servers.second):
            coordinator.execute(f"select citus_add_node('{node.sockets}', 5432)")
        yield servers


def _kill(cluster: Cluster) -> None:
    if cluster.process is not None:
        cluster.kill()
