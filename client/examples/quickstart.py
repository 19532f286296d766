"""Take a payment, handle a refusal, pay out, and handle the callback."""

import os
import queue
import threading
import uuid
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from merchant_wallet_client import BadCallbackError, MerchantWallet, OrderCallback, verify_callback
from merchant_wallet_client.errors import BalanceInsufficientError

# docs:begin connect
wallet = MerchantWallet(
    os.environ["MERCHANT_WALLET_URL"],
    os.environ["MERCHANT_WALLET_APP_KEY"],
    os.environ["MERCHANT_WALLET_SECRET"],
)
# docs:end connect

# docs:begin payment
# Take a payment: look the user up, give a voucher, take the price.
# An order id is yours, and new for each order. To repeat an order after a failure, use the same one.
run = uuid.uuid4().hex[:8]
alice = wallet.get_merchant_customer(ext_user_id="alice")
wallet.transfer_from_merchant_to_user(
    currency=alice.currency, amount=Decimal(100), mc_order_id=f"topup-{run}", address=alice.address
)
paid = wallet.transfer_from_user_to_merchant(
    ext_user_id="alice", currency=alice.currency, amount=Decimal("40.50"), mc_order_id=f"cart-{run}"
)
print(f"payment: {paid.amount_arrival} {paid.currency} arrived")
# docs:end payment

# docs:begin refusal
try:
    wallet.transfer_from_user_to_merchant(
        ext_user_id="alice", currency=alice.currency, amount=Decimal(90_000_000), mc_order_id=f"yacht-{run}"
    )
except BalanceInsufficientError as refusal:
    print(f"refused: {refusal.code} {refusal.advice}")
# docs:end refusal

# docs:begin callback
callback_secret = os.environ["MERCHANT_WALLET_CALLBACK_SECRET"]
callbacks: "queue.Queue[OrderCallback]" = queue.Queue()
seen: set[str] = set()  # A shop keeps this in its database, with a unique index on event_id.


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            callback = verify_callback(body, dict(self.headers), callback_secret)
        except BadCallbackError:
            self.answer(400, b"no callback of the service")
            return
        if callback.event_id not in seen:  # A callback may come more than once.
            seen.add(callback.event_id)
            if isinstance(callback, OrderCallback):
                callbacks.put(callback)
        self.answer(200, b"success")  # Only now: what is accepted does not come again.

    def answer(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """No log: the program prints what it does."""


server = ThreadingHTTPServer(
    ("127.0.0.1", int(os.environ.get("MERCHANT_WALLET_CALLBACK_PORT", "0"))), Endpoint
)
threading.Thread(target=server.serve_forever, daemon=True).start()
# docs:end callback

# docs:begin payout
# Pay out to an address on a chain. The callback comes when the payment is final.
own_url = f"http://127.0.0.1:{server.server_port}/callbacks"
order = wallet.create_merchant_withdraw_order(
    amount=Decimal("12.50"),
    chain_type="TRC20",
    mc_order_id=f"out-{run}",
    address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    notify_url=os.environ.get("MERCHANT_WALLET_NOTIFY_URL", own_url),
)
print(f"payout: order {order.order_id} has status {order.txn_status}")
# docs:end payout
try:
    done = callbacks.get(timeout=60)
except queue.Empty:
    raise SystemExit(f"no callback came: can the service reach {own_url}?") from None
print(f"callback: order {done.order_id} has status {done.txn_status}, transaction {done.tx_hash}")
server.shutdown()
wallet.close()
