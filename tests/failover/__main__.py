"""`python -m tests.failover --kills 20`: the drill, with its figures. `scripts/failover_drill` calls it."""

import argparse
import shutil
import statistics
import sys
from pathlib import Path

import msgspec
from tests.failover.cluster import Missing
from tests.failover.drill import FAULTS, Result, run_drill
from tests.folders import make_folder

WITHIN_S = 3.0
FAILED, CANNOT_RUN = 1, 2


def main() -> int:
    """Run the drill. Exit status 1 if an answered operation was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.failover", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--faults", default=",".join(FAULTS), help="those to repeat, with commas between")
    parser.add_argument("--asynchronous", action="store_true", help="commits wait for no standby")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures into a file")
    chosen = parser.parse_args()
    root = make_folder("merchant-wallet-failover-")
    try:
        result = run_drill(
            root,
            chosen.kills,
            lambda text: print(text, file=sys.stderr, flush=True),
            chosen.faults.split(","),
            synchronous=not chosen.asynchronous,
        )
    except Missing as error:
        print(f"The drill can't run: {error}", file=sys.stderr)
        return CANNOT_RUN
    finally:
        shutil.rmtree(root)
    if chosen.json is not None:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    print(describe(result))
    return FAILED if result.lost or result.contradicted or not result.verified else 0


def describe(result: Result) -> str:
    """The figures."""
    lines = [f"answered operations: {result.answered}, lost: {len(result.lost)}"]
    lines += [
        f"answered otherwise than stored: {len(result.contradicted)}; books verified: {result.verified}"
    ]
    for what in FAULTS:
        kills = [kill for kill in result.kills if kill.what == what]
        if not kills:
            continue
        promoted = [kill.promoted_after_s for kill in kills]
        success = [kill.first_success_after_promotion_s for kill in kills]
        within = sum(each <= WITHIN_S for each in success)
        lines.append(
            f"{len(kills)} × {what}: another primary after {statistics.median(promoted):.1f} s "
            f"(at most {max(promoted):.1f}); first success {statistics.median(success):.2f} s later "
            f"(at most {max(success):.2f}; {within} of {len(kills)} within {WITHIN_S:.0f} s); "
            f"longest wait {max(kill.longest_wait_s for kill in kills):.1f} s, longest stall afterwards "
            f"{max(kill.longest_stall_s for kill in kills):.1f} s"
        )
    lines.append(f"planned change of the primary: {result.switchover_gap_s:.2f} s without a success")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
