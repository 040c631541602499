"""What was measured of the pipeline, as lines for people. Every ratio is of the same rounds."""

from collections.abc import Iterator
from dataclasses import dataclass

from offsetd.bench.numbers import Spread
from offsetd.bench.pipeline import history, loading
from offsetd.bench.pipeline.importing import Importing
from offsetd.bench.pipeline.loading import Loading
from offsetd.bench.pipeline.rounds import Contest
from offsetd.bench.report import machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All contests."""

    loading: Loading
    importing: Importing
    history: Contest


def as_text(figures: Figures) -> str:
    """Return the figures; median (lowest..highest)."""
    return "\n".join(_lines(figures))


def _lines(figures: Figures) -> Iterator[str]:
    facts = machine()
    yield f"offsetd {facts['offsetd']}, Python {facts['python']}, {facts['cores']} cores: {facts['processor']}"
    yield ""
    rounds = figures.loading.rounds
    yield from _contest(rounds, loading.PLAIN)
    own = Spread.of([100 * share for share in figures.loading.own_shares])
    yield f"  the loader's own work: {own.median:.1f} % ({own.low:.1f}..{own.high:.1f}) of the load"
    importing = figures.importing
    yield ""
    yield f"import of {importing.offsets:,} offsets, {importing.import_seconds:.1f} s"
    yield f"  by Spark:              {importing.offsets_per_second:>12,.0f} offsets/s"
    yield f"  by the load generator: {importing.generator_offsets_per_second:>12,.0f} offsets/s"
    yield ""
    yield from _contest(figures.history, history.PLAIN)


def _contest(contest: Contest, anchor: str) -> Iterator[str]:
    yield f"{contest.work}, {contest.records:,} records, {len(contest.seconds[anchor])} rounds"
    for name in contest.seconds:
        rate, ratio = contest.rate(name), contest.ratio(name, anchor)
        yield (
            f"  {name + ':':<24} {rate.median:>12,.0f} records/s ({rate.low:,.0f}..{rate.high:,.0f}), "
            f"{ratio.median:.2f}x ({ratio.low:.2f}..{ratio.high:.2f}) {anchor}"
        )
