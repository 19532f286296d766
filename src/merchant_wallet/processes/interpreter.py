"""How this Python was built: with an optimisation that profiles guided, which is worth a fifth in requests a
second, or without.

Rules: Python's own library alone, and nothing of this package: `scripts/setup` runs this file by itself with
every Python it finds, before there is anything else. Exit status 0 then says that it would make a good .venv.
"""

import sys
import sysconfig
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MAPS: Final = Path("/proc/self/maps")
FLAGS: Final = ("-fprofile-use", "-fprofile-instr-use")
"""What GCC and Clang are given when a profile guides them."""
VENV_MODULES: Final = ("venv", "ensurepip")
"""Debian has them in a package of its own, which may be missing."""


def is_optimised(variables: Mapping[str, object], loaded: str) -> bool:
    """Whether a profile guided the build that these variables of `sysconfig` and this memory map are of."""
    flags = f"{variables.get('PY_CORE_CFLAGS')} {variables.get('PY_CFLAGS_NODIST')}"
    if "--enable-optimizations" in str(variables.get("CONFIG_ARGS")) or any(flag in flags for flag in FLAGS):
        return True
    # Debian and what descends from it build twice. What they describe is the shared library's build, a plain
    # one; their executable is the other, which a profile guided, and does without the library.
    return bool(variables.get("Py_ENABLE_SHARED")) and "/libpython" not in loaded


def runs_optimised() -> bool:
    """Whether a profile guided the build of the Python that runs this; where that can't be seen, it is no."""
    try:
        loaded = MAPS.read_text()
    except OSError:
        loaded = "/libpython"  # Without /proc, only what sysconfig says counts.
    return is_optimised(sysconfig.get_config_vars(), loaded)


def can_make_venv() -> bool:
    """Whether this Python has all that `python -m venv` takes."""
    return all(find_spec(name) for name in VENV_MODULES)


if __name__ == "__main__":
    sys.exit(not (can_make_venv() and runs_optimised()))
