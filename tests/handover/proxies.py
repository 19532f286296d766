"""nginx and HAProxy with the settings of `deploy/`. Only addresses, ports and certificates are replaced."""

import datetime
import ipaddress
import socket
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.ports import find_port
from tests.tools import require_tool
from tests.waits import TIMEOUT_S, wait_until

_LOOPBACK = ipaddress.ip_address("127.0.0.1")
DEPLOY = Path(__file__).parents[2] / "deploy"
CONSOLE_NETWORK = "198.51.100.0/24"
CONSOLE_RULES = ("# location /console", "# http-request deny if { path_beg /console")
NGINX_MAIN = """\
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/proxy.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


class Proxy:
    """One of the two proxies in front of web processes. `console_from` turns the rule for the console on:
    only this network may open it. `changes` are lines of the file that somebody has changed.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        upstreams: Sequence[int],
        console_from: str = "",
        changes: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._console_from = console_from
        self._changes = changes or {}
        self.folder = folder
        self.port = find_port()
        self.plain_port = find_port()
        folder.mkdir()
        self.trusted = _make_certificate(folder)
        self._command = self._configure(upstreams)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where merchants call."""
        return f"https://127.0.0.1:{self.port}"

    def _configure(self, upstreams: Sequence[int]) -> list[str]:
        folder, program = self.folder, str(require_tool(self.name))
        printed = (DEPLOY / ("nginx.conf" if self.name == "nginx" else "haproxy.cfg")).read_text()
        wanted = {
            "127.0.0.1:8081": f"127.0.0.1:{upstreams[0]}",
            "127.0.0.1:8082": f"127.0.0.1:{upstreams[1]}",
        }
        if self.name == "nginx":
            wanted |= {
                "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
                "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
                "/etc/ssl/certs/wallet.pem": f"{folder}/certificate.pem",
                "/etc/ssl/private/wallet.key": f"{folder}/key.pem",
            }
        else:
            wanted |= {
                "bind :80": f"bind 127.0.0.1:{self.plain_port}",
                "bind :443": f"bind 127.0.0.1:{self.port}",
                "/etc/haproxy/wallet.pem": f"{folder}/both.pem",
            }
        if self._console_from:
            wanted |= {rule: rule.removeprefix("# ") for rule in CONSOLE_RULES if rule in printed}
            wanted |= {CONSOLE_NETWORK: self._console_from}
        for old, new in (wanted | dict(self._changes)).items():
            assert printed.count(old) == 1, old
            printed = printed.replace(old, new)
        (folder / "site.conf").write_text(printed)
        if self.name == "haproxy":
            return [program, "-db", "-f", f"{folder}/site.conf"]
        (folder / "nginx.conf").write_text(NGINX_MAIN.format(folder=folder))
        # The log that nginx was built with is in a folder which may be missing.
        return [program, "-e", f"{folder}/proxy.log", "-c", f"{folder}/nginx.conf"]

    def start(self) -> "Proxy":
        """Start, and wait until it accepts connections."""
        with (self.folder / "output.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        process = self._process
        wait_until(lambda: process.poll() is not None or self._accepts(), self.said)
        assert process.poll() is None, self.said()
        return self

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def said(self) -> str:
        """The end of what it has logged."""
        logs = [self.folder / "output.log", self.folder / "proxy.log"]
        return "".join(log.read_text()[-3000:] for log in logs if log.exists())

    def end(self) -> None:
        """Stop it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(TIMEOUT_S)


def _make_certificate(folder: Path) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 in a folder, and the client's side that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(_LOOPBACK)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "certificate.pem").write_bytes(certificate)
    (folder / "key.pem").write_bytes(secret)
    (folder / "both.pem").write_bytes(certificate + secret)
    return ssl.create_default_context(cafile=str(folder / "certificate.pem"))
