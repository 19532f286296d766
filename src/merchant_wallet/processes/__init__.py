"""The processes of the service, and the code that connects the other packages in each of them.

up: all of them on one machine · web: answers requests · worker: pays, watches chains, sends callbacks ·
side_process: the entry point of a child of `up` · app: what web and worker have in common.

Rules: this package has no rule about money. Only the command line imports it.
"""
