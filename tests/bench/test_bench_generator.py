"""The generator as a process: against a real daemon it counts, against a liar it says so, and it stays at home."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsetd.bench import kafka
from offsetd.bench.cell import Cell, Runs, run_cells
from offsetd.bench.generator import Result, main
from offsetd.bench.report import Report, as_json, as_text
from offsetd.bench.server import DaemonProcess, ServerFailed
from offsetd.cli.bench import command
from protocol.api import FIND_COORDINATOR, METADATA, OFFSET_COMMIT, OFFSET_FETCH, decode_request, encode_response
from protocol.find_coordinator import FindCoordinatorResponse, FindCoordinatorResponseCoordinator
from protocol.metadata import MetadataResponse
from tests.fakes.liar import Liar

pytestmark = pytest.mark.integration

CELLS = (Cell("commit", 10, 4), Cell("fetch", 10, 4), Cell("mix", 1, 4))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    process = DaemonProcess(tmp_path_factory.mktemp("bench") / "data", {"disk.reserve.bytes": "0"})
    try:
        process.wait_for("slots_loaded", 60.0)
        yield process
    finally:
        process.kill()


def test_every_cell_runs_against_every_server_and_every_figure_reaches_the_report(daemon: DaemonProcess) -> None:
    runs = run_cells([daemon], CELLS, rounds=2, seconds=0.2, warmup=0.05, told=lambda _: None)
    report = Report(rounds=2, seconds=0.2, runs=runs)

    text, data = as_text(report), json.loads(json.dumps(as_json(report)))

    assert [one.cell for one in runs] == list(CELLS)
    assert all(result.requests > 0 and result.wrong == 0 for one in runs for result in one.results)
    assert all(cell.label in text for cell in CELLS)
    assert [len(row["rounds"]) for row in data["runs"]] == [2, 2, 2]


def test_a_load_ends_at_its_number_of_requests(daemon: DaemonProcess) -> None:
    arguments = ["--port", str(daemon.port), "--connections", "3", "--groups", "9", "--warmup", "0", "--seconds", "60"]
    done = subprocess.run(
        [sys.executable, "-m", "offsetd.bench.generator", *arguments, "--requests", "300"],
        capture_output=True,
        text=True,
        check=True,
    )

    result = Result(**json.loads(done.stdout))

    assert result.requests == 300
    assert result.seconds < 60
    assert result.unanswered == 0


def honest(frame: bytes) -> bytes:
    """Answer the questions before the load as a server would that has topics and a coordinator."""
    header, _ = decode_request(frame)
    if header.api_key == METADATA:
        return encode_response(METADATA, header.api_version, header.correlation_id, MetadataResponse())
    assert header.api_key == FIND_COORDINATOR
    found = FindCoordinatorResponse(coordinators=(FindCoordinatorResponseCoordinator(node_id=1, host="x", port=1),))
    return encode_response(FIND_COORDINATOR, header.api_version, header.correlation_id, found)


@pytest.mark.parametrize(
    ("answers", "counted"),
    [
        pytest.param({OFFSET_COMMIT: "refuse"}, "errors", id="a commit that is refused"),
        pytest.param({OFFSET_FETCH: "stale"}, "stale", id="a fetch that shows an older commit"),
        pytest.param({OFFSET_FETCH: "missing"}, "missing", id="a fetch that shows no offset"),
        pytest.param({OFFSET_FETCH: "garbage"}, "malformed", id="bytes that are no reply"),
    ],
)
def test_a_server_that_answers_wrongly_is_counted_and_fails_the_run(
    answers: dict[int, str], counted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    operation = "commit" if OFFSET_COMMIT in answers else "mix"
    with Liar(honest, answers) as liar:
        arguments = ["--port", str(liar.port), "--operation", operation, "--connections", "1", "--groups", "2"]
        code = main([*arguments, "--warmup", "0", "--seconds", "60", "--requests", "150"])

    result = json.loads(capsys.readouterr().out)
    assert code == 1
    assert result[counted] > 0


def test_a_server_that_hangs_up_is_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    with Liar(honest, {OFFSET_COMMIT: "close"}) as liar:
        code = main(["--port", str(liar.port), "--connections", "1", "--groups", "1"])

    assert code == 2
    assert "closed a connection" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "192.0.2.1"], "not this machine"),
        (["--host", "example"], "not an address"),
        (["--seconds", "1e9"], "seconds"),
        (["--connections", "0"], "connections"),
        (["--depth", "100000"], "depth"),
        (["--requests", "0"], "requests"),
    ],
)
def test_a_load_without_bounds_or_on_another_machine_is_not_run(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", "1", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_daemon_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="ended with 1"):
        DaemonProcess(tmp_path / "data", {"num.partitions": "none"})


def test_peers_that_cannot_be_had_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")

    done = CliRunner().invoke(command, ["--peers", "--quick"])

    assert kafka.missing_tools() == ["java", "mvn"]
    assert done.exit_code == 0
    assert done.output == "no peers, for want of java and mvn\n"


def test_runs_are_compared_in_the_same_round() -> None:
    cell = Cell("commit", 10, 50)
    ours, theirs = Runs("offsetd", "on disk", cell), Runs("Kafka", "page cache", cell)
    for rate, other in ((200.0, 100.0), (60.0, 30.0)):
        ours.results.append(_result(rate))
        theirs.results.append(_result(other))

    text = as_text(Report(rounds=2, seconds=1.0, runs=[ours, theirs]))

    assert "2.00x (2.00..2.00)" in text


def _result(rate: float) -> Result:
    figures = dict.fromkeys(Result.__dataclass_fields__, 1)
    return Result(**{**figures, "operation": "commit", "error_codes": {}, "requests_per_second": rate})  # type: ignore[arg-type]
