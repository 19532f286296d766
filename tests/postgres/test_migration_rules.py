"""What the migrations after the baseline may contain. Squawk, their linter, knows the locks."""

import subprocess
import sys
from pathlib import Path

import pytest

from merchant_wallet.postgres.migration_files import (
    BASELINE_VERSION,
    Kind,
    Migration,
    Mode,
    read_migrations,
)

SQUAWK = Path(sys.executable).with_name("squawk")
ONLINE = [migration for migration in read_migrations() if migration.version > BASELINE_VERSION]
STYLE = (
    # The house's taste, or set by the one who applies the steps.
    "require-lock-timeout,require-statement-timeout,prefer-bigint-over-int,prefer-bigint-over-smallint,"
    "prefer-identity,prefer-text-field,prefer-timestamp-tz,require-timeout-settings,ban-char-field"
)
DROPS = "ban-drop-column,ban-drop-table,ban-drop-not-null,renaming-column,renaming-table"


def _complain(text: str, *, mode: Mode, exclude: str = STYLE) -> str:
    """What the linter says about a step."""
    command = [str(SQUAWK), "--reporter", "gcc", "--pg-version", "15", "--exclude", exclude]
    if mode is not Mode.CONCURRENTLY:
        command.append("--assume-in-transaction")
    linted = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert linted.returncode in (0, 1), linted.stderr
    return linted.stdout if linted.returncode else ""


@pytest.mark.parametrize("migration", ONLINE, ids=lambda migration: migration.name)
def test_a_migration_closes_no_table_and_may_run_again(migration: Migration) -> None:
    exclude = STYLE if migration.kind is Kind.EXPAND else f"{STYLE},{DROPS}"
    faults = [
        complaint
        for step in migration.steps
        if (complaint := _complain(step.text, mode=step.mode, exclude=exclude))
    ]
    assert faults == [], "\n".join(faults)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("create index if not exists i on book (version);", "require-concurrent-index-creation"),
        ("alter table book add constraint c check (version > 0);", "constraint-missing-not-valid"),
        ("alter table book alter column version set not null;", "adding-not-nullable-field"),
        ("alter table book drop column if exists version;", "ban-drop-column"),
        ("alter table book alter column version type numeric;", "changing-column-type"),
        ("alter table book rename column version to number;", "renaming-column"),
    ],
)
def test_the_linter_finds_what_closes_a_table_or_stops_an_older_program(text: str, rule: str) -> None:
    assert rule in _complain(text, mode=Mode.TRANSACTION)
