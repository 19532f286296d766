"""Starting a child process as an unprivileged user, from root. Linux only; an ordinary user never comes here.

Rules: the child gets the user's id, its group and no further group, and can gain nothing by what it executes.
It may keep one capability, CAP_DAC_READ_SEARCH, and keeps none other. Everything that allocates happens
before the fork: what runs between fork and exec is system calls.
"""

import ctypes
import os
import pwd
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

NOBODY_ID = 65534  # What nearly every system gives to `nobody`; used where the name is not listed.
CAP_DAC_READ_SEARCH = 2
CAP_SETPCAP = 8
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
    """Whether this process has CAP_DAC_READ_SEARCH and may hand it on; containers often take it away."""
    needed = 1 << CAP_DAC_READ_SEARCH | 1 << CAP_SETPCAP
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapPrm:"):
            return int(line.split()[1], 16) & needed == needed
    return False


def become(account: Account, *, keep_search: bool) -> Callable[[], None]:
    """A `preexec_fn` that turns the child into `account`.

    With `keep_search` the child may pass through folders that are closed to it and read in them. That is for
    a PostgreSQL whose data folder or program lies under a folder like /root: the other ways would be to open
    up a folder that is not ours to open, or to run the server with all of root's rights. The capability is an
    ambient one, so it outlives the exec of a program that has no capabilities in its file.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    kept = 1 << CAP_DAC_READ_SEARCH if keep_search else 0
    words = (_CapabilityWord * 2)(_CapabilityWord(kept, kept, kept), _CapabilityWord(0, 0, 0))
    number = ctypes.c_ulong

    def check(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), "could not set the child's privileges")

    def drop() -> None:
        if keep_search:
            # Else the change of user takes the capability away, and access(2), by which initdb looks for its
            # fellow programs, does not count it.
            fixup = number(_SECBIT_NO_SETUID_FIXUP)
            check(libc.prctl(_PR_SET_SECUREBITS, fixup, number(0), number(0), number(0)))
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
        check(libc.capset(ctypes.byref(header), ctypes.byref(words)))
        if keep_search:
            search = number(CAP_DAC_READ_SEARCH)
            check(libc.prctl(_PR_CAP_AMBIENT, number(_PR_CAP_AMBIENT_RAISE), search, number(0), number(0)))
        check(libc.prctl(_PR_SET_NO_NEW_PRIVS, number(1), number(0), number(0), number(0)))

    return drop


def can_read(account: Account, paths: Sequence[Path]) -> bool:
    """Whether `account`, without any capability, can read every one of `paths`. Asked by trying."""
    script = 'for path in "$@"; do test -r "$path" || exit 1; done'
    tried = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *map(str, paths)],
        preexec_fn=become(account, keep_search=False),
        cwd="/",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return tried.returncode == 0
