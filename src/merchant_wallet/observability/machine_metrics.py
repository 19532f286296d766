"""The metrics of what one process has of its machine: processor, memory, files and disks. Pure.

Rules: as in `process_metrics`.
"""

from typing import Final

from merchant_wallet.observability.metric_rows import Alert, Metric

_OURS: Final = "and on (instance, process) wallet_build_info"
_FREE: Final = "wallet_disk_free_bytes / wallet_disk_size_bytes"

DISKS: Final = (
    Metric(
        "wallet_disk_free_bytes",
        ("process", "folder"),
        "Free room on the disk of the data folder (`data`) and of the checkpoints (`checkpoints`)",
        (
            Alert(
                "WalletDiskLow",
                "below 15 % of `wallet_disk_size_bytes`",
                f"{_FREE} < 0.15",
                "ticket",
                "5m",
                says="{share} of the disk below the folder {folder} is free",
                means="Merchants are served. A full disk stops the service, and the database if it is there.",
                first="Make room, or enlarge the disk. The disk of a PostgreSQL of your own is not among "
                "these: watch it on its machine.",
            ),
            Alert(
                "WalletDiskFull",
                "below 5 % of `wallet_disk_size_bytes`",
                f"{_FREE} < 0.05",
                "page",
                "1m",
                says="Only {share} of the disk below the folder {folder} is free",
                means="When it is full, nothing is committed: merchants' requests get 50300 and nothing "
                "is paid.",
                first="Make room on that disk now: old logs and back-ups first, never the data folder. Then "
                "run `book verify`. The disk of a PostgreSQL of your own is not among these: watch it "
                "on its machine.",
            ),
        ),
    ),
    Metric("wallet_disk_size_bytes", ("process", "folder"), "Size of these disks"),
)
"""Gauges that this program computes."""

PROCESS: Final = (
    Metric("process_cpu_seconds", ("process",), "Processor time that the process has used"),
    Metric("process_resident_memory_bytes", ("process",), "Memory that the process has"),
    Metric("process_virtual_memory_bytes", ("process",), "Address space that the process has"),
    Metric(
        "process_start_time_seconds",
        ("process",),
        "When the process was started, in seconds since 1970",
        (
            Alert(
                "WalletRestarts",
                "changes more than 3 times in 15 minutes",
                f"changes(process_start_time_seconds[15m]) > 3 {_OURS}",
                "ticket",
                says="A process was started {count} times in 15 minutes",
                means="Merchants' calls to it are cut off each time. If it is `work`, payouts and "
                "callbacks are late.",
                first="The last lines of its log say why it ends.",
            ),
        ),
    ),
    Metric(
        "process_open_fds",
        ("process",),
        "Files and connections that the process has open",
        (
            Alert(
                "WalletFilesRunOut",
                "above 80 % of `process_max_fds`",
                f"process_open_fds / process_max_fds > 0.8 {_OURS}",
                "ticket",
                "5m",
                says="{share} of the files that a process may open are open",
                means="Without room new connections of merchants are closed.",
                first="Raise the limit of open files (`LimitNOFILE` in the unit) and restart the process.",
            ),
        ),
    ),
    Metric("process_max_fds", ("process",), "How many files and connections the process may have open"),
)
"""What `prometheus_client` reads of the process from Linux. `process_cpu_seconds` is seen with `_total`."""
