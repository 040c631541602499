"""The line of a load: plan, reconcile, write, verify, publish, and only then tell offsetd."""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from offsetd.client import BlockingClient, ClientError
from offsetd.client.position import Committed, TopicPartition
from offsetd.failpoint import failpoint
from offsetd.pipeline.load import source
from offsetd.pipeline.load.delta_sink import DeltaSink
from offsetd.pipeline.load.manifest import Manifest
from offsetd.pipeline.load.observer import Observer, Silent
from offsetd.pipeline.load.plan import Logs, Plan, choose_starts, make_plan, partitions
from offsetd.pipeline.load.reconcile import MARK, Reconciled, reconcile
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused, NotCommitted, RecordsGone
from offsetd.pipeline.load.request import Request, TableFormat
from offsetd.pipeline.load.sink import Draft, ParquetSink, Sink, Stored, quick_writes
from offsetd.pipeline.load.steps import Steps
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.load.supersede import begin, refuse_missing, replaced
from offsetd.pipeline.load.upstream import ask_ends, ask_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What Spark's Kafka source ends a job with when the broker no longer has what was asked for.
_GONE: Final = "KafkaIllegalStateException"

SessionMaker = Callable[[], "SparkSession"]


def load(request: Request, session: SessionMaker, observer: Observer | None = None) -> Summary:
    """Load what is new, and return what was done.

    Args:
        session: makes the Spark session, when it is needed: a dry run of a Parquet table needs none.

    Raises:
        LoadRefused: in one of its kinds; `NotCommitted` after the load was published, all others before.
    """
    return Loader(request, session, observer or Silent()).run()


