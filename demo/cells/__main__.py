"""`python -m demo.cells [--short]`: the story of three cells, on this machine."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo.cells.servers import Servers
from demo.cells.story import SHORT, USUAL, CellsStory, Lengths
from demo.deployment import Deployment, Failure, find_installed_program
from demo.guard import run_guarded
from demo.transcript import Transcript


def main(arguments: Sequence[str] | None = None, program: Path | None = None) -> int:
    """Run the demo. Returns the exit status: 0 done, 1 failed, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="make cells-demo", description="From one cell to three, a move under load, and a killed server."
    )
    parser.add_argument("--short", action="store_true", help="watch each step for a second or two")
    lengths = SHORT if parser.parse_args(arguments).short else USUAL
    return run_guarded(lambda folder: _tell(lengths, program))


def _tell(lengths: Lengths, program: Path | None) -> int:
    transcript, began_s = Transcript(), time.monotonic()
    try:
        deployment, servers = Deployment(program or find_installed_program()), Servers()
        CellsStory(transcript, deployment, servers, lengths).run()
    except (Failure, OSError) as error:
        transcript.failure(str(error))
        return 1
    transcript.blank_line()
    transcript.note(f"done in {time.monotonic() - began_s:.0f} s; docs/scaling.md is the page about cells")
    return 0


if __name__ == "__main__":
    sys.exit(main())
