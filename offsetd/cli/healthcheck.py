"""``offsetd healthcheck``: exit 0 if a broker answers, else 1, with one sentence either way."""

import click

from offsetd.cli.options import with_settings
from offsetd.cli.probe import probe_broker, probe_ready
from offsetd.settings import Settings

SECONDS_MAX = 3.0


@click.command()
@click.option("--ready", is_flag=True, help="Also ask /readyz whether every group is served.")
@with_settings
def command(settings: Settings, ready: bool) -> None:  # noqa: FBT001  # click passes by name
    """Ask a running broker whether it is well; --listen says which, else the configured one."""
    findings = [probe_broker(settings.listeners.reachable(), seconds_max=SECONDS_MAX)]
    if ready and settings.http_listeners is None:
        raise click.ClickException("http.listeners is empty, so /readyz cannot be asked.")
    if ready and settings.http_listeners is not None and findings[0].well:
        findings.append(probe_ready(settings.http_listeners.reachable(), seconds_max=SECONDS_MAX))
    # One sentence: the last one says everything that the ones before it did, or why not.
    if not findings[-1].well:
        raise click.ClickException(findings[-1].sentence)
    click.echo(findings[-1].sentence)
