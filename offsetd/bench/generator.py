"""The load generator, a process of its own: ``python -m offsetd.bench.generator --port 9092 --operation commit``.

Steps: one FindCoordinator, one seeding commit per group, warm-up, the counted window, drain; then one line of JSON.
It talks to this machine only, and is bounded in requests and in time. Exit 1: a reply was wrong. Exit 2: no run.
"""

import argparse
import ipaddress
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from offsetd.bench.frames import CLIENT_ID, group_name, make_groups, topic_name
from offsetd.bench.load import DEPTH_MAX, REPLY_BYTES_MAX, Load, ServerLeft, Tally
from offsetd.bench.numbers import percentile
from offsetd.bench.usage import CpuTimes, cpu_of, machine_cpu
from offsetd.bench.verdict import Verdict
from protocol.api import FIND_COORDINATOR, METADATA, Request, decode_response, encode_request
from protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

SECONDS_MAX: Final = 3600.0
REQUESTS_MAX: Final = 20_000_000
CONNECTIONS_MAX: Final = 1000
_SEED_SECONDS_MAX: Final = 600.0
_DRAIN_SECONDS_MAX: Final = 15.0
_SETUP_SECONDS_MAX: Final = 120.0
_PATIENCE_SECONDS: Final = 0.2
#: Said on standard error when the counted window begins.
COUNTING: Final = "generator: counting"
#: Fetches among a hundred requests.
OPERATIONS: Final = {"commit": 0, "fetch": 100, "mix": 10, "seed": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One counted window."""

    operation: str
    partitions: int
    connections: int
    depth: int
    groups: int
    seconds: float
    requests: int
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    errors: int
    error_codes: dict[int, int]
    stale: int
    missing: int
    malformed: int
    unanswered: int
    reread: int
    # CPU per request: the server in all, its own user and system share, its children (the sync helper).
    server_us: float
    server_user_us: float
    server_system_us: float
    children_us: float
    generator_us: float
    # Cores that neither the server nor the generator used: above 0.2 the figures are spoilt.
    foreign_cores: float
    seed_seconds: float

    @property
    def wrong(self) -> int:
        """Return how many replies were not as they must be."""
        return self.errors + self.stale + self.missing + self.malformed + self.unanswered


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load and print its result."""
    options = _parse(arguments)
    refusal = refuse_options(options)
    if refusal is not None:
        print(f"generator: {refusal}", file=sys.stderr)
        return 2
    try:
        result = run(options)
    except (OSError, ServerLeft, ValueError) as error:
        print(f"generator: {error}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(result)), flush=True)
    return 1 if result.wrong else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="offsetd.bench.generator", description=__doc__.partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1", help="loopback only")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--operation", choices=sorted(OPERATIONS), default="commit")
    parser.add_argument("--partitions", type=int, default=10, help="1..10 of one topic, or 20, 30 .. 100 of ten topics")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--depth", type=int, default=1, help="requests in flight per connection")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--first-group", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warmup", type=float, default=1.0)
    parser.add_argument("--requests", type=int, default=REQUESTS_MAX, help="stop after so many")
    parser.add_argument("--server-pid", type=int, default=0, help="whose CPU to count")
    return parser.parse_args(arguments)


def refuse_options(options: argparse.Namespace) -> str | None:
    """Return why a load is not run: somebody else's machine, or no bound."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if options.host == "localhost" else options.host)
    except ValueError:
        return f"{options.host} is not an address"
    if not address.is_loopback:
        return f"{options.host} is not this machine: a load generator stays at home"
    if not 0 <= options.seconds <= SECONDS_MAX or not 0 <= options.warmup <= SECONDS_MAX:
        return f"want at most {SECONDS_MAX:.0f} seconds"
    if not 1 <= options.connections <= CONNECTIONS_MAX:
        return f"want 1..{CONNECTIONS_MAX} connections"
    if not 1 <= options.depth <= DEPTH_MAX:
        return f"want a depth of 1..{DEPTH_MAX}"
    if not 1 <= options.requests <= REQUESTS_MAX:
        return f"want 1..{REQUESTS_MAX} requests"
    return None


def run(options: argparse.Namespace) -> Result:
    """Go through all steps against one server."""
    address = (options.host, options.port)
    count = max(options.groups, options.connections)
    groups = make_groups(first=options.first_group, count=count, partitions=options.partitions)
    _await_coordinator(address, options.first_group)
    # Grows from run to run, so that no commit repeats what an earlier run left behind.
    load = Load(address, groups, connections=options.connections, depth=options.depth, value=time.time_ns() // 1000)
    # Whoever does not know how long it will be needed says when it is enough.
    before_us = signal.signal(signal.SIGTERM, lambda _number, _frame: load.stop())
    try:
        began = time.perf_counter()
        seeded = load.seed(_SEED_SECONDS_MAX)
        seed_seconds = time.perf_counter() - began
        seconds, server, own, machine = 0.0, CpuTimes(), CpuTimes(), 0.0
        drained = True
        if seeded and options.operation != "seed":
            load.begin(fetches=OPERATIONS[options.operation], requests_max=options.requests)
            load.run(options.warmup, counting=False)
            print(COUNTING, file=sys.stderr, flush=True)
            before = cpu_of(options.server_pid), cpu_of(os.getpid()), machine_cpu()
            seconds = load.run(options.seconds, counting=True)
            server, own = cpu_of(options.server_pid) - before[0], cpu_of(os.getpid()) - before[1]
            machine = machine_cpu() - before[2]
            drained = load.drain(_DRAIN_SECONDS_MAX)
        unanswered = load.in_flight() if not (seeded and drained) else 0
    finally:
        signal.signal(signal.SIGTERM, before_us)
        load.close()
    foreign = max(0.0, machine - server.total - own.total) / seconds if seconds else 0.0
    return _result(
        options, load.tally, count, seconds, server, own, foreign, unanswered=unanswered, seed_seconds=seed_seconds
    )


def _result(
    options: argparse.Namespace,
    tally: Tally,
    groups: int,
    seconds: float,
    server: CpuTimes,
    own: CpuTimes,
    foreign: float,
    *,
    unanswered: int,
    seed_seconds: float,
) -> Result:
    latencies = sorted(tally.seconds)
    per_request = 1e6 / tally.requests if tally.requests else 0.0
    return Result(
        operation=options.operation,
        partitions=options.partitions,
        connections=options.connections,
        depth=options.depth,
        groups=groups,
        seconds=round(seconds, 3),
        requests=tally.requests,
        requests_per_second=round(tally.requests / seconds, 1) if seconds else 0.0,
        p50_ms=round(percentile(latencies, 0.5) * 1000, 3),
        p99_ms=round(percentile(latencies, 0.99) * 1000, 3),
        max_ms=round(latencies[-1] * 1000, 3) if latencies else 0.0,
        errors=tally.wrong[Verdict.ERROR],
        error_codes=dict(tally.codes),
        stale=tally.wrong[Verdict.STALE],
        missing=tally.wrong[Verdict.MISSING],
        malformed=tally.wrong[Verdict.MALFORMED],
        unanswered=unanswered,
        reread=tally.reread,
        server_us=round(server.total * per_request, 2),
        server_user_us=round(server.user * per_request, 2),
        server_system_us=round(server.system * per_request, 2),
        children_us=round(server.children * per_request, 2),
        generator_us=round(own.total * per_request, 2),
        foreign_cores=round(foreign, 2),
        seed_seconds=round(seed_seconds, 3),
    )


def _await_coordinator(address: tuple[str, int], group: int) -> None:
    """Ask until the server has topics and a coordinator; a fresh Kafka creates both when they are first asked for."""
    topics = MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=topic_name(number)) for number in range(10)),
        allow_auto_topic_creation=True,
    )
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=(group_name(group),))
    until = time.monotonic() + _SETUP_SECONDS_MAX
    while time.monotonic() < until:
        with socket.create_connection(address, timeout=_SETUP_SECONDS_MAX) as sock:
            _, known = decode_response(METADATA, 9, _ask(sock, METADATA, 9, topics))
            _, found = decode_response(FIND_COORDINATOR, 4, _ask(sock, FIND_COORDINATOR, 4, find))
        assert isinstance(known, MetadataResponse)
        assert isinstance(found, FindCoordinatorResponse)
        if not any(topic.error_code for topic in known.topics) and not found.coordinators[0].error_code:
            return
        time.sleep(_PATIENCE_SECONDS)
    raise ServerLeft("the server has no coordinator")


def _ask(sock: socket.socket, key: int, version: int, request: Request) -> bytes:
    sock.sendall(encode_request(key, version, 0, CLIENT_ID, request))
    size = int.from_bytes(_receive(sock, 4), "big")
    if size > REPLY_BYTES_MAX:
        raise ServerLeft(f"a reply claims {size} bytes")
    return _receive(sock, size)


def _receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ServerLeft("the server closed a connection")
        data += more
    return data


if __name__ == "__main__":
    sys.exit(main())
