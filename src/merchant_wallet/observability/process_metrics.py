"""The metrics of one process: what it does, how it is, and how it is set. Pure.

Rules:
- Counters and histograms of several processes are added up.
- Gauges have the label `process`, so that the values of several processes can stand on one page. A value of
  one process says nothing about another.
"""

from typing import Final

from merchant_wallet.observability.metric_rows import Alert, Metric

_AHEAD: Final = "abs(wallet_clock_ahead_seconds)"
_ALL: Final = "sum(rate(wallet_requests_total[5m]))"


def _share(code: int) -> str:
    return f'sum(rate(wallet_requests_total{{code="{code}"}}[5m])) / ({_ALL} > 0)'


_NOT_SCRAPED: Final = (
    "(count(last_over_time(wallet_build_info[1d])) unless count(wallet_build_info))"
    " or absent(last_over_time(wallet_build_info[1d]))"
)
_REFUSED: Final = (
    'sum by (code) (rate(wallet_requests_total{code=~"4....",code!~"42900|40102"}[5m]))'
    f" / on () group_left () ({_ALL} > 0) > 0.3"
)

COUNTERS: Final = (
    Metric(
        "wallet_requests",
        ("operation", "code"),
        "Requests answered, by operation and code",
        (
            Alert(
                "WalletRequestsFail",
                "more than 1 % are 50000",
                f"{_share(50000)} > 0.01",
                "page",
                "5m",
                says="{share} of requests are answered 50000",
                means="Merchants' calls fail by a fault of the service. They repeat them; nothing moves "
                "twice.",
                first="Search the log of the web processes for `request failed` and `command failed`: the "
                "lines have the cause and the request's id.",
            ),
            Alert(
                "WalletUnavailable",
                "more than 1 % are 50300",
                f"{_share(50300)} > 0.01",
                "page",
                "2m",
                says="{share} of requests are answered 50300",
                means="Merchants' calls are not served and must be repeated later. No money is lost.",
                first="`doctor` says whether the database answers and which programs run. Repair what is "
                "wrong there. If all is well, one merchant fills its queue: go on as for "
                "WalletQueueFull.",
            ),
            Alert(
                "WalletRequestsLimited",
                "more than 10 % are 42900",
                f"{_share(42900)} > 0.1",
                "ticket",
                "15m",
                says="{share} of requests are answered 42900",
                means="A merchant sends more than it may, and its further calls wait. Others are served.",
                first='Lines of the log with `"code":42900` name the merchant (`merchant_id`). Raise its '
                "limit with `merchant set MERCHANT --rate-limit N`, or tell it to slow down.",
            ),
            Alert(
                "WalletTimestampsRefused",
                "more than 2 % are 40102",
                f"{_share(40102)} > 0.02",
                "ticket",
                "5m",
                says="{share} of requests are answered 40102",
                means="Calls are refused because a clock is wrong: the merchant's, or ours.",
                first="`doctor` compares our clocks with the database's. If they are right, lines of the "
                'log with `"code":40102` name the merchant (`merchant_id`): tell it to set its clock.',
            ),
            Alert(
                "WalletRequestsRefused",
                "more than 30 % have one code of 4xxxx",
                _REFUSED,
                "ticket",
                "15m",
                says="{share} of requests are refused with {code}",
                means="An integration is broken: its calls are refused with one code again and again.",
                first="Lines of the log with this code name the merchant (`merchant_id`) and the request. "
                "`explain CODE` says what the code means, the merchant's page of requests what was "
                "wrong with each. Tell the merchant.",
            ),
        ),
    ),
    Metric("wallet_groups", (), "Groups that were committed, each one database transaction"),
    Metric("wallet_batches", (), "Batches that were committed: one book's commands in a group"),
    Metric("wallet_batch_commands", (), "Commands in the batches that were committed"),
    Metric(
        "wallet_optimistic_batches",
        (),
        "Batches that were committed without a read, because all their rows were cached",
    ),
    Metric(
        "wallet_forwarded_commands",
        (),
        "Commands that web processes gave to the process of their `serve` that has the book",
    ),
    Metric(
        "wallet_signer_refusals",
        (),
        "Signatures that workers asked for and the signer refused",
        (
            Alert(
                "WalletSignerRefuses",
                "grows",
                "sum(increase(wallet_signer_refusals_total[15m])) > 0",
                "page",
                says="Signatures that the signer refused in 15 minutes: {count}",
                means="Payouts wait that the signer does not sign: a limit is reached, or somebody asks "
                "for what must not be signed.",
                first="The log of `signer`, or of `work` without one, says why. If a limit is reached by "
                "good payouts, raise WALLET_SIGNER_PAYMENT_LIMIT or WALLET_SIGNER_HOUR_LIMIT and "
                "restart it. Otherwise type `wallets stop CHAIN --reason TEXT`, and find out who "
                "asks.",
            ),
        ),
    ),
    Metric(
        "wallet_node_calls",
        ("node", "purpose"),
        "Calls that workers sent to a node, each of a batch, for payouts and sweeps, for what is signed, "
        "or for reading",
    ),
    Metric(
        "wallet_node_wait_seconds",
        ("node",),
        "What calls to a node waited for their turns, all together: for its limits and for a connection",
    ),
    Metric(
        "wallet_node_rests",
        ("node",),
        "How often a node was left alone for a while, because it refused calls (HTTP 429, 403, 503)",
    ),
)
"""Counters, which only grow while a process lives. Prometheus sees them with `_total`."""

