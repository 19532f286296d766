"""The dashboard of machines: do requests get answers, and do processes have what they need? Pure."""

from typing import Final

from scripts.documents.panels import FIRING, GREEN, ORANGE, RATE, RED, Dashboard, Panel, Row, tile


def _quantile(share: float) -> str:
    buckets = f"sum by (le) (rate(wallet_request_seconds_bucket[{RATE}]))"
    return f"histogram_quantile({share}, {buckets})"


def _share_of(code: int) -> str:
    answered = f"sum(rate(wallet_requests_total[{RATE}]))"
    return f'sum(rate(wallet_requests_total{{code="{code}"}}[{RATE}])) / ({answered} > 0) or vector(0)'


MACHINES: Final = Dashboard(
    "wallet-machines",
    "merchant-wallet: machines",
    "Do requests get answers, and do processes have what they need?",
    (
        Row(
            "Now",
            (
                tile(
                    "Processes",
                    "count(wallet_build_info)",
                    "Processes that Prometheus reaches.",
                    ((0, RED), (2, GREEN)),
                ),
                FIRING,
                tile(
                    "Database",
                    "min(wallet_database_up)",
                    "Whether every process reaches it.",
                    ((0, RED), (1, GREEN)),
                    names=(("0", "away"), ("1", "up")),
                ),
                tile(
                    "Requests a second",
                    f"sum(rate(wallet_requests_total[{RATE}]))",
                    "Of all processes.",
                    (),
                    unit="reqps",
                ),
                tile(
                    "Not available",
                    _share_of(50300),
                    "Share of the answers that are 50300.",
                    ((0.001, ORANGE), (0.01, RED)),
                    unit="percentunit",
                ),
                tile(
                    "99 % are faster than",
                    _quantile(0.99),
                    "Of the requests of all operations.",
                    ((0.128, ORANGE), (0.256, RED)),
                    unit="s",
                ),
            ),
        ),
        Row(
            "Requests",
            (
                Panel(
                    "Requests by operation",
                    ((f"sum by (operation) (rate(wallet_requests_total[{RATE}]))", "{{operation}}"),),
                    "Of all processes together.",
                    unit="reqps",
                    stacks=True,
                ),
                Panel(
                    "Answers other than 200",
                    ((f'sum by (code) (rate(wallet_requests_total{{code!="200"}}[{RATE}]))', "{{code}}"),),
                    "40xxx and 42xxx are the clients'. 50000 is a fault of ours, 50300 a lack of something.",
                    unit="reqps",
                    stacks=True,
                ),
                Panel(
                    "Time of a request",
                    (
                        (_quantile(0.5), "half"),
                        (_quantile(0.95), "95 %"),
                        (_quantile(0.99), "99 %"),
                        (
                            f"sum(rate(wallet_request_seconds_sum[{RATE}])) / "
                            f"sum(rate(wallet_request_seconds_count[{RATE}]))",
                            "mean",
                        ),
                    ),
                    "Buckets double, so a quantile is at most one bucket too high.",
                    unit="s",
                ),
            ),
        ),
        Row(
            "Books",
            (
                Panel(
                    "Commits a second",
                    (
                        (f"sum(rate(wallet_groups_total[{RATE}]))", "groups"),
                        (f"sum(rate(wallet_batches_total[{RATE}]))", "batches"),
                        (f"sum(rate(wallet_batch_commands_total[{RATE}]))", "commands"),
                    ),
                    "A group is one transaction. It has a batch for each book, and a batch has commands.",
                    unit="ops",
                ),
                Panel(
                    "Commands in a group",
                    (
                        (
                            f"sum(rate(wallet_batch_commands_total[{RATE}])) / "
                            f"sum(rate(wallet_groups_total[{RATE}]))",
                            "commands",
                        ),
                    ),
                    "Larger groups mean that the database is the slower part.",
                ),
                Panel(
                    "Commands that wait",
                    (
                        ("max by (instance, process) (wallet_commands_waiting)", "{{instance}} {{process}}"),
                        ('max(wallet_setting{setting="WALLET_QUEUE_LIMIT"})', "limit of one book"),
                    ),
                    "Above the limit of a book its new requests get 50300.",
                ),
                Panel(
                    "Requests under way",
                    (("max by (instance, process) (wallet_requests_under_way)", "{{instance}} {{process}}"),),
                    "Begun and not answered yet.",
                    width=6,
                ),
                Panel(
                    "Clocks",
                    (
                        (
                            "max by (instance, process) (wallet_clock_ahead_seconds)",
                            "{{instance}} {{process}}",
                        ),
                    ),
                    "How far each is ahead of the database's. Beyond 30 s a process is not ready.",
                    unit="s",
                    width=6,
                ),
                Panel(
                    "Batches without a read",
                    (
                        (
                            f"sum(rate(wallet_optimistic_batches_total[{RATE}])) / "
                            f"sum(rate(wallet_batches_total[{RATE}]))",
                            "share",
                        ),
                    ),
                    "All their rows were cached. It falls if one merchant's requests go to many processes.",
                    unit="percentunit",
                    width=6,
                ),
                Panel(
                    "Refused signatures",
                    ((f"sum(increase(wallet_signer_refusals_total[{RATE}]))", "refused"),),
                    "The signer's limits, or somebody who should not ask.",
                    width=6,
                ),
            ),
        ),
        Row(
            "Processes",
            (
                Panel(
                    "Processor",
                    (
                        (
                            f"rate(process_cpu_seconds_total[{RATE}]) and on (instance, process) "
                            "wallet_build_info",
                            "{{instance}} {{process}}",
                        ),
                    ),
                    "1 is one processor. A process can't use more than one.",
                    unit="percentunit",
                    width=6,
                ),
                Panel(
                    "Memory",
                    (
                        (
                            "process_resident_memory_bytes and on (instance, process) wallet_build_info",
                            "{{instance}} {{process}}",
                        ),
                    ),
                    "Resident memory.",
                    unit="bytes",
                    width=6,
                ),
                Panel(
                    "Open files",
                    (
                        (
                            "process_open_fds / on (instance, process) process_max_fds "
                            "and on (instance, process) wallet_build_info",
                            "{{instance}} {{process}}",
                        ),
                    ),
                    "Share of the limit. Connections are files.",
                    unit="percentunit",
                    steps=((0.6, ORANGE), (0.8, RED)),
                    width=6,
                ),
                Panel(
                    "Time since the start",
                    (
                        (
                            "time() - (process_start_time_seconds and on (instance, process) "
                            "wallet_build_info)",
                            "{{instance}} {{process}}",
                        ),
                    ),
                    "A line that falls to 0 again and again is a process that ends.",
                    unit="s",
                    width=6,
                ),
            ),
        ),
        Row(
            "Platform",
            (
                Panel(
                    "Watchers behind, blocks",
                    (("max by (chain) (wallet_watcher_lag_blocks)", "{{chain}}"),),
                    "At the last comparison with the chain. Empty in a sandbox.",
                    width=8,
                ),
                Panel(
                    "Cells that answer",
                    (("max by (cell) (wallet_cell_up)", "{{cell}}"),),
                    "Empty if there is only the default cell.",
                    steps=((0, RED), (1, GREEN)),
                    width=8,
                ),
                Panel(
                    "Back-ups behind",
                    (("max(wallet_backup_behind_seconds)", "seconds"), ("max(wallet_backup_running)", "on")),
                    "What a lost disk would lose now. Empty without WALLET_BACKUP_URL.",
                    unit="s",
                    width=8,
                ),
                Panel(
                    "Free room on disks",
                    (
                        (
                            "wallet_disk_free_bytes / wallet_disk_size_bytes",
                            "{{instance}} {{process}} {{folder}}",
                        ),
                    ),
                    "Below the data folder and the checkpoints. A PostgreSQL of your own is not among these.",
                    unit="percentunit",
                    width=6,
                ),
                Panel(
                    "Certificate of the pages",
                    (("min(wallet_certificate_left_seconds)", "left"),),
                    "Until it ends. Empty without an https:// URL that workers reach.",
                    unit="s",
                    width=6,
                ),
                Panel(
                    "Standbys behind",
                    (("max by (standby) (wallet_standby_lag_seconds)", "{{standby}}"),),
                    "Empty without standbys, and for a role without pg_monitor.",
                    unit="s",
                    width=6,
                ),
                Panel(
                    "Archiving fails since",
                    (("max(wallet_archiver_behind_seconds)", "seconds"),),
                    "0 while it succeeds. Empty where PostgreSQL archives nothing by itself.",
                    unit="s",
                    steps=((300, RED),),
                    width=6,
                ),
                Panel(
                    "Ages of back-ups",
                    (
                        ("max(wallet_backup_base_age_seconds)", "newest base back-up"),
                        ("max(wallet_backup_verify_age_seconds)", "last good rehearsal"),
                    ),
                    "Infinite, which is not drawn, if there is none. Empty without WALLET_BACKUP_URL.",
                    unit="s",
                    width=8,
                ),
                Panel(
                    "Days of nonces ahead",
                    (("min(wallet_nonce_days_ahead)", "days"),),
                    "Without today's partition every request fails.",
                    steps=((0, RED), (1, GREEN)),
                    width=8,
                ),
                Panel(
                    "Ids left",
                    (
                        ("min(wallet_id_ranges_left)", "ranges"),
                        ("min(wallet_accounts_left)", "derived accounts"),
                    ),
                    "Both end after years. Derived accounts are made by `keys derive`.",
                    width=8,
                ),
            ),
        ),
    ),
)
