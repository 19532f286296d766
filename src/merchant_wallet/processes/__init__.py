"""The processes of the service, and the code that connects the other rooms in each of them.

up: all of them on one machine · web: answers requests · worker: pays, watches chains, sends callbacks ·
side_process: the entry point of a child of `up` · app: what web and worker have in common.

Rules: no rule about money lives here. Nobody but the command line imports this room.
"""
