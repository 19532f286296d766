"""Forbids core dumps, and reading of this process's memory by other processes of the same user.

A core dump of a process with a key is a copy of the key on the disk. Every entry point calls
`forbid_core_dumps` first. `exec` makes a process dumpable again, so each program calls it itself.
"""

import ctypes
import resource
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_SUID_DUMP_DISABLE: Final = 0


def forbid_core_dumps() -> None:
    """Set RLIMIT_CORE to 0 and clear the dumpable flag (prctl(2), PR_SET_DUMPABLE). Raises OSError.

    The limit alone is not enough: the kernel ignores it when it pipes core dumps to a program, as under
    systemd-coredump. Without the flag the process also can't be traced, and its memory and environment
    can't be read under /proc, by anyone but root.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_ulong
    if libc.prctl(_PR_SET_DUMPABLE, number(_SUID_DUMP_DISABLE), number(0), number(0), number(0)) != 0:
        raise OSError(ctypes.get_errno(), "the dumpable flag could not be cleared")
