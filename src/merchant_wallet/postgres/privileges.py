"""Start a child process as an unprivileged user, from root. Linux only; other users never need this.

The child gets the user's id, its group, and the named groups. It can't gain rights from programs that it
executes. It keeps only the named capabilities. Everything that allocates memory happens before the fork:
between fork and exec there are only system calls.
"""

import ctypes
import os
import pwd
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

NOBODY_ID = 65534  # The ids that nearly every system gives to `nobody`. Used if the name is not listed.
CAP_DAC_READ_SEARCH = 2
CAP_SETPCAP = 8
CAP_NET_BIND_SERVICE = 10
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilityWord(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@dataclass(frozen=True, slots=True)
class Account:
    """The user and group that a child runs as."""

    uid: int
    gid: int


def find_nobody() -> Account:
    """The account that owns nothing."""
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Account(NOBODY_ID, NOBODY_ID)
    return Account(entry.pw_uid, entry.pw_gid)


def can_keep_search() -> bool:
    """Whether this process has CAP_DAC_READ_SEARCH and may pass it on. Containers often lack it."""
    return can_keep(CAP_DAC_READ_SEARCH)


def can_keep(capability: int) -> bool:
    """Whether this process has a capability and may pass it on."""
    needed = 1 << capability | 1 << CAP_SETPCAP
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapPrm:"):
            return int(line.split()[1], 16) & needed == needed
    return False


def become(
    account: Account, *, keep_search: bool, keep_bind: bool = False, groups: Sequence[int] = ()
) -> Callable[[], None]:
    """A `preexec_fn` that turns the child into `account`, also a member of `groups`.

    With `keep_search` the child may pass through folders that are closed to it, and read in them. This is for
    a program whose own folder or data folder is below a folder like /root. The alternatives are to open a
    folder that is not ours, or to run it with all of root's rights. With `keep_bind` it may listen on ports
    below 1024. Both are ambient capabilities, so they survive the exec of a program that has none in its
    file.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    named = ((CAP_DAC_READ_SEARCH, keep_search), (CAP_NET_BIND_SERVICE, keep_bind))
    number = ctypes.c_ulong
    ambient = [number(capability) for capability, is_kept in named if is_kept]
    kept = sum(1 << capability.value for capability in ambient)
    words = (_CapabilityWord * 2)(_CapabilityWord(kept, kept, kept), _CapabilityWord(0, 0, 0))
    further = list(groups)

    def check(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), "could not set the child's privileges")

    def drop() -> None:
        if ambient:
            # Otherwise the change of user removes the capability. Also, access(2) would not count it, and
            # initdb uses that to find its other programs.
            fixup = number(_SECBIT_NO_SETUID_FIXUP)
            check(libc.prctl(_PR_SET_SECUREBITS, fixup, number(0), number(0), number(0)))
        os.setgroups(further)
        os.setgid(account.gid)
        os.setuid(account.uid)
        check(libc.capset(ctypes.byref(header), ctypes.byref(words)))
        for capability in ambient:
            raised = number(_PR_CAP_AMBIENT_RAISE)
            check(libc.prctl(_PR_CAP_AMBIENT, raised, capability, number(0), number(0)))
        check(libc.prctl(_PR_SET_NO_NEW_PRIVS, number(1), number(0), number(0), number(0)))

    return drop


def can_read(account: Account, paths: Sequence[Path]) -> bool:
    """Whether `account`, without any capability, can read each of `paths`. It tries."""
    script = 'for path in "$@"; do test -r "$path" || exit 1; done'
    tried = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *map(str, paths)],
        preexec_fn=become(account, keep_search=False),
        cwd="/",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return tried.returncode == 0
