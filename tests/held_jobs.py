"""A job that a session of a test has, as a long command would."""

import psycopg

from merchant_wallet.postgres.jobs import QUERIES, Scope


def begin_job(session: psycopg.Connection, scope: Scope) -> None:
    """Have a scope until the session is closed, as `jobs.hold` does."""
    values = {"kind": "archive", "scope": scope.ranges, "subject": scope.subject, "actor": "cli:ann"}
    found = session.execute(QUERIES["begin"].text.encode(), values).fetchone()
    assert found is not None, "another job has it"
    session.execute(QUERIES["lock"].text.encode(), {"job_id": found[0]})
