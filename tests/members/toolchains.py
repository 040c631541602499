"""Members in languages whose toolchains and libraries must be there first: brought into `.peers`, once.

Versions are fixed in deploy/peers and in programs/go; where they come from is the business of Maven, npm and Go.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from offsetd.bench.kafka import bring
from offsetd.bench.server import ServerFailed
from tests.members.process import CONFLUENT, KAFKA_PYTHON, PYTHON_LIBRARIES, python_command

#: With this set, members in other languages are tested too.
WANTED: Final = bool(os.environ.get("OFFSETD_PEERS"))
JAVA, KAFKAJS, FRANZ, SARAMA, KCAT = PEERS = ("java", "kafkajs", "franz", "sarama", "kcat")
GROUPS_TOOL: Final = "kafka-consumer-groups"
LIBRARIES: Final = (*PYTHON_LIBRARIES, *(PEERS if WANTED else ()))
#: kcat commits what it has printed, and offsetd has nothing to print.
COMMITTING: Final = tuple(library for library in LIBRARIES if library != KCAT)
#: Those that can give up some partitions and keep the others; kcat can too, but prints only what changes.
COOPERATIVE: Final = tuple(library for library in LIBRARIES if library in {KAFKA_PYTHON, CONFLUENT, JAVA, FRANZ})
#: kafkajs has no static members.
STATIC: Final = tuple(library for library in LIBRARIES if library != KAFKAJS)

_ROOT: Final = Path(__file__).parents[2]
_DEPLOY: Final = _ROOT / "deploy" / "peers"
_BROUGHT: Final = _ROOT / ".peers"
_JARS: Final = _BROUGHT / "kafka"
_PROGRAMS: Final = Path(__file__).parent / "programs"
_SECONDS_MAX: Final = 900.0
#: A JVM that starts quickly and takes little: it has one small thing to do.
_JVM: Final = ("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class ToolchainMissing(Exception):
    """What a library needs cannot be had here; says why in one line."""


def command(name: str) -> tuple[str, ...]:
    """Return the command that starts a member in a library, or a tool.

    Raises:
        ToolchainMissing: it cannot be had here.
    """
    found = _found(name)
    if isinstance(found, ToolchainMissing):
        raise found
    return found


def present() -> list[str]:
    """Return the libraries that can be had here, for groups of several; tests of a single one say what is missing."""
    return [library for library in LIBRARIES if not isinstance(_found(library), ToolchainMissing)]


@cache
def _found(name: str) -> tuple[str, ...] | ToolchainMissing:
    """Try once: what could not be brought a moment ago is not asked for by every test again."""
    makers = {JAVA: _java, KAFKAJS: _kafkajs, FRANZ: _go, SARAMA: _go, KCAT: _kcat, GROUPS_TOOL: _groups_tool}
    try:
        return tuple(python_command(name) if name in PYTHON_LIBRARIES else makers[name](name))
    except ToolchainMissing as reason:
        return reason


def _groups_tool(_name: str) -> Sequence[str]:
    """Return what Kafka's script `kafka-consumer-groups.sh` runs."""
    return (*_JVM, "-cp", f"{_kafka_jars()}/*", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand")


def _java(_name: str) -> Sequence[str]:
    jars, classes = _kafka_jars(), _BROUGHT / "java"
    _need("javac")
    source = _PROGRAMS / "java" / "JavaMember.java"
    _build(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(source)])
    return (*_JVM, "-cp", f"{classes}:{jars}/*", "JavaMember")


def _kafka_jars() -> Path:
    _need("java", "mvn")
    try:
        bring(_DEPLOY / "pom.xml", _JARS)
    except (ServerFailed, OSError, subprocess.SubprocessError) as error:
        raise ToolchainMissing(f"Kafka's jars: {' '.join(str(error).split())[:300]}") from error
    return _JARS


def _kafkajs(_name: str) -> Sequence[str]:
    _need("node", "npm")
    place = _BROUGHT / "node"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(_DEPLOY / "package.json", place)
    # No lock file: it would name the registry, and there is but one package, without dependencies.
    _bring(
        ["npm", "install", "--prefix", str(place), "--no-package-lock", "--no-audit", "--no-fund", "--prefer-offline"]
    )
    return ("env", f"NODE_PATH={place / 'node_modules'}", "node", str(_PROGRAMS / "kafkajs_member.js"))


def _go(library: str) -> Sequence[str]:
    _need("go")
    # Go makes what it brings read-only, and then not even `make clean` could remove it.
    settings = {"GOMODCACHE": str(_BROUGHT / "go"), "GOFLAGS": "-modcacherw -buildvcs=false"}
    source, built = str(_PROGRAMS / "go"), str(_BROUGHT / "bin" / library)
    _bring(["go", "-C", source, "mod", "download"], settings)
    _build(["go", "-C", source, "build", "-o", built, f"./{library}"], settings)
    return (built,)


def _kcat(_name: str) -> Sequence[str]:
    _need("kcat")
    return ("kcat",)


def _need(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise ToolchainMissing(f"{' and '.join(missing)}: not installed")


def _bring(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Let a tool bring something from elsewhere: if it cannot, that is nobody's fault here."""
    try:
        done = _done(arguments, environment)
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainMissing(f"{arguments[0]}: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [str(done.returncode)]
        raise ToolchainMissing(f"{arguments[0]}: {last[0][:300]}")


def _build(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Build a program of our own, which must not fail."""
    done = _done(arguments, environment)
    assert done.returncode == 0, done.stdout + done.stderr


def _done(arguments: Sequence[str], environment: Mapping[str, str] | None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
        env={**os.environ, **(environment or {})},
    )
