"""Apache Kafka as a peer: brought by Maven, formatted and started as a single node in a temporary directory."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from offsetd.bench.server import ServerFailed

VERSION: Final = "4.3.0"
#: What deploy/peers/pom.xml names; the rest comes with it.
_ASKED_FOR: Final = ("kafka_2.13", "kafka-tools")
#: Any 22 characters of url-safe base64 that stand for 16 bytes.
_CLUSTER_ID: Final = "b2Zmc2V0ZC1iZW5jaDAwMA"
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FETCH_SECONDS_MAX: Final = 900.0
_START_SECONDS_MAX: Final = 90.0
_STOP_SECONDS_MAX: Final = 30.0
_LOOK_SECONDS: Final = 0.2

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=10
auto.create.topics.enable=true
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
{extra}
"""


def missing_tools() -> list[str]:
    """Return what a peer needs and this machine has not."""
    return [tool for tool in ("java", "mvn") if shutil.which(tool) is None]


def bring(pom: Path, libraries: Path) -> None:
    """Let Maven bring Kafka and what it needs; nothing to do when they are there."""
    if all((libraries / f"{name}-{VERSION}.jar").exists() for name in _ASKED_FOR):
        return
    libraries.mkdir(parents=True, exist_ok=True)
    command = ["mvn", "-q", "-B", "-f", str(pom), _COPY]
    command += [f"-DoutputDirectory={libraries.resolve()}", "-DincludeScope=runtime"]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=_FETCH_SECONDS_MAX, check=False
    )
    if done.returncode:
        raise ServerFailed(f"Maven could not bring Apache Kafka: {done.stdout.strip()[-500:]}")


class KafkaProcess:
    """One node, broker and controller in one, with Kafka's own defaults."""

    def __init__(
        self, libraries: Path, directory: Path, *, sync: bool = False, extra: Mapping[str, object] | None = None
    ) -> None:
        """Format and start it; with ``sync`` every append is flushed before it is acknowledged.

        ``extra`` properties win over those above.
        """
        self.name = "Kafka sync" if sync else "Kafka"
        self.promise = "on disk (fsync)" if sync else "in the page cache (default)"
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / "kafka.log"
        self._port = _free_port()
        more = dict(extra or {})
        if sync:
            more["log.flush.interval.messages"] = 1
        properties = directory / "server.properties"
        properties.write_text(
            _PROPERTIES.format(
                port=self._port,
                controller_port=_free_port(),
                data=directory / "data",
                # Of a property that is named twice, Java keeps the last.
                extra="\n".join(f"{name}={value}" for name, value in more.items()),
            ),
            encoding="utf-8",
        )
        java = shutil.which("java") or "java"
        classes = str(libraries.resolve() / "*")
        with self._log.open("wb") as log:
            formatted = subprocess.run(  # noqa: S603
                [java, "-cp", classes, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_START_SECONDS_MAX,
                check=False,
            )
            if formatted.returncode:
                raise ServerFailed(f"Kafka's storage was not formatted: {self._tail()}")
            # The heap and collector that Kafka's own start script gives it.
            self._process = subprocess.Popen(  # noqa: S603
                [
                    *(java, "-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
                    *("-cp", classes, "kafka.Kafka", str(properties)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env={**os.environ, "LOG_DIR": str(directory)},
            )
        try:
            self._await_port()
        except BaseException:
            # Also when somebody has lost patience: nobody else knows of this process yet.
            self.kill()
            raise

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self._port

    @property
    def pid(self) -> int:
        """Return the JVM's process id."""
        return self._process.pid

    def _await_port(self) -> None:
        until = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise ServerFailed(f"Kafka ended with {self._process.returncode}: {self._tail()}")
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1.0).close()
            except OSError:
                time.sleep(_LOOK_SECONDS)
            else:
                return
        raise ServerFailed(f"Kafka did not listen within {_START_SECONDS_MAX:.0f} s: {self._tail()}")

    def _tail(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-500:].strip()

    def stop(self) -> None:
        """Stop it; how it ends is no figure of ours."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Stop it at once; nothing if it has ended."""
        self._process.kill()
        self._process.wait()


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
