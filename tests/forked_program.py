"""A stand-in for the program `merchant-wallet` in a shell: what a script types runs in a forked process.

`write_program` makes it. It has the shell's arguments, variables, folder, file mask and streams, passes
signals on, and ends with the command's status.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.fork_server import fork_server
from tests.forked_commands import MODULE

FORK_SERVER: Final = "TESTS_FORK_SERVER"
"""The variable with the number of the descriptor, which the shell inherits."""
# Python is found by a shell, since a line of #! takes no path with a space.
PROGRAM: Final = f"""#!/bin/sh
'''exec' "{sys.executable}" -IS "$0" "$@"
' '''
import json, os, signal, socket, sys
ours, theirs = socket.socketpair()
mask = os.umask(0o77)
os.umask(mask)
order = [dict(os.environ), "{MODULE}", json.dumps(sys.argv[1:]), os.getcwd(), str(mask)]
server = socket.socket(fileno=int(os.environ["{FORK_SERVER}"]))
socket.send_fds(server, [json.dumps(order).encode()], [theirs.fileno(), 0, 1, 2])
theirs.close()
states = ours.makefile()
child = int(states.readline())
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, frame: os.kill(child, number))
status = int(states.readline())
sys.exit(status if status >= 0 else 128 - status)
"""


def write_program(folder: Path) -> tuple[Mapping[str, str], int]:
    """Make it in a folder. Returns the variable and the descriptor that a shell needs for it."""
    program = folder / "merchant-wallet"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    server = fork_server().fileno()
    return {FORK_SERVER: str(server)}, server
