"""A program that makes a server of the cells' demo and is interrupted at one step, as by Ctrl-C.

Argument: `initdb` (while the folder is made), `start` (before the server answers), or `destructor` (where
Python swallows the interrupt). It prints whether it was interrupted.
"""

import os
import signal
import sys
import threading

from demo import signals
from demo.cells.servers import Server, Servers

INITDB_BEGINS_S = 0.2


def main(step: str) -> None:
    signals.catch_first_signal()
    servers = Servers()
    if step == "initdb":
        threading.Timer(INITDB_BEGINS_S, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        answers = Server._answers

        class Swallowing:
            def __del__(self) -> None:
                signal.raise_signal(signal.SIGINT)

        def interrupt(server: Server) -> bool:
            if step == "destructor":
                Swallowing()
            else:
                signal.raise_signal(signal.SIGINT)
            return answers(server)

        Server._answers = interrupt  # type: ignore[method-assign,assignment]
    try:
        servers.add("one")
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        servers.remove()


if __name__ == "__main__":
    main(sys.argv[1])
