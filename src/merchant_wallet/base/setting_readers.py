"""Who reads each setting, and which must be the same in all processes. The operators' page is made from it.

- A setting that only workers read may be kept from everybody else.
- "The same" means: with different values the processes would contradict each other, in what they refuse, show
  or pay. Nothing checks that across machines; the page says which they are.
"""

from enum import StrEnum
from typing import Final

from merchant_wallet.base.chain_settings import list_chain_settings


class Reader(StrEnum):
    """What runs: `serve`, `work`, `signer`, or the `up` that starts the first two. In the page's order."""

    WEB = "web"
    WORKER = "worker"
    SIGNER = "signer"
    UP = "up"


_W: Final = frozenset({Reader.WEB})
_K: Final = frozenset({Reader.WORKER})
_S: Final = frozenset({Reader.SIGNER})
_U: Final = frozenset({Reader.UP})
_KEYS: Final = _K | _S

_OWN: Final = {
    "database_url": _W | _K | _U,
    "cell_urls": _W | _K | _U,
    "master_key": _W | _K,
    "data": _W | _K | _S | _U,
    "host": _W | _K,
    "port": _W,
    "public_url": _W | _K,
    "runbook_url": _W | _K,
    "security_contact": _W,
    "sandbox": _W | _K | _S,
    "timestamp_tolerance_s": _W | _K,
    "rate_limit": _W,
    "failed_auth_limit": _W,
    "page_rate_limit": _W,
    "source_connections": _W,
    "trusted_proxies": _W | _K,
    "callback_networks": _W | _K,
    "ca_file": _K | _U,
    "proxies": _K | _U,
    "no_proxy": _K | _U,
    "proxy_names": _K,
    "proxy_unknown_names": _K,
    "approval_deadline_s": _W | _K,
    "sandbox_two_people": _W,
    "operator_wait_s": _W,
    "secret_wait_s": _W,
    "approval_day_limit": _W,
    "proposal_deadline_s": _W,
    "rate_band": _W,
    "invoice_issuer": _W | _K,
    "invoice_tax_id": _K,
    "invoice_due_days": _K,
    "brand_colour": _W,
    "exchange_position_limit": _W,
    "queue_limit": _W | _K,
    "batch_limit": _W | _K,
    "connections": _W | _K,
    "hold_refunds": _K,
    "payout_builds": _K,
    "gap_fill_s": _K,
    "sandbox_chains": _W | _K | _S,
    "sandbox_confirm_ms": _K,
    "log_level": _W | _K | _S | _U,
    "log_format": _W | _K | _S | _U,
    "drain_timeout_s": _W | _K | _U,
    "unready_s": _W | _U,
    "processes": _W | _U,
    "checkpoint_dir": _W | _K | _U,
    "archive_dir": _W | _U,
    "checkpoint_key": _K,
    "checkpoint_key_file": _K,
    "backup_url": _U,
    "backup_key_file": _U,
    "smtp_host": _W | _K,
    "smtp_port": _K,
    "smtp_tls": _K,
    "smtp_user": _K,
    "smtp_password": _K,
    "smtp_from": _W | _K,
    "smtp_ca_file": _K,
    "deposit_minimum": _W | _K,
    "web_user": _U,
    "worker_user": _U,
    "keystore_passphrase_file": _KEYS,
    "keystore_passphrase": _KEYS,
    "signer_socket": _KEYS,
    "signer_payment_limit": _KEYS,
    "signer_hour_limit": _KEYS,
    "reconcile_interval_s": _W | _K,
    "metrics_networks": _W | _K,
    "metrics_port": _K,
    "traces_url": _W | _K,
    "traces_share": _W,
    "screening_url": _W | _K,
    "screening_secret": _K,
    "screening_timeout_ms": _K,
    "screening_fail_open": _W | _K,
    "screening_list": _W | _K,
    "sweep_share": _K,
    "sweep_minimum": _K,
    "sweep_at_once": _K,
}
_OF_CHAIN: Final = {
    "rpc": _W | _K,
    "rpc_headers": _K,
    "rpc_limits": _K,
    "token": _W | _K | _S,
    "chain_id": _K | _S,
    "finality": _K,
    "fee_cap": _K | _S,
    "stuck_blocks": _K,
    "cold_addresses": _KEYS,
    "rescue_addresses": _KEYS,
    "coin_price": _K,
    "explorer": _W,
}

READERS: Final = _OWN | {name: _OF_CHAIN[name.split("_", 1)[1]] for name in list_chain_settings()}
"""For each setting the programs that use it. Commands read the settings of the side whose work they do."""

SAME: Final = frozenset(
    {
        "approval_day_limit",
        "approval_deadline_s",
        "archive_dir",
        "cell_urls",
        "checkpoint_dir",
        "database_url",
        "deposit_minimum",
        "exchange_position_limit",
        "failed_auth_limit",
        "master_key",
        "operator_wait_s",
        "page_rate_limit",
        "proposal_deadline_s",
        "public_url",
        "rate_band",
        "rate_limit",
        "reconcile_interval_s",
        "sandbox",
        "sandbox_chains",
        "sandbox_two_people",
        "secret_wait_s",
        "timestamp_tolerance_s",
    }
) | {name for name in list_chain_settings() if name.endswith(("_rpc", "_token", "_chain_id"))}
"""What must be the same in all programs that read it. URLs may name other users for the same place."""
