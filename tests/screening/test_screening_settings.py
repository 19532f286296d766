"""The settings of screening: which URLs and secrets are accepted, and what a worker needs."""

from pathlib import Path

import pytest
from tests.rows import each_row
from tests.screening.provider import SECRET

from merchant_wallet.base.config import ConfigError, load_settings, require_screening_secret
from merchant_wallet.base.webhooks import NotAuthentic, parse_secret, sign_webhook, verify_webhook
from merchant_wallet.processes.screening import open_screener

URL = "WALLET_SCREENING_URL"
SECRET_NAME = "WALLET_SCREENING_SECRET"


@each_row("url", ["https://screen.example/ask?team=7", "http://127.0.0.1:9000/ask", "http://localhost/ask"])
def test_a_provider_is_asked_over_tls_or_on_this_machine(url: str) -> None:
    assert load_settings({URL: url}).screening_url == url


@each_row(
    "url", ["http://screen.example/ask", "https://", "ftp://127.0.0.1/", "https://me:pw@screen.example/"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=URL):
        load_settings({URL: url})


@each_row("secret", ["short", "whsec_" + "A" * 16, "not base64 at all, though it is long enough"])
def test_a_secret_is_long_enough_and_is_never_shown(secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({SECRET_NAME: secret})
    assert secret not in str(caught.value)


def test_a_secret_may_have_the_prefix_of_other_software() -> None:
    assert load_settings({SECRET_NAME: f"whsec_{SECRET}"}).screening_secret == SECRET == parse_secret(SECRET)
    assert SECRET not in repr(load_settings({SECRET_NAME: SECRET}))


def test_a_worker_with_a_url_needs_the_secret() -> None:
    settings = load_settings({URL: "https://screen.example/"})
    with pytest.raises(ConfigError, match=SECRET_NAME):
        open_screener(settings)
    assert require_screening_secret(load_settings({SECRET_NAME: SECRET})) is None


def test_without_settings_there_are_no_sources(tmp_path: Path) -> None:
    assert not open_screener(load_settings({})).has_sources
    assert open_screener(load_settings({"WALLET_SCREENING_LIST": str(tmp_path / "list")})).has_sources


def test_one_right_signature_of_several_is_enough_and_the_rest_of_the_message_must_fit() -> None:
    body, at_s = b"{}", 1_700_000_000
    right = sign_webhook(SECRET, "id", at_s, body).decode()
    headers = {"webhook-id": "id", "webhook-timestamp": str(at_s), "webhook-signature": f"v1,wrong {right}"}
    verify_webhook(SECRET, headers, body, event_id="id", at_s=at_s + 300)
    for changed, at in (
        ({"webhook-id": "other"}, at_s),
        ({"webhook-timestamp": str(at_s + 1)}, at_s),
        ({"webhook-timestamp": "-1"}, at_s),
        ({"webhook-signature": "v1,é"}, at_s),
        ({}, at_s + 301),
        ({}, at_s - 301),
    ):
        with pytest.raises(NotAuthentic):
            verify_webhook(SECRET, headers | changed, body, event_id="id", at_s=at)