class Loader:
    """One load."""

    def __init__(self, request: Request, session: SessionMaker, observer: Observer) -> None:
        self.request = request
        self.steps = Steps(observer)
        self.observer = observer
        self.started_at = datetime.now(UTC)
        self._session = session
        delta = request.format is TableFormat.DELTA
        self._sink: Sink = DeltaSink(request.out, session) if delta else ParquetSink(request.out)

    def run(self) -> Summary:
        """Load what is new, and return what was done."""
        if self.request.format is TableFormat.DELTA:
            with self.steps.stage("start"):
                self._session()  # the table's log is read by Spark
        with self.steps.stage("plan"):
            plan = self._plan()
        self.observer.planned(plan)
        if self.request.dry_run:
            return self._summary(plan, None, committed=False)
        failpoint("load_planned")
        if not plan.ranges and not plan.skipped:
            return self._finish(plan, None)
        stored = self._store(plan)
        self._commit_plan(plan)
        failpoint("load_committed")
        return self._finish(plan, stored)

    # --- plan -------------------------------------------------------------------------------------------------------

    def _plan(self) -> Plan:
        request = self.request
        if not request.dry_run:
            for sentence in self._sink.put_right():
                self.observer.noted(sentence)
        newest = self._sink.newest()
        self._refuse_other_table(newest)
        logs = ask_logs(request.upstream, request.topics, time_ms=request.from_time_ms)
        committed = self._committed()
        reconciled = self._reconcile(newest, committed, logs)
        number = 1 if newest is None else newest.number + 1
        if request.supersede:
            return self._superseding(logs, newest, number)
        positions = {} if newest is None else newest.positions
        starts = choose_starts(
            logs,
            positions=positions,
            committed={key: found.offset for key, found in committed.items()},
            accepted=reconciled.accepted,
        )
        return make_plan(
            group=request.group,
            out=request.out,
            number=number,
            logs=logs,
            starts=starts,
            positions=positions,
            records_max=request.records_max,
        )

    def _superseding(self, logs: Logs, newest: Manifest | None, number: int) -> Plan:
        live = self._sink.live()
        numbers = replaced(live, logs.times)
        begun = begin(live, numbers)
        refuse_missing(begun, logs.ends)
        positions = {} if newest is None else newest.positions
        return make_plan(
            group=self.request.group,
            out=self.request.out,
            number=number,
            logs=logs,
            starts={**choose_starts(logs, positions=positions, committed={}), **begun},
            positions=positions,
            supersedes=numbers,
        )

    def _refuse_other_table(self, newest: Manifest | None) -> None:
        if newest is None:
            return
        if newest.group is not None and newest.group != self.request.group:
            raise BadRequest(
                f"the table {self.request.out} belongs to group {newest.group!r}: load it with that --group, or "
                "choose another --out."
            )
        asked = self.request.values.format.value
        if newest.value_format != asked:
            raise BadRequest(
                f"the table {self.request.out} has values as {newest.value_format}, and {asked} was asked for. One "
                "column cannot be both: choose another --out."
            )

    # --- the group --------------------------------------------------------------------------------------------------

    def _committed(self) -> Mapping[TopicPartition, Committed]:
        if self.request.group is None:
            return {}
        try:
            with self._client() as client:
                return client.fetch(self.request.group)
        except (ClientError, OSError) as error:
            raise LoadRefused(
                f"offsetd at {self.request.offsets} cannot say where group {self.request.group!r} is: {error}. Nothing "
                "was loaded."
            ) from error

    def _reconcile(
        self, newest: Manifest | None, committed: Mapping[TopicPartition, Committed], logs: Logs
    ) -> Reconciled:
        if self.request.group is None:
            return Reconciled(owed={}, accepted={})
        reconciled = reconcile(newest, committed, asked=logs.ends.keys(), choice=self.request.choice)
        if newest is not None and reconciled.owed:
            if self.request.dry_run:
                self.observer.noted(f"load {newest.number} is not committed yet: a real run would do that first.")
                return reconciled
            self._commit(reconciled.owed, newest.number)
            self.observer.noted(
                f"committed load {newest.number} for {partitions(len(reconciled.owed))}: the group was elsewhere."
            )
            failpoint("load_repaired")
        return reconciled

    def _commit_plan(self, plan: Plan) -> None:
        if plan.group is None:
            return
        with self.steps.stage("commit"):
            try:
                self._commit({item.key: item.end for item in (*plan.ranges, *plan.idle)}, plan.number)
            except LoadRefused as refused:
                raise NotCommitted(
                    f"load {plan.number} is published and complete, and {refused.sentence} The next run commits it; "
                    "nothing is loaded twice."
                ) from refused

    def _commit(self, positions: Mapping[TopicPartition, int], number: int) -> None:
        assert self.request.group is not None
        marked = {key: Committed(offset, f"{MARK}{number}") for key, offset in positions.items()}
        try:
            with self._client() as client:
                client.commit(self.request.group, marked)
        except (ClientError, OSError) as error:
            raise LoadRefused(
                f"offsetd at {self.request.offsets} did not take the offsets of group {self.request.group!r}: {error}."
            ) from error

    def _client(self) -> BlockingClient:
        return BlockingClient(self.request.offsets, client_id="offsetd-load")

    # --- the table --------------------------------------------------------------------------------------------------

    def _store(self, plan: Plan) -> Stored:
        from py4j.protocol import Py4JError  # noqa: PLC0415  # comes with pyspark
        from pyspark.errors import PySparkException  # noqa: PLC0415

        draft = Draft(
            plan=plan,
            writer=uuid.uuid4().hex,
            created_at=self.started_at.isoformat(timespec="seconds"),
            value_format=self.request.values.format.value,
            exact=self.request.exact,
        )
        try:
            frame = None
            if plan.ranges:
                with self.steps.stage("start"):
                    frame = source.read(
                        quick_writes(self._session()),
                        self.request.upstream,
                        plan,
                        self.request.values,
                        day=draft.day,
                        split=self.request.split,
                    )
            return self._sink.store(frame, draft, self.steps)
        except (PySparkException, Py4JError) as error:
            if _GONE in str(error):
                raise RecordsGone(
                    f"the log lost records while load {plan.number} read them: {_first_words(error)}\nNothing was "
                    "published. Run again to see how many are gone."
                ) from error
            raise LoadRefused(f"Spark could not write load {plan.number}: {_first_words(error)}") from error

    # --- the end ----------------------------------------------------------------------------------------------------

    def _finish(self, plan: Plan, stored: Stored | None) -> Summary:
        summary = self._summary(plan, stored, committed=plan.group is not None)
        self.observer.finished(summary)
        return summary

    def _summary(self, plan: Plan, stored: Stored | None, *, committed: bool) -> Summary:
        starts = {item.key: item.start for item in (*plan.ranges, *plan.idle)}
        ends = dict(plan.ends)
        if stored is not None:
            try:
                ends = ask_ends(self.request.upstream, plan.ends)
            except LoadRefused as refused:
                self.observer.noted(f"the lag is against the log's end of the plan: {refused.sentence}")
        return Summary(
            plan=plan,
            rows={item.key: 0 for item in plan.ranges} if stored is None else stored.rows,
            files=0 if stored is None else stored.files,
            bytes=0 if stored is None else stored.bytes,
            stages=self.steps.taken,
            lag_before={key: max(end - starts[key], 0) for key, end in plan.ends.items()},
            lag_after={key: max(end - plan.positions[key], 0) for key, end in ends.items()},
            committed=committed,
            started_at=self.started_at,
            checked={} if stored is None else stored.checks,
            unparsed=0 if stored is None else stored.unparsed,
        )


def _first_words(error: Exception) -> str:
    """Return what a person can use of an error of Java's, which brings its whole stack."""
    java = getattr(error, "java_exception", None)
    words = str(java.toString() if java is not None else error).strip()
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return "\n  ".join([words.splitlines()[0], *causes[-1:]])
