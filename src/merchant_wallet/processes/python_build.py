"""Whether this Python was built with profile-guided optimisation (PGO): it gives a fifth more requests.

Rules: this file imports only the standard library, because `scripts/setup` runs it alone with every Python
that it finds. Exit status 0 means that this Python makes a good .venv.
"""

import sys
import sysconfig
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MAPS: Final = Path("/proc/self/maps")
FLAGS: Final = ("-fprofile-use", "-fprofile-instr-use")
"""The flags of GCC and Clang for PGO."""
VENV_MODULES: Final = ("venv", "ensurepip")
"""On Debian they are in a separate package, which may be missing."""


def is_optimised(variables: Mapping[str, object], loaded: str) -> bool:
    """Whether these variables of `sysconfig` and this memory map are from a PGO build."""
    flags = f"{variables.get('PY_CORE_CFLAGS')} {variables.get('PY_CFLAGS_NODIST')}"
    if "--enable-optimizations" in str(variables.get("CONFIG_ARGS")) or any(flag in flags for flag in FLAGS):
        return True
    # Debian and its derivatives build twice. `sysconfig` describes the build of the shared library, which is
    # without PGO. The executable is the other build, with PGO, and does not load the library.
    return bool(variables.get("Py_ENABLE_SHARED")) and "/libpython" not in loaded


def runs_optimised() -> bool:
    """Whether the running Python is a PGO build. False if that can't be seen."""
    try:
        loaded = MAPS.read_text()
    except OSError:
        loaded = "/libpython"  # Without /proc only sysconfig decides.
    return is_optimised(sysconfig.get_config_vars(), loaded)


def can_make_venv() -> bool:
    """Whether this Python has all that `python -m venv` takes."""
    return all(find_spec(name) for name in VENV_MODULES)


if __name__ == "__main__":
    sys.exit(not (can_make_venv() and runs_optimised()))
