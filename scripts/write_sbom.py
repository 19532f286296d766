"""Write the software bill of materials: `make sbom` runs this as `python -m scripts.write_sbom`.

It lists the contents of a production installation: the packages of `requirements/runtime.txt` with their
hashes and licences, and the vendored scripts of the pages. The format is CycloneDX 1.6 as JSON. The same
locks give the same bytes: the document holds no time, and its serial number is derived from its content.
"""

import importlib.metadata
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
RUNTIME_LOCK = ROOT / "requirements" / "runtime.txt"
CLIENT_LOCK = ROOT / "requirements" / "client.txt"
EXTRAS_LOCK = ROOT / "requirements" / "extras.txt"
"""Of the program with every extra. Constraints may name more than what is installed."""
VENDORED = ROOT / "src" / "merchant_wallet" / "web" / "static" / "vendor" / "README.md"
TARGET = ROOT / "build" / "sbom.json"
NAME = "merchant-wallet"
CLIENT = "merchant-wallet-client"
UNSTATED = {"pyrage": "MIT"}
"""Packages that ship the text of their licence and do not name it."""
_LICENSES = LicenseFactory()


def main() -> None:
    """Write the document and print its path."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(make_document(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")


def make_document(name: str = NAME) -> str:
    """The whole document of the service, or of its client, as JSON text."""
    lock = CLIENT_LOCK if name == CLIENT else RUNTIME_LOCK
    locked = list(read_lock(lock.read_text(encoding="utf-8")))
    bom = Bom()
    bom.metadata.component = program = _describe_program(name)
    packages = {needed: _describe_package(needed, version, hashes) for needed, version, hashes in locked}
    scripts = list(_list_vendored(VENDORED.read_text(encoding="utf-8"))) if name == NAME else []
    for component in [*packages.values(), *scripts]:
        bom.components.add(component)
    bom.register_dependency(program, [*_find_needed(name, packages), *scripts])
    for needed, component in packages.items():
        bom.register_dependency(component, _find_needed(needed, packages))
    return _write_reproducibly(bom)


def read_lock(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and SHA-256 sums of each package of a lock."""
    for entry in _list_entries(text):
        requirement = Requirement(entry.partition("--hash")[0].strip())
        [version] = [pin.version for pin in requirement.specifier]
        yield requirement.name, version, re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)


def list_pins(text: str) -> Iterator[str]:
    """The packages of a lock with their versions and markers, without the sums."""
    for entry in _list_entries(text):
        yield entry.partition("--hash")[0].strip()


def _list_entries(text: str) -> list[str]:
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _describe_program(name: str) -> Component:
    version = importlib.metadata.version(name)
    return Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION if name == NAME else ComponentType.LIBRARY,
        bom_ref=f"{name}@{version}",
        purl=PackageURL("pypi", None, name, version),
    )


def _describe_package(name: str, version: str, hashes: Sequence[str]) -> Component:
    """A package. The lock has a sum for each file on offer; an installation uses one of them."""
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}@{version}",
        purl=PackageURL("pypi", None, name, version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in hashes],
        licenses=_find_licenses(name),
    )


def _find_licenses(name: str) -> list[License]:
    """The licence according to the installed package; nothing if this platform does not install it."""
    try:
        told = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return []
    [expression] = told.get_all("License-Expression") or [None]
    [text] = told.get_all("License") or [None]
    named = expression or _short_name(text) or _read_classifier(told.get_all("Classifier") or [])
    named = named or UNSTATED.get(name)
    return [_LICENSES.make_from_string(named)] if named else []


def _short_name(text: str | None) -> str | None:
    """A short name of a licence. Some packages put the whole text there."""
    return text if text and "\n" not in text and len(text) < 100 else None


def _read_classifier(classifiers: Sequence[str]) -> str | None:
    named = [each for each in classifiers if each.startswith("License :: OSI Approved ::")]
    return named[0].rsplit(" :: ", 1)[1] if named else None


def _find_needed(name: str, packages: dict[str, Component]) -> list[Component]:
    """The locked packages that a package needs."""
    try:
        requirements = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    # The program's own extras are in the lock. Those of its packages are not.
    wanted = [each for each in requirements if "extra ==" not in each or name in (NAME, CLIENT)]
    names = {_normalise(Requirement(each).name) for each in wanted}
    return [packages[each] for each in sorted(names & packages.keys())]


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _list_vendored(table: str) -> Iterator[Component]:
    """The scripts of the pages, from the table beside them."""
    sums: dict[tuple[str, str], list[str]] = {}
    licenses: dict[tuple[str, str], str] = {}
    for package, version, kind, digest in re.findall(
        r"\| `[^`]+` \| (\S+) ([\d.]+)(?:, `dist/`| \(([\w-]+)\)) \| `([0-9a-f]{64})` \|", table
    ):
        sums.setdefault((package, version), []).append(digest)
        licenses |= {(package, version): kind} if kind else {}
    for (package, version), digests in sums.items():
        yield Component(
            name=package,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"{package}@{version}",
            purl=PackageURL("npm", None, package, version),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in digests],
            licenses=[_LICENSES.make_from_string(licenses[package, version])],
        )


def _write_reproducibly(bom: Bom) -> str:
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["metadata"]["timestamp"], document["serialNumber"]
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    main()
