"""``python -m offsetd.bench.pipeline``: Kafka, offsetd and Spark in a temporary directory, and away with all of it."""

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

from offsetd.bench import kafka
from offsetd.bench.pipeline.figures import Figures, as_text
from offsetd.bench.pipeline.history import run_history
from offsetd.bench.pipeline.importing import run_importing
from offsetd.bench.pipeline.loading import run_loading
from offsetd.bench.pipeline.topic import produce
from offsetd.bench.server import DaemonProcess, ServerFailed
from offsetd.pipeline.session import KAFKA, missing, spark_session

_ROOT: Final = Path(__file__).parents[3]
_SPARK_SETTINGS: Final = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
_START_SECONDS_MAX: Final = 30.0


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="offsetd.bench.pipeline", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds of every contest")
    parser.add_argument("--records", type=int, default=2_000_000, help="messages to load")
    parser.add_argument("--commits", type=int, default=2_000_000, help="commits in the history that is read")
    parser.add_argument("--offsets", type=int, default=1_000_000, help="offsets to import")
    parser.add_argument("--json", type=Path, help="write every figure here")
    options = parser.parse_args(arguments)
    lacking = [missing()] if missing() else [f"{tool}: not installed" for tool in kafka.missing_tools()]
    if lacking:
        sys.stderr.write(f"the pipeline cannot be measured here: {'; '.join(map(str, lacking))}\n")
        return 1
    try:
        figures = _run(options)
    except ServerFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    print(as_text(figures))
    if options.json is not None:
        options.json.write_text(json.dumps(asdict(figures), indent=1), encoding="utf-8")
    return 0


def _told(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _run(options: argparse.Namespace) -> Figures:
    libraries = _ROOT / ".peers" / "kafka"
    kafka.bring(_ROOT / "deploy" / "peers" / "pom.xml", libraries)
    with tempfile.TemporaryDirectory(prefix="offsetd-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        spark = stack.enter_context(
            spark_session("offsetd-bench", master="local[2]", packages=(KAFKA,), settings=_SPARK_SETTINGS)
        )
        source = kafka.KafkaProcess(libraries, directory / "kafka")
        stack.callback(source.kill)
        daemon = DaemonProcess(directory / "offsets")
        stack.callback(daemon.kill)
        daemon.wait_for("slots_loaded", _START_SECONDS_MAX)
        topic = produce(source.port, options.records)
        _told(f"{options.records:,} messages produced")
        loading = run_loading(
            spark,
            kafka=f"127.0.0.1:{source.port}",
            offsets=f"127.0.0.1:{daemon.port}",
            topic=topic,
            records=options.records,
            directory=directory,
            rounds=options.rounds,
            told=_told,
        )
        source.kill()
        importing = run_importing(spark, offsets=options.offsets, directory=directory, told=_told)
        history = run_history(spark, records=options.commits, directory=directory, rounds=options.rounds, told=_told)
    return Figures(loading=loading, importing=importing, history=history)


if __name__ == "__main__":
    sys.exit(main())