HISTOGRAM: Final = Metric(
    "wallet_request_seconds",
    ("operation",),
    "Time that requests took, in buckets that double",
    (
        Alert(
            "WalletRequestsSlow",
            "more than 1 % take longer than 0.256 s",
            '1 - sum(rate(wallet_request_seconds_bucket{le="0.256"}[5m])) '
            "/ (sum(rate(wallet_request_seconds_count[5m])) > 0) > 0.01",
            "ticket",
            "10m",
            says="{share} of requests take longer than 0.256 s",
            means="Merchants wait for answers. Nothing fails yet.",
            first="Look at the database first. `doctor` counts its sessions. In psql, `select "
            "wait_event_type, wait_event, query from pg_stat_activity where state = 'active'` shows "
            "what they wait for: `Lock` is another session, `IO` the disk.",
        ),
    ),
)

GAUGES: Final = (
    Metric(
        "wallet_build_info",
        ("process", "version", "python", "mode"),
        "Always 1. The labels are the version of the program and of Python, and the mode: sandbox or live",
        (
            Alert(
                "WalletNotScraped",
                "absent",
                _NOT_SCRAPED,
                "page",
                "5m",
                says="Prometheus gets no metrics of the service",
                means="Nobody knows whether merchants are served: no other alert can fire.",
                first="Type `curl -i http://HOST:PORT/metrics` on Prometheus's machine, for a target. No "
                "connection: start `serve` and `work`. 404: WALLET_METRICS_NETWORKS does not admit "
                "that machine. 200: the target is missing in prometheus.yml.",
            ),
            Alert(
                "WalletProcessDown",
                "of a target that was there in the last day and does not answer now",
                "up == 0 and on (instance) max_over_time(wallet_build_info[1d])",
                "page",
                "2m",
                says="A process does not answer",
                means="The other processes serve merchants. If it was the only `work`, payouts, deposits "
                "and callbacks stand still.",
                first="Start that process; its log says why it ended. If it was taken away for good, remove "
                "the target.",
            ),
            Alert(
                "WalletVersionsDiffer",
                "of two versions for an hour",
                "count(count by (version) (wallet_build_info)) > 1",
                "ticket",
                "1h",
                says="{count} versions of the program have run for an hour",
                means="Merchants are served, by two versions. An upgrade was not finished.",
                first="`doctor` counts the programs of each version. Finish the upgrade, or go back to the "
                "version before on every machine.",
            ),
        ),
    ),
    Metric(
        "wallet_sandbox",
        ("process",),
        "1 in a sandbox, which moves no real money; 0 in a live service. For a service that should pay real "
        "money set WALLET_SANDBOX=false, with a database that no sandbox has used",
    ),
    Metric(
        "wallet_setting",
        ("process", "setting"),
        "Settings that other metrics are compared with, by their names",
    ),
    Metric(
        "wallet_requests_under_way",
        ("process",),
        "Requests that this process has not answered yet",
        (
            Alert(
                "WalletRequestsPileUp",
                "above 1000 for 5 minutes",
                "min_over_time(wallet_requests_under_way[5m]) > 1000",
                "ticket",
                says="{count} requests wait for their answers",
                means="Merchants wait, and will soon be refused with 50300.",
                first="`doctor` says whether the database answers. If it does, go on as for "
                "WalletRequestsSlow.",
            ),
        ),
    ),
    Metric(
        "wallet_commands_waiting",
        ("process",),
        "Commands that wait in this process, in the queues of all books",
        (
            Alert(
                "WalletQueueFull",
                "above 80 % of WALLET_QUEUE_LIMIT",
                "wallet_commands_waiting > on (instance, process) group_left () "
                '(0.8 * wallet_setting{setting="WALLET_QUEUE_LIMIT"})',
                "page",
                "1m",
                says="{count} commands wait in the books' queues, more than 80 % of the limit",
                means="When the queue is full, merchants' calls are refused with 50300.",
                first="`doctor` says whether the database answers. If it does, count the log's lines of "
                "requests by `merchant_id`. One merchant sends most of them: lower its limit with "
                "`merchant set MERCHANT --rate-limit N`. All do: go on as for WalletRequestsSlow.",
            ),
        ),
    ),
    Metric(
        "wallet_database_up",
        ("process",),
        "1 if the database answered the query for these metrics in time, else 0",
        (
            Alert(
                "WalletDatabaseDown",
                "0",
                "wallet_database_up == 0",
                "page",
                "1m",
                says="The database does not answer",
                means="Merchants' requests get 50300, and nothing is paid or credited. Nothing is lost.",
                first="`doctor` says what is wrong. Start PostgreSQL, or repair the way to it. Nothing else "
                "is needed: the processes connect again.",
            ),
        ),
    ),
    Metric(
        "wallet_clock_ahead_seconds",
        ("process",),
        "How far the clock of this process is ahead of the database's; behind it if negative",
        (
            Alert(
                "WalletClockDiffers",
                "more than 2 s",
                f"{_AHEAD} > 2",
                "ticket",
                "5m",
                says="A clock differs by {duration} from the database's",
                means="Nothing is refused yet. Beyond 30 s good calls would be.",
                first="`doctor` names the process. Set the clock of its machine by NTP (`chronyc tracking`, "
                "`timedatectl`). If all processes say the same number, it is the database's machine.",
            ),
            Alert(
                "WalletClockWrong",
                "more than 30 s",
                f"{_AHEAD} > 30",
                "page",
                "1m",
                says="A clock differs by {duration} from the database's",
                means="Merchants' good calls are refused with 40102 there, or would be: the process is "
                "not ready.",
                first="`doctor` names the process. Set the clock of its machine by NTP (`chronyc tracking`, "
                "`timedatectl`). If all processes say the same number, it is the database's machine.",
            ),
        ),
    ),
    Metric(
        "wallet_runbook_info",
        ("process", "url"),
        "Always 1. The label is the page of the runbook (WALLET_RUNBOOK_URL), which alerts link to",
    ),
    Metric(
        "wallet_platform_shown",
        ("process",),
        "1 if this process shows the metrics of the platform, else 0. Of all processes that are scraped, one "
        "shows them",
        (
            Alert(
                "WalletPlatformNotShown",
                "0 in all processes",
                "sum(wallet_platform_shown) < 1",
                "page",
                "5m",
                says="No process reads the platform's metrics",
                means="Merchants may be served. No alert about money can fire.",
                first="`doctor` says whether the database answers. If it does, the log has `metrics without "
                "the database` with the reason.",
            ),
        ),
    ),
    Metric(
        "wallet_rollback_evidence_found",
        ("process",),
        "Evidence of a rollback that this process found in its last comparison of the checkpoints",
        (
            Alert(
                "WalletRollbackEvidenceFound",
                "not 0",
                "wallet_rollback_evidence_found > 0",
                "page",
                "5m",
                says="Books or logs that a comparison found behind their checkpoints: {count}",
                means="Payouts, sweeps and expiries stop as soon as a `work` has stored it.",
                first="`doctor` lists what is behind, and says whether a worker runs: only a `work` stores "
                "evidence. Then go on as for WalletRollbackEvidence.",
            ),
        ),
    ),
)
"""Gauges: the value at the time of the request."""
