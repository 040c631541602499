"""`offsetd bench`: how fast a fresh daemon is on this machine, and if asked Apache Kafka beside it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from offsetd.bench import kafka, picture, report, runner
from offsetd.bench.server import ServerFailed

_LIBRARIES = Path(".peers/kafka")
_POM = Path("deploy/peers/pom.xml")


@click.command()
@click.option("--quick", is_flag=True, help="One short round, rough figures.")
@click.option("--rounds", type=click.IntRange(1, 100), default=None, help="How often every cell is run. Default: 3.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), default=None, help="Write every figure here.")
@click.option("--picture", "picture_path", type=click.Path(path_type=Path), default=None, help="Write a PNG here.")
@click.option("--peers", is_flag=True, help="Run Apache Kafka beside it (needs Java and Maven, from a checkout).")
@click.option("--large", is_flag=True, help="Also a million live offsets after ten million commits.")
def command(
    *, quick: bool, rounds: int | None, json_path: Path | None, picture_path: Path | None, peers: bool, large: bool
) -> None:
    """Measure a fresh broker under load."""
    plan = runner.Plan.quick() if quick else runner.Plan()
    plan = replace(plan, rounds=rounds or plan.rounds, large=large)
    try:
        if peers:
            missing = kafka.missing_tools()
            if missing or not _POM.exists():
                click.echo(f"no peers, for want of {' and '.join(missing) or _POM}")
                return
            kafka.bring(_POM, _LIBRARIES)
            plan = replace(plan, peers=_LIBRARIES)
        done = runner.run(plan, lambda line: click.echo(line, err=True))
    except ServerFailed as error:
        click.echo(f"offsetd: {error}", err=True)
        sys.exit(1)
    click.echo(report.as_text(done))
    if json_path is not None:
        json_path.write_text(json.dumps(report.as_json(done), indent=1) + "\n", encoding="utf-8")
    if picture_path is not None:
        refusal = picture.draw(done, picture_path)
        click.echo(refusal or f"picture: {picture_path}")
