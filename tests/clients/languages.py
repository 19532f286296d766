"""The clients in `clients/`: what their tests need and how they are run."""

from pathlib import Path
from typing import NamedTuple

from tests.tools import ROOT

JUNIT = "/usr/share/java/junit-platform-console-standalone.jar"


class Language(NamedTuple):
    """A client. Commands run in its folder. `{build}` is an empty folder for what they make, and `*`
    is as in a shell. `needs` are tools of `tests.tools`. The first command that fails ends the test.
    A client with `npm` runs in a copy, after the packages of its package-lock.json were installed; `{node}`
    is Node.js. Its tests compile it, and its quick start runs what is committed. `style` checks the layout of
    its files, where that takes longer than to run its tests.
    """

    name: str
    needs: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...]
    quickstart: tuple[tuple[str, ...], ...]
    npm: bool = False
    style: tuple[tuple[str, ...], ...] = ()

    @property
    def folder(self) -> Path:
        """The client's folder."""
        return ROOT / "clients" / self.name


QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Programs that run for a second or two take half the processor time with it."""
JAVAC = (
    "javac",
    *(f"-J{option}" for option in QUICK),
    *("--release", "17", "-encoding", "UTF-8", "-Xlint:all,-serial", "-Werror"),
)
JAVA_CLIENT = (*JAVAC, "-d", "{build}/main", "src/main/java/merchantwallet/*.java")
# Two thirds of the compiler's time are its own libraries, which are not ours.
TSC = ("{node}", "node_modules/typescript/bin/tsc", "--skipLibCheck", "-p")
BUILD_TYPESCRIPT = (
    (*TSC, "tsconfig.json"),
    (*TSC, "tsconfig.cjs.json"),
    ("cp", "package.cjs.json", "dist/cjs/package.json"),
)
"""What `npm run build` does."""
PRETTIER = ("{node}", "node_modules/prettier/bin/prettier.cjs", "--check", ".")
NODE_TEST = ("{node}", "--test", "--test-reporter=tap", "build/test/*.test.js")
GOFMT = ("sh", "-c", 'test -z "$(gofmt -l . | tee /dev/stderr)"')

LANGUAGES = (
    Language(
        "php",
        ("php", "phpunit", "phpcs"),
        (("phpcs", "-q"), ("phpunit",)),
        (("php", "examples/quickstart.php"),),
    ),
    Language(
        "java",
        ("javac", "junit"),
        (
            JAVA_CLIENT,
            (
                *JAVAC,
                "-cp",
                f"{{build}}/main:{JUNIT}",
                "-d",
                "{build}/test",
                "src/test/java/merchantwallet/*.java",
            ),
            (*JAVAC, "-cp", "{build}/main", "-d", "{build}/examples", "examples/*.java"),
            (
                "java",
                *QUICK,
                "-jar",
                JUNIT,
                "-cp",
                "{build}/main:{build}/test",
                "--scan-classpath",
                "{build}/test",
            ),
        ),
        (JAVA_CLIENT, ("java", *QUICK, "-cp", "{build}/main", "examples/Quickstart.java")),
    ),
    Language(
        "typescript",
        (),
        (*BUILD_TYPESCRIPT, (*TSC, "tsconfig.test.json"), NODE_TEST),
        (("{node}", "examples/quickstart.mjs"),),
        npm=True,
        style=(PRETTIER,),
    ),
    Language(
        "go",
        ("go",),
        (GOFMT, ("go", "vet", "./..."), ("go", "test", "-count=1", "-v", "./...")),
        (("go", "run", "./examples/quickstart"),),
    ),
)
