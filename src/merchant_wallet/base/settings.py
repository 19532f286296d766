"""The table of all settings, each with its parser, its rule and its documentation.

Every setting is one field of `Settings` or, for a chain, of `chain_settings`. The operators' table is
generated from them. Names and texts contain the units. Nothing here reads a file, the environment or a clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from merchant_wallet.base.chain_settings import ChainSettings, list_chain_settings, make_chain_settings
from merchant_wallet.base.chains import CODES, DEFAULT_CODES
from merchant_wallet.base.money import format_rate, format_units, parse_units
from merchant_wallet.base.outbound import (
    Exemption,
    Outbound,
    Proxies,
    read_no_proxy,
    read_proxies,
    show_no_proxy,
)
from merchant_wallet.base.setting_types import (
    LOOPBACK,
    Network,
    Setting,
    one_of,
    parse_key,
    read_cell_urls,
    read_chains,
    read_colour,
    read_contact,
    read_database_url,
    read_flag,
    read_hook_url,
    read_mail_address,
    read_networks,
    read_origin,
    read_path,
    read_share,
    read_text,
    read_url,
    show_chains,
    show_networks,
    show_plain,
    whole_number,
)
from merchant_wallet.base.webhooks import parse_secret

_KEY: Final = "setting"


def _setting(
    default: object,
    parse: Callable[[str], object],
    rule: str,
    text: str,
    *,
    secret: bool = False,
    in_file: bool = True,
    show: Callable[[Any], str] = show_plain,
) -> Any:
    """One field of the table. `Any`, because a dataclass field stands where its value will be."""
    setting = Setting(default, parse, rule, text, secret, in_file, show)
    return field(default=default, repr=not secret, metadata={_KEY: setting})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, parsed and checked. Names and texts contain the units; money is in units of 10^-6."""

    database_url: str | None = _setting(
        None,
        read_database_url,
        "a URL that begins with postgresql://",
        "The PostgreSQL database, 15 or newer. Without it, `up` runs its own in the data folder. On another "
        "machine add `?sslmode=verify-full&sslrootcert=FILE`.",
        secret=True,
    )
    cell_urls: tuple[tuple[str, str], ...] = _setting(
        (),
        read_cell_urls,
        "name=postgresql://... for each cell, separated by spaces",
        "The URLs of cells that this process reaches as another user, or otherwise than home's list says.",
        secret=True,
    )
    master_key: bytes | None = _setting(
        None,
        parse_key,
        "64 hexadecimal digits",
        "The key that encrypts secrets at rest. Without it, one is created in the data folder.",
        secret=True,
    )
    data: Path = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        Path("wallet-data"), read_path, "a folder", "The data folder: own database, master key, checkpoints."
    )
    host: str = _setting(
        "127.0.0.1", read_text, "a host name or address", "The address that the HTTP server listens on."
    )
    port: int = _setting(
        8080,
        whole_number(0, 65535),
        "a whole number from 0 to 65535",
        "The port that the HTTP server listens on; 0 takes a free one.",
    )
    processes: int = _setting(
        1,
        whole_number(1, 32),
        "a whole number from 1 to 32",
        "How many web processes `serve` and `up` run on the port.",
    )
    public_url: str | None = _setting(
        None,
        read_origin,
        "an http:// or https:// URL without path and query",
        "The URL of the pages, at the root of a host; https:// outside the sandbox. Without it, WALLET_HOST "
        "and WALLET_PORT.",
    )
    runbook_url: str | None = _setting(
        None,
        read_url,
        "an http:// or https:// URL without query",
        "The page with the runbook that alerts link to. Without it, that of the documentation site, at "
        "WALLET_PUBLIC_URL. Name a page that is there while the service is not.",
    )
    security_contact: str | None = _setting(
        None,
        read_contact,
        "a URI that begins with mailto:, https:// or tel:",
        "Whom to tell about a vulnerability: `/.well-known/security.txt` names it. Without it, there is no "
        "such file.",
    )
    sandbox: bool = _setting(
        True,
        read_flag,
        "true or false",
        "Run on simulated chains that move no real money. Must be set if WALLET_DATABASE_URL is set.",
    )
    timestamp_tolerance_s: int = _setting(
        300,
        whole_number(1, 43200),
        "a whole number of seconds from 1 to 43200",
        "How many seconds a request's timestamp may be away from the server's clock.",
    )
    rate_limit: int = _setting(
        200,
        whole_number(0, 1_000_000),
        "a whole number from 0 to 1000000",
        "Requests a second from one merchant (bursts up to twice that). 0 is no limit.",
    )
    failed_auth_limit: int = _setting(
        20,
        whole_number(0, 1_000_000),
        "a whole number from 0 to 1000000",
        "Failed authentications a minute from one source (IPv6: /64) before it is refused. 0 is no limit.",
    )
    page_rate_limit: int = _setting(
        20,
        whole_number(0, 100_000),
        "a whole number from 0 to 100000",
        "Pages a second for one source address without a session (bursts up to 5 times that). 0 is no limit.",
    )
    source_connections: int = _setting(
        1024,
        whole_number(0, 8192),
        "a whole number from 0 to 8192",
        "Connections from one source (IPv6: /64). Trusted proxies have no limit. 0 is no limit.",
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        (),
        read_networks,
        "networks such as 10.0.0.0/8, separated by commas",
        "Trusted proxies. The client address is taken from their X-Forwarded-For header.",
    )
    callback_networks: tuple[Network, ...] = _setting(
        (),
        read_networks,
        "networks such as 10.0.0.0/8, separated by commas",
        "Private networks that callbacks may be sent to. In the sandbox loopback is allowed too.",
    )
    ca_file: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a file in PEM",
        "Certificates that are trusted besides those of the system, for all connections to others.",
    )
    proxies: Proxies = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        (),
        read_proxies,
        "destination=URL, separated by spaces; a destination is callbacks, nodes, screening, backups or all; "
        "a URL begins with http:// or https://, or is direct",
        "The HTTP proxies that connections go through. Without it, they are direct.",
        secret=True,
    )
    no_proxy: tuple[Exemption, ...] = _setting(
        (),
        read_no_proxy,
        "host names and networks, separated by commas",
        "What is reached without a proxy: these hosts, all names below them, and these networks.",
        show=show_no_proxy,
    )
    proxy_names: bool = _setting(
        False,
        read_flag,
        "true or false",
        "Give the proxy of callbacks host names, which it looks up again, and not addresses.",
    )
    proxy_unknown_names: bool = _setting(
        False,
        read_flag,
        "true or false",
        "Give the proxy of callbacks the names that can't be found here, for a network without names of the "
        "Internet. The proxy alone keeps them from internal addresses.",
    )
    approval_deadline_s: int = _setting(
        86400,
        whole_number(1, 31_536_000),
        "a whole number of seconds from 1 to 31536000",
        "How many seconds a withdrawal order waits for an operator's approval before it expires.",
    )
    sandbox_two_people: bool = _setting(
        False,
        read_flag,
        "true or false",
        "Require two people in the sandbox too. Outside the sandbox they are always required.",
    )
    operator_wait_s: int = _setting(
        86400,
        whole_number(0, 2_592_000),
        "a whole number of seconds from 0 to 2592000",
        "Seconds before approvals and proposals of a new, reset, enabled or promoted operator count.",
    )
    secret_wait_s: int = _setting(
        86400,
        whole_number(0, 2_592_000),
        "a whole number of seconds from 0 to 2592000",
        "Seconds before who made a merchant's key or secret may approve that merchant's withdrawals.",
    )
    approval_day_limit: int | None = _setting(
        None,
        parse_units,
        "an amount with at most 6 decimals",
        "How much USDT one person may approve in withdrawals on a UTC day. Without it, no limit.",
    )
    proposal_deadline_s: int = _setting(
        604_800,
        whole_number(60, 31_536_000),
        "a whole number of seconds from 60 to 31536000",
        "How many seconds a proposal can be accepted.",
    )
    rate_band: int = _setting(
        5_000_000,
        read_share,
        "a percentage such as 5%, or a number from 0 to 1 with at most 8 decimals",
        "How far one person may move a rate or fee in 24 hours: 5% (or 0.05) of a rate, "
        "5 percentage points of a fee.",
        show=format_rate,
    )
    exchange_position_limit: int | None = _setting(
        None,
        parse_units,
        "an amount with at most 6 decimals",
        "The largest position of the exchange desk per merchant, in USDT or KFB. Without it, no limit.",
    )
    queue_limit: int = _setting(
        4096,
        whole_number(1, 1_000_000),
        "a whole number from 1 to 1000000",
        "Commands that may wait for one merchant's book. Further ones are refused at once.",
    )
    batch_limit: int = _setting(
        512,
        whole_number(2, 512),
        "a whole number from 2 to 512",
        "The most commands that one database transaction may contain.",
    )
    connections: int = _setting(
        16,
        whole_number(1, 200),
        "a whole number from 1 to 200",
        "Connections for batches that lock their book first. Groups have the same number, but at most 12.",
    )
    hold_refunds: bool = _setting(
        False,
        read_flag,
        "true or false",
        "Refund a failed withdrawal only after an operator confirms it.",
    )
    payout_builds: int = _setting(
        5,
        whole_number(1, 100),
        "a whole number from 1 to 100",
        "How many transfers are signed for one withdrawal if each expires, is refused or ends without "
        "effect. After that the order waits.",
    )
    gap_fill_s: int = _setting(
        60,
        whole_number(1, 86_400),
        "a whole number of seconds from 1 to 86400",
        "Seconds after which an unused nonce is cancelled, if later payouts wait for it.",
    )
    sandbox_chains: tuple[str, ...] = _setting(
        DEFAULT_CODES,
        read_chains,
        f"one or more of {', '.join(CODES)}, separated by commas",
        "The chains that the sandbox simulates.",
        show=show_chains,
    )
    sandbox_confirm_ms: int = _setting(
        1500,
        whole_number(0, 3_600_000),
        "a whole number of milliseconds from 0 to 3600000",
        "Milliseconds after which the sandbox chain confirms a transfer.",
    )
    log_level: str = _setting(
        "info",
        one_of("debug", "info", "warning", "error"),
        "one of debug, info, warning, error",
        "The least severe lines that are logged.",
    )
    log_format: str | None = _setting(
        None,
        one_of("json", "console"),
        "json or console",
        "The form of log lines. Without it, console if stderr is a terminal, else json.",
    )
    drain_timeout_s: int = _setting(
        20,
        whole_number(0, 3600),
        "a whole number of seconds from 0 to 3600",
        "How many seconds a stopping service waits for running requests, and for the turns of its workers.",
    )
    unready_s: int = _setting(
        0,
        whole_number(0, 3600),
        "a whole number of seconds from 0 to 3600",
        "How many seconds a stopping `serve` still answers everything while `/readyz` says 503.",
    )
    checkpoint_dir: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a folder",
        "The folder of signed checkpoints. Without it, checkpoints in the data folder.",
    )
    archive_dir: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a folder",
        "The folder of archived months. Without it, archive in the data folder.",
    )
    checkpoint_key: bytes | None = _setting(
        None,
        parse_key,
        "64 hexadecimal digits, never in the settings file",
        "The private key that signs checkpoints, for workers only. The web side refuses to start with it.",
        secret=True,
        in_file=False,
    )
    checkpoint_key_file: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a file",
        "The file with the private key of checkpoints, for workers only. Without it, checkpoint.key in the "
        "data folder.",
    )
    backup_url: str | None = _setting(
        None,
        read_text,
        "a folder's path or s3://bucket/prefix",
        "Where `up` stores the WAL of its own PostgreSQL, and `backup` its back-ups. Without it, nowhere.",
    )
    backup_key_file: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a file",
        "The file with the keys of back-ups: recipients to make them, an identity to restore them.",
    )
    smtp_host: str | None = _setting(
        None,
        read_text,
        "a host name or address",
        "The mail server for notifications to operators. Without it, no mail is sent.",
    )
    smtp_port: int = _setting(
        587, whole_number(1, 65535), "a whole number from 1 to 65535", "The port of the mail server."
    )
    smtp_tls: str = _setting(
        "starttls",
        one_of("starttls", "tls", "none"),
        "one of starttls, tls, none",
        "How the connection is encrypted: after a greeting (port 587), from the start (465), or not at all.",
    )
    smtp_user: str | None = _setting(
        None, read_text, "a text", "The name for the mail server. Without it, nobody signs in there."
    )
    smtp_password: str | None = _setting(
        None, read_text, "a text", "The password for the mail server. Only workers need it.", secret=True
    )
    smtp_from: str | None = _setting(
        None,
        read_mail_address,
        "an address such as wallet@example.com",
        "The address that mail comes from. It is needed with WALLET_SMTP_HOST.",
    )
    smtp_ca_file: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a file",
        "The certificates that judge the mail server's. Without it, those of the system.",
    )
    deposit_minimum: int = _setting(
        1_000_000,
        parse_units,
        "an amount with at most 6 decimals",
        "Smaller deposits, in USDT, are credited when their sum at the address reaches this amount.",
        show=format_units,
    )
    web_user: str | None = _setting(
        None,
        read_text,
        "a user's name or number",
        "The user of the web side if root runs `up`. Without it, a number that no other user has.",
    )
    worker_user: str | None = _setting(
        None,
        read_text,
        "a user's name or number",
        "The user of the worker side if root runs `up`. Without it, a number that no other user has.",
    )
    keystore_passphrase_file: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a file",
        "The file with the passphrase of the keystore. Only workers and signer need it.",
    )
    keystore_passphrase: str | None = _setting(
        None,
        read_text,
        "a text, never in the settings file",
        "The passphrase of the keystore, if no file can hold it. The web side refuses to start with it.",
        secret=True,
        in_file=False,
    )
    signer_socket: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a socket's path",
        "The socket of `merchant-wallet signer`. With it, workers have no key and ask that process.",
    )
    signer_payment_limit: int = _setting(
        10_000_000_000,
        parse_units,
        "an amount with at most 6 decimals",
        "The most that the signer pays in one transfer, in USDT. An order above it waits. Fees and transfers "
        "to a cold wallet do not count.",
        show=format_units,
    )
    signer_hour_limit: int = _setting(
        100_000_000_000,
        parse_units,
        "an amount with at most 6 decimals",
        "The most that the signer pays within an hour, in USDT, all chains together. A replacement at the "
        "same nonce does not count again; what is signed again on TRON does.",
        show=format_units,
    )
    reconcile_interval_s: int = _setting(
        600,
        whole_number(0, 86_400),
        "a whole number of seconds from 0 to 86400",
        "Seconds between two scheduled reconciliations by the workers. 0 switches them off.",
    )
    metrics_networks: tuple[Network, ...] = _setting(
        LOOPBACK,
        read_networks,
        "networks such as 10.0.0.0/8, separated by commas",
        "Networks that may read `/metrics`. Everyone else gets 404.",
        show=show_networks,
    )
    metrics_port: int = _setting(
        0,
        whole_number(0, 65535),
        "a whole number from 0 to 65535",
        "The port on which the worker side serves `/metrics`, at WALLET_HOST. 0 switches it off. Further "
        "workers of a machine take the next free one of the nine ports after it.",
    )
    traces_url: str | None = _setting(
        None,
        read_origin,
        "an http:// or https:// URL without path and query",
        "The collector that traces are sent to, as OTLP over HTTP. Without it, there are no traces.",
    )
    traces_share: int = _setting(
        100_000,
        read_share,
        "a percentage such as 5%, or a number from 0 to 1 with at most 8 decimals",
        "The share of requests that is traced, besides those that their callers trace.",
        show=format_rate,
    )
    screening_url: str | None = _setting(
        None,
        read_hook_url,
        "an https:// URL (http:// for this machine)",
        "The URL that is asked before a payout is signed and before a deposit is credited. Without it, none.",
    )
    screening_secret: str | None = _setting(
        None,
        parse_secret,
        "Base64 of 24 to 64 bytes, with or without whsec_",
        "The secret that signs questions to WALLET_SCREENING_URL and its answers. For workers only.",
        secret=True,
    )
    screening_timeout_ms: int = _setting(
        3000,
        whole_number(100, 8000),
        "a whole number of milliseconds from 100 to 8000",
        "How long an answer of WALLET_SCREENING_URL may take.",
    )
    screening_fail_open: bool = _setting(
        False,
        read_flag,
        "true or false",
        "Pay and credit when WALLET_SCREENING_URL gives no answer, unless its last one held or refused"
        " the same. Otherwise orders and deposits wait.",
    )
    screening_list: Path | None = _setting(  # noqa: RUF009 - the call makes a dataclass field.
        None,
        read_path,
        "a file",
        "A list of addresses that are held or refused. It is read again when it changes.",
    )
    sweep_share: int = _setting(
        1_000_000,
        read_share,
        "a percentage such as 5%, or a number from 0 to 1 with at most 8 decimals",
        "The largest cost of a sweep, as a part of the swept amount, such as 1% (or 0.01).",
        show=format_rate,
    )
    sweep_minimum: int = _setting(
        20_000_000,
        parse_units,
        "an amount with at most 6 decimals",
        "Deposit addresses with less than this many USDT are not swept.",
        show=format_units,
    )
    invoice_issuer: str = _setting(
        "",
        read_text,
        "a name and an address; a semicolon begins a new line",
        "Who issues the invoices of fees: stands on each. Without it, an invoice names the service alone.",
    )
    invoice_tax_id: str = _setting(
        "",
        read_text,
        "a text",
        "The tax id of who issues the invoices of fees.",
    )
    invoice_due_days: int = _setting(
        0,
        whole_number(0, 365),
        "a whole number from 0 to 365",
        "The due date of an invoice of fees: so many days after it is issued.",
    )
    brand_colour: str | None = _setting(
        None,
        read_colour,
        "a colour such as #8a1538",
        "The colour of the platform's own PDF documents: invoices, reports and statements. It is made dark"
        " enough to be read.",
    )
    sweep_at_once: int = _setting(
        10,
        whole_number(1, 1000),
        "a whole number from 1 to 1000",
        "How many sweeps may be under way on one chain.",
    )

    chains: Mapping[str, ChainSettings] = field(default_factory=lambda: make_chain_settings({}))

    @property
    def outbound(self) -> Outbound:
        """Whom connections to others trust, and the proxies that they go through."""
        return Outbound(self.ca_file, self.proxies, self.no_proxy)

    @property
    def open_chains(self) -> tuple[str, ...]:
        """The chains for deposits and withdrawals. Outside the sandbox: those with configured nodes."""
        if self.sandbox:
            return self.sandbox_chains
        return tuple(code for code, chain in self.chains.items() if chain.rpc)

    @property
    def shown_chains(self) -> tuple[str, ...]:
        """The chains that are shown: the default ones, in use or not, and the others if in use."""
        return tuple(code for code in CODES if code in DEFAULT_CODES or code in self.open_chains)

    @property
    def pages_url(self) -> str:
        """The URL of the pages, as a process knows it from the settings."""
        return self.public_url or f"http://{self.host}:{self.port}"

    @property
    def runbook_page(self) -> str:
        """The page with the runbook."""
        return self.runbook_url or f"{self.pages_url}/docs/operating/trouble/"

    @property
    def mode(self) -> str:
        """`sandbox` or `live`, for people and machines."""
        return "sandbox" if self.sandbox else "live"

    @property
    def mode_line(self) -> str:
        """The line about the mode at a start."""
        return f"mode: {self.mode}, {'no real money moves' if self.sandbox else 'real money moves'}"

    @property
    def needs_two_people(self) -> bool:
        """Whether two people are needed to change what protects money, and new operators must wait."""
        return self.sandbox_two_people or not self.sandbox

    @property
    def operator_wait_ms(self) -> int:
        """How long an operator's approvals do not count (see `operators.waits`)."""
        return self.operator_wait_s * 1000 if self.needs_two_people else 0

    @property
    def secret_wait_ms(self) -> int:
        """How long who made a merchant's secret may not approve its orders (`operators.order_approvals`)."""
        return self.secret_wait_s * 1000 if self.needs_two_people else 0

    @property
    def checkpoint_folder(self) -> Path:
        """The folder of signed checkpoints, outside the database."""
        return self.checkpoint_dir or self.data / "checkpoints"

    @property
    def archive_folder(self) -> Path:
        """The folder of archived months."""
        return self.archive_dir or self.data / "archive"

    @property
    def checkpoint_key_path(self) -> Path:
        """The file with the private key of checkpoints, unless the key is set. Only workers read it."""
        return self.checkpoint_key_file or self.data / "checkpoint.key"


SETTINGS: Final[Mapping[str, Setting]] = {
    entry.name: entry.metadata[_KEY] for entry in fields(Settings) if _KEY in entry.metadata
} | list_chain_settings()
"""Every setting by its name, in the order of the operators' table."""


def make_settings(values: Mapping[str, Any]) -> Settings:
    """The settings with these values, by their names; every other one has its default."""
    own = {name: value for name, value in values.items() if name not in list_chain_settings()}
    return Settings(**own, chains=make_chain_settings(values))
