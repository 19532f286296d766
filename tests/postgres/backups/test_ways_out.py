"""Back-ups in a bucket behind a company's proxy, and with a company's certificates."""

import asyncio
from pathlib import Path

import pytest
from tests.authority import Authority
from tests.callbacks.receiver import answer, open_receiver
from tests.forward_proxy import open_proxy

from merchant_wallet.base.outbound import PLAIN, Outbound, read_no_proxy
from merchant_wallet.postgres.backups.errors import StoreAway
from merchant_wallet.postgres.backups.stores import open_store

pytest.importorskip("obstore")


def test_a_bucket_is_reached_with_the_settings_of_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def put(outbound: Outbound) -> None:
        # The one that is not trusted would be asked again and again.
        store = open_store("s3://wallet/here", outbound, patience_s=0)
        await asyncio.to_thread(store.put, "1/wal/a", b"x")

    async def scenario() -> None:
        async with open_receiver(company.serve("localhost")) as bucket, open_proxy() as squid:
            bucket.behave = answer(200, b"", 'ETag: "x"\r\nConnection: close\r\n')
            host = f"localhost:{bucket.port}"
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://{host}")
            with pytest.raises(StoreAway, match=r"Its certificate is not trusted: name .* WALLET_CA_FILE"):
                await put(PLAIN)
            await put(Outbound(company.file))
            assert [request.line for request in bucket.received] == ["PUT /wallet/here/1/wal/a HTTP/1.1"]
            squid.wants_credentials = True
            proxied = Outbound(company.file, (("backups", squid.proxy()),))
            await put(proxied)
            assert squid.asked == [host]
            await put(proxied._replace(no_proxy=read_no_proxy("localhost")))
            assert squid.asked == [host]
            assert len(bucket.received) == 3

    company = Authority(tmp_path)
    monkeypatch.setenv("AWS_REGION", "here")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wallet")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    asyncio.run(scenario())
