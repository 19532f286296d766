"""Generic plans of queries, as EXPLAIN shows them in JSON.

PostgreSQL 15 lacks `explain (generic_plan)`, so each query is prepared first.
"""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import psycopg

Plan = dict[str, Any]

_numbers: Final = count(1)


def number_parameters(text: str) -> str:
    """The text with PostgreSQL's own parameters, `$1`, instead of psycopg's."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return re.sub(r"%\((\w+)\)s", number, text).replace("%%", "%")


def explain(connection: psycopg.Connection, text: str, *, verbose: bool = False) -> Plan:
    """The generic plan of a query, with all partitions of each table."""
    name, numbered = f"explained_{next(_numbers)}", number_parameters(text)
    with connection.transaction(force_rollback=True):
        connection.execute(b"set local plan_cache_mode = force_generic_plan")
        # Otherwise the nulls that stand for the parameters remove all partitions from the plan.
        connection.execute(b"set local enable_partition_pruning = off")
        connection.execute(f"prepare {name} as {numbered}".encode())
        return explain_prepared(connection, name, numbered, verbose=verbose)


def explain_prepared(connection: psycopg.Connection, name: str, text: str, *, verbose: bool = False) -> Plan:
    """The plan of a prepared statement. `text` tells how many parameters it has."""
    statement = f"explain (verbose {verbose}, format json) {execute_with_nulls(name, text)}"
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    plan: Plan = row[0][0]["Plan"]
    return plan


def execute_with_nulls(name: str, text: str) -> str:
    """The statement that executes a prepared `text`, with a null for each parameter."""
    highest = max(map(int, re.findall(r"\$(\d+)", text)), default=0)
    return f"execute {name}({', '.join(['null'] * highest)})" if highest else f"execute {name}"


def list_nodes(plan: Plan) -> Iterator[Plan]:
    """The plan's nodes, from the top down."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from list_nodes(below)
