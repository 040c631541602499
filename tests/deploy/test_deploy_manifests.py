"""The systemd unit, the compose file, the Kubernetes manifest and the example settings."""

import configparser
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from offsetd import __version__
from offsetd.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UID = 10001
SHUTDOWN_SECONDS = Settings.defaults().shutdown_timeout_ms / 1000


def unit() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "offsetd.service")
    return parser


def manifest(kind: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes/offsetd.yaml").read_text())
    return next(document for document in documents if document["kind"] == kind)


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = manifest("StatefulSet")["spec"]["template"]["spec"]
    return spec


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


def test_every_yaml_file_parses() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.suffix in {".yml", ".yaml"}]

    assert len(files) >= 6
    for path in files:
        assert list(yaml.safe_load_all(path.read_text()))


def test_the_example_settings_are_right() -> None:
    settings = load_settings(DEPLOY / "offsetd.toml", {}, {})

    assert settings.listeners.host == "127.0.0.1"  # there is no TLS yet, so going further is a person's decision
    assert settings.retention_ms_for("audit-eu") is None
    assert settings.topics_known[0].partitions == 12


def test_the_unit_waits_for_a_clean_stop() -> None:
    service = unit()["Service"]

    assert float(service["TimeoutStopSec"]) > SHUTDOWN_SECONDS
    assert service["KillSignal"] == "SIGTERM"
    assert service["ExecStart"].endswith("offsetd serve --config /etc/offsetd/offsetd.toml")


def test_the_unit_lets_compaction_lower_its_priority() -> None:
    """The filter would otherwise turn nice and ioprio_set into errors."""
    assert "@resources" not in unit()["Service"]["SystemCallFilter"]


def test_the_unit_leaves_the_daemon_its_own_numbers() -> None:
    """The process metrics need /proc/stat, which a proc of processes alone does not have."""
    assert unit()["Service"].get("ProcSubset", "all") == "all"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_finds_the_unit_correct_and_closed(tmp_path: Path) -> None:
    # verify wants the commands to exist, so they are put where only this test looks.
    command = tmp_path / "offsetd"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    file = tmp_path / "offsetd.service"
    file.write_text((DEPLOY / "offsetd.service").read_text().replace("/opt/offsetd/bin/offsetd", str(command)))
    environment = {**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}

    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(file)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip

    assert (verified.returncode, "offsetd.service:" in verified.stderr) == (0, False), verified.stderr
    assert security.returncode == 0, security.stdout


def test_the_user_has_one_id_everywhere() -> None:
    """A data directory can then move between the image, the unit and the pod."""
    assert str(UID) in (DEPLOY / "offsetd.sysusers").read_text()
    assert f"USER {UID}:{UID}" in (ROOT / "Dockerfile").read_text()
    assert pod()["securityContext"]["runAsUser"] == pod()["securityContext"]["fsGroup"] == UID


def test_kubernetes_sets_no_variable_that_looks_like_a_setting() -> None:
    """A service called offsetd would make OFFSETD_PORT, which is refused as an unknown setting."""
    assert pod()["enableServiceLinks"] is False


def test_the_pod_s_settings_are_right() -> None:
    container = pod()["containers"][0]
    stated = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}

    settings = load_settings(None, {**stated, "OFFSETD_LISTENERS": "0.0.0.0:9092"}, {})

    assert settings.advertised()[1] == 9092
    assert container["image"].endswith(f":{__version__}")


def test_the_pod_is_probed_and_closed() -> None:
    container = pod()["containers"][0]

    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["startupProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["terminationGracePeriodSeconds"] > SHUTDOWN_SECONDS
    assert manifest("StatefulSet")["spec"]["replicas"] == 1


def test_the_stateful_set_and_its_services_find_each_other() -> None:
    stateful = manifest("StatefulSet")["spec"]
    services = [
        document
        for document in yaml.safe_load_all((DEPLOY / "kubernetes/offsetd.yaml").read_text())
        if document["kind"] == "Service"
    ]

    assert stateful["serviceName"] in {service["metadata"]["name"] for service in services}
    for service in services:
        assert service["spec"]["selector"] == stateful["selector"]["matchLabels"]
    assert stateful["selector"]["matchLabels"] == stateful["template"]["metadata"]["labels"]
    mounts = {mount["name"] for mount in stateful["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]}


def test_compose_mounts_files_that_exist_and_opens_ports_here_only() -> None:
    for service in compose()["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose()["volumes"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_compose_scrapes_the_broker_that_it_starts() -> None:
    scrape = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"][0]

    assert scrape["job_name"] == "offsetd"
    assert scrape["static_configs"][0]["targets"] == ["offsetd:9192"]
    assert "offsetd" in compose()["services"]
    assert compose()["services"]["offsetd"]["stop_grace_period"] == "40s"


def test_ci_is_executable() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
