"""The chart for Kubernetes: an API server would take its objects, and they fit the program and its image.

`kubernetes/main.go` is the part of an API server that looks at an object before it is stored. No cluster
runs here.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.test_container import DEPLOY, USERS
from tests.tools import require_tool

from merchant_wallet.base import mounted_secrets
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.setting_sources import PREFIX, list_service_links
from merchant_wallet.base.settings import SETTINGS
from merchant_wallet.base.version import read_version
from merchant_wallet.cli.program import load_all_commands

FOLDER = DEPLOY / "kubernetes"
CHART = FOLDER / "chart"
KUBERNETES = "1.37"
"""The version whose code the checker is made of."""
LIVE = (
    "signer.enabled=true",
    "commands.enabled=true",
    "web.readsCheckpoints=true",
    "checkpoints.accessMode=ReadWriteMany",
    "settings.WALLET_SANDBOX=false",
    "imagePullSecrets[0].name=registry",
)
DRAIN = ("WALLET_UNREADY_S", "WALLET_DRAIN_TIMEOUT_S")
SECRETS = {
    "database-url": "postgresql://wallet@db/wallet",
    "master-key": "ab" * 32,
    "keystore-passphrase": "correct horse battery",
}

Object = dict[str, Any]


def _run(tool: str, *words: str, stdin: str = "", status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(require_tool(tool)), *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@cache
def render(*values: str) -> str:
    """The chart's objects with these values, as YAML."""
    words = [word for value in values for word in ("--set", value)]
    command = ("template", "wallet", str(CHART), "--namespace", "wallet", "--kube-version", KUBERNETES)
    return _run("helm", *command, *words).stdout


@cache
def list_objects(*values: str) -> list[Object]:
    """The same, with the defaults of an API server, which has refused none."""
    done = _run("kubernetes-checker", stdin=render(*values))
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def find(objects: list[Object], kind: str, name: str) -> Any:
    [found] = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found["spec"]


def list_pods(*values: str) -> Iterator[tuple[str, Any]]:
    """Each object that makes pods, by its name, with the pod's specification."""
    for each in list_objects(*values):
        if "template" in each["spec"]:
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def read_env(container: Any) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container["env"]}


@pytest.mark.parametrize("values", [(), LIVE], ids=["default", "live"])
def test_the_chart_has_no_fault_and_an_api_server_takes_its_objects(values: tuple[str, ...]) -> None:
    words = [word for value in values for word in ("--set", value)]
    _run("helm", "lint", "--strict", "--kube-version", KUBERNETES, str(CHART), *words)
    kinds = {each["kind"] for each in list_objects(*values)}
    assert {"Deployment", "Service", "Job", "NetworkPolicy", "PodDisruptionBudget", "Ingress"} <= kinds


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("minReadySeconds: 5", "minReadySecond: 5", 'unknown field "spec.minReadySecond"'),
        ("replicas: 2", "replicas: -2", "spec.replicas: Invalid value: -2"),
        ("targetPort: http}", "targetPort: Http_}", "spec.ports[0].targetPort"),
        ("runAsNonRoot: true", "runAsNonRoot: false", "Pod Security: runAsNonRoot != true"),
        ("{name: tmp, emptyDir", "{name: tmp2, emptyDir", 'volumeMounts[1].name: Not found: "tmp"'),
        ("cidr: 10.0.0.0/8", "cidr: 10.0.0.0/80", "Invalid value"),
        ("maxUnavailable: 1\n", "maxUnavailable: 1\n  minAvailable: 1\n", "cannot be both set"),
    ],
)
def test_the_checker_finds_what_an_api_server_refuses(old: str, new: str, finding: str) -> None:
    objects = render()
    assert old in objects
    said = _run("kubernetes-checker", stdin=objects.replace(old, new, 1), status=1).stderr
    assert finding in said


def test_the_plain_objects_are_those_of_the_chart() -> None:
    assert (FOLDER / "manifests.yaml").read_text() == render()


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = (CHART / "Chart.yaml").read_text()
    assert re.findall(r"^(?:version|appVersion): (.*)$", chart, re.M) == [read_version()] * 2


@pytest.mark.parametrize("values", [(), LIVE], ids=["default", "live"])
def test_every_pod_reads_settings_that_exist_and_secrets_that_are_mounted(
    values: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounted_secrets, "FOLDERS", ())
    secrets = tmp_path / "..2026"
    secrets.mkdir()
    (tmp_path / "..data").symlink_to("..2026")
    for name, text in SECRETS.items():
        (secrets / name).write_text(f"{text}\n")
        (secrets / name).chmod(0o440)
        (tmp_path / name).symlink_to(f"..data/{name}")
    links = {"WALLET_WEB_PORT": "tcp://10.96.0.7:80", "WALLET_WEB_SERVICE_HOST": "10.96.0.7"}
    assert list_service_links(links) == sorted(links)
    seen = 0
    for name, pod in list_pods(*values):
        for container in pod["containers"]:
            env = read_env(container)
            mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
            for variable, path in env.items():
                if variable.endswith("_FILE"):
                    assert str(Path(path).parent) in mounted, (name, variable)
                    env[variable] = str(tmp_path / Path(path).name)
                else:
                    assert not SETTINGS[variable.removeprefix(PREFIX).lower()].secret, variable
            assert load_settings({**env, **links}).sandbox is (values == ()), name
            seen += 1
    assert seen == (3 if values == () else 6)


@pytest.mark.parametrize("values", [(), LIVE], ids=["default", "live"])
def test_every_container_runs_a_command_that_exists(values: tuple[str, ...]) -> None:
    commands = load_all_commands().commands
    for _, pod in list_pods(*values):
        for container in pod["containers"]:
            if "command" in container:
                assert container["command"][0] == "python"
                continue
            name, *words = container["args"]
            command: Any = commands[name]
            options = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= options


def test_every_pod_is_hardened_and_each_process_has_its_user() -> None:
    users = {}
    for _, pod in list_pods(*LIVE):
        assert pod["enableServiceLinks"] is pod["automountServiceAccountToken"] is False
        security = pod["securityContext"]
        assert (security["fsGroup"], security["fsGroupChangePolicy"]) == (USERS["web"], "OnRootMismatch")
        for volume in pod["volumes"]:
            assert volume.get("secret", {}).get("defaultMode", 0o440) == 0o440
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            users[container["name"]] = {**security, **container["securityContext"]}["runAsUser"]
    assert users == {
        "web": USERS["web"],
        "migrate": USERS["web"],
        "owner": USERS["web"],
        "worker": USERS["worker"],
        "signer": 10003,
        "keys": 10003,
    }


@pytest.mark.parametrize(("unready", "drain"), [(15, 20), (40, 100)])
def test_a_pod_may_stop_for_as_long_as_the_program_drains(unready: int, drain: int) -> None:
    values = (f"web.unreadySeconds={unready}", f"web.drainSeconds={drain}", f"worker.drainSeconds={drain}")
    pods = dict(list_pods(*values))
    web, worker = pods["wallet-web"], pods["wallet-worker"]
    settings = load_settings({name: read_env(web["containers"][0])[name] for name in DRAIN})
    assert (settings.unready_s, settings.drain_timeout_s) == (unready, drain)
    assert web["terminationGracePeriodSeconds"] == unready + drain + 60
    assert worker["terminationGracePeriodSeconds"] == drain + 60
    assert "lifecycle" not in web["containers"][0]
    strategy = find(list_objects(*values), "Deployment", "wallet-web")["strategy"]["rollingUpdate"]
    assert strategy == {"maxUnavailable": 0, "maxSurge": 1}


def test_policies_and_services_choose_pods_that_exist() -> None:
    objects = list_objects(*LIVE)
    labels = [
        each["spec"]["template"]["metadata"]["labels"] for each in objects if "template" in each["spec"]
    ]
    for each in objects:
        spec = each["spec"]
        chosen = spec.get("podSelector", spec.get("selector"))
        if each["kind"] in ("NetworkPolicy", "PodDisruptionBudget"):
            chosen = chosen["matchLabels"]
        elif each["kind"] != "Service":
            continue
        assert any(chosen.items() <= pod.items() for pod in labels), each["metadata"]
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    for pod in labels:
        assert any(policy["podSelector"]["matchLabels"].items() <= pod.items() for policy in policies), pod


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("image=", "image must name the program's image"),
        ("web.unreadySecond=5", "unreadySecond"),
        ("settings.wallet_port=8080", "wallet_port"),
        ("settings.WALLET_PORT=8080", "WALLET_PORT"),
        ("web.readsCheckpoints=true", "web.readsCheckpoints needs checkpoints.accessMode ReadWriteMany"),
    ],
)
def test_values_that_do_not_fit_are_refused(value: str, said: str) -> None:
    command = ("template", "wallet", str(CHART), "--kube-version", KUBERNETES, "--set", value)
    assert said in _run("helm", *command, status=1).stderr
