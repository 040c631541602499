"""The daemon: engine, broker, listener and HTTP, from start to clean stop. It decides nothing about offsets."""

import asyncio
import contextlib
import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final
from uuid import uuid4

import structlog

from offsetd import __version__
from offsetd.broker import Broker, MachineClock, SlotState
from offsetd.coordinator.catalog import Identity
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic
from offsetd.history import sealing
from offsetd.http.server import HttpServer
from offsetd.journal.checkpoint import CheckpointRefused
from offsetd.journal.directory import BrokerDirectory, DirectoryLock, DirectoryRefused, open_directory
from offsetd.journal.engine import EngineSettings, JournalEngine
from offsetd.journal.examine import JournalRefused
from offsetd.journal.syncer import Syncer, SyncerGone
from offsetd.journal.writer import EXIT_CODE as JOURNAL_FAILED
from offsetd.observed import Live, Observed
from offsetd.progress import Progress
from offsetd.server.limits import ServerLimits
from offsetd.server.listener import Listener
from offsetd.settings import Address, Settings

logger = structlog.get_logger()

#: The loop goes on with its clients after so much of the load.
_SLICE_SECONDS = 0.002
_TICK_SECONDS = 1.0
_REFUSED_EXIT_CODE: Final = 1
_FORCED_EXIT_CODE: Final = 130


class Daemon:
    """One broker on one machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._observed = Observed()
        self._clock = MachineClock()
        self._load_began = 0.0
        # Why it ends by itself, and the exit code that says so.
        self._failure: str | None = None
        self._exit_code = 0
        self._asked_to_stop = False
        self._stopping: asyncio.Event
        self._directory: BrokerDirectory
        self._lock: DirectoryLock
        self._cluster_id = ""
        self._syncer = Syncer()
        self._engine: JournalEngine
        self._sealing: sealing.Sealing | None = None
        self._broker: Broker
        self._listener: Listener

    def prepare(self) -> str | None:
        """Take the data directory and start the sync helper, before there is a loop; answer why not, if not."""
        settings = self._settings
        missing = sealing.missing() if settings.history_seal_enabled else None
        if missing is not None:
            return (
                f"history.seal.enabled is true (from {settings.sources['history.seal.enabled']}), and sealing needs "
                f"{missing}, which this Python does not have. Install pyarrow and numpy beside offsetd, or set it to "
                "false and let `offsetd history seal` run where they are."
            )
        try:
            identity, self._directory, self._lock = open_directory(
                settings.data_dir,
                broker_id=settings.broker_id,
                slots=settings.offsets_topic_num_partitions,
                cluster_id=settings.cluster_id,
                random_bytes=os.urandom,
            )
        except DirectoryRefused as refused:
            return str(refused)
        self._cluster_id = identity.cluster_id
        try:
            self._syncer.start()
        except (SyncerGone, OSError) as error:
            self._lock.release()
            return str(error)
        return None

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit code."""
        loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        settings = self._settings
        self._engine = JournalEngine(
            directory=self._directory,
            cluster_id=self._cluster_id,
            slots=settings.offsets_topic_num_partitions,
            settings=_engine_settings(settings),
            observed=self._observed,
            clock=self._clock.wall_ms,
            syncer=self._syncer,
        )
        if settings.history_seal_enabled:
            self._sealing = sealing.Sealing(
                data=settings.data_dir,
                broker_id=settings.broker_id,
                history=self._directory.history,
                observed=self._observed,
                clock=self._clock.wall_ms,
                max_lag_ms=settings.history_seal_max_lag_ms,
                rest_ms=settings.log_cleaner_backoff_ms,
            )
        self._broker = Broker(
            identity=Identity(self._cluster_id, settings.broker_id, *settings.advertised()),
            limits=_limits(settings),
            log=self._engine,
            observed=self._observed,
            clock=self._clock,
            later=loop.call_later,
            new_id=lambda: str(uuid4()),
            known_topics={
                topic.name: KnownTopic(topic.partitions, tuple(topic.latest)) for topic in settings.topics_known
            },
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
        )
        self._engine.connect(
            on_settled=self._broker.commits.on_settled,
            on_refused=self._broker.commits.on_refused,
            tables=self._broker.slots.tables,
        )
        self._listener = Listener(self._broker, _server_limits(settings))
        http = HttpServer(
            observed=self._observed,
            live=self._live,
            ready=self._ready,
            per_group=settings.metrics_groups_enabled,
            groups_max=settings.metrics_groups_max,
        )
        try:
            port = await _listen(self._listener.start, settings.listeners, "listeners, --listen")
            http_port = None
            if settings.http_listeners is not None:
                http_port = await _listen(http.start, settings.http_listeners, "http.listeners, --http")
        except CannotListen as refused:
            print(f"offsetd: {refused}", file=sys.stderr)
            await self._listener.stop(timeout_ms=0)
            self._syncer.close()
            self._lock.release()
            return _REFUSED_EXIT_CODE
        self._broker.identity = Identity(self._cluster_id, settings.broker_id, *settings.advertised(bound_port=port))
        logger.info(
            "broker_started",
            release=__version__,
            cluster_id=self._cluster_id,
            broker_id=settings.broker_id,
            listen=f"{settings.listeners.host}:{port}",
            advertised=f"{self._broker.identity.host}:{self._broker.identity.port}",
            http_port=http_port,
            data=str(settings.data_dir),
            flush=_flush_words(settings),
        )
        if settings.log_flush_interval_messages > 1:
            logger.warning(
                "commits_acknowledged_before_sync",
                reason="a power cut or a crash of the operating system can lose what was acknowledged since the last "
                "sync; only log.flush.interval.messages=1 promises more",
                sync_after_records=settings.log_flush_interval_messages,
                sync_after_ms=settings.log_flush_interval_ms,
            )
        work = asyncio.create_task(self._work())
        work.add_done_callback(self._worked)
        await self._stopping.wait()
        code = await self._close(http, work)
        logger.info("broker_stopped", exit_code=code)
        return code

    # --- what runs beside the requests ------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Load, then keep house, until cancelled."""
        try:
            await self._load()
        except (JournalRefused, CheckpointRefused, SyncerGone, OSError) as error:
            # The words say it all to an operator; a traceback would hide them.
            logger.error("load_failed", reason=str(error))  # noqa: TRY400
            self._fail(str(error), JOURNAL_FAILED if isinstance(error, SyncerGone) else _REFUSED_EXIT_CODE)
            return
        except Exception as error:
            # A fault of ours, or bytes that pass every check and make no sense: refused like any other damage.
            logger.exception("load_failed", reason=repr(error))
            self._fail(repr(error), _REFUSED_EXIT_CODE)
            return
        await self._keep_house()

    def _worked(self, work: "asyncio.Task[None]") -> None:
        """End the daemon for a fault of our own too: without its work it would expire and compact no more."""
        error = None if work.cancelled() else work.exception()
        if error is not None:
            logger.error("daemon_failed", reason=repr(error), exc_info=error)
            self._fail(repr(error), JOURNAL_FAILED)

    def _fail(self, reason: str, exit_code: int) -> None:
        # Never "no offset": what is not whole refuses for as long as the daemon still answers.
        self._broker.slots.fail_loading()
        self._failure = reason
        self._exit_code = exit_code
        self._stopping.set()

    async def _keep_house(self) -> None:
        """Sweep, and let the engine do what is due."""
        expiries = self._broker.expiries()
        interval = self._settings.offsets_retention_check_interval_ms / 1000
        due = time.monotonic() + interval
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            try:
                self._engine.tick(self._clock.wall_ms())
                if self._sealing is not None:
                    self._sealing.consider(self._clock.wall_ms(), disk_full=self._engine.full)
            except OSError as error:
                # Looking at the directory failed: commits and fetches do not depend on that, and it is tried again.
                logger.warning("tick_failed", reason=str(error))
            if time.monotonic() >= due:
                due = time.monotonic() + interval
                await _sliced(expiries.sweep())

    async def _load(self) -> None:
        self._load_began = time.monotonic()
        progress = Progress(sys.stderr)
        # What is loaded lives on and makes no cycles: looking for some in it would cost time now and stalls for ever.
        gc.disable()
        try:
            with contextlib.closing(progress):
                await _sliced(self._engine.open(), progress.scanned)
                await _sliced(self._broker.load(), lambda count: self._loaded(count, progress))
        finally:
            gc.freeze()
            gc.enable()
        took = self._observed.load_seconds = time.monotonic() - self._load_began
        offsets = self._broker.slots.live()
        logger.info(
            "slots_loaded",
            slots=len(self._broker.slots.tables),
            offsets=offsets,
            epoch=self._engine.epoch,
            took_ms=int(took * 1000),
            offsets_per_second=int(offsets / took) if took else 0,
        )

    def _loaded(self, count: int, progress: Progress) -> None:
        self._observed.load_records = count
        self._observed.load_seconds = time.monotonic() - self._load_began
        progress.loaded(count, self._load_share())

    def _load_share(self) -> float:
        states = self._broker.slots.states
        return states.count(SlotState.READY) / len(states)

    # --- what others ask --------------------------------------------------------------------------------------------

    def _ready(self) -> tuple[bool, dict[str, object]]:
        slots = self._broker.slots.count()
        # Not the disk: while it is full fetches are answered, and a balancer that looks here would stop them.
        ready = slots["ready"] == len(self._broker.slots.tables) and not self._stopping.is_set()
        facts: dict[str, object] = {
            "slots": slots,
            "load_share": round(self._load_share(), 3),
            "loaded_offsets": self._observed.load_records,
            "disk_full": self._engine.full,
            "stopping": self._stopping.is_set(),
        }
        if self._failure is not None:
            facts["failure"] = self._failure
        return ready, facts

    def _live(self) -> Live:
        slots = self._broker.slots
        usage = shutil.disk_usage(self._directory.path)
        sizes = self._engine.sizes()
        return Live(
            groups=self._broker.groups.count(),
            group_states=self._broker.groups.states(),
            members=sum(len(membership.roster) for membership in self._broker.groups.memberships.values()),
            offsets=slots.live(),
            slots=slots.count(),
            load_share=self._load_share(),
            journal_bytes=sizes.journal_bytes,
            journal_segments=sizes.journal_segments,
            checkpoint_bytes=sizes.checkpoint_bytes,
            history_bytes=sizes.history_bytes,
            history_segments=sizes.history_segments,
            history_sealed_bytes=sizes.history_sealed_bytes,
            history_sealed_files=sizes.history_sealed_files,
            oldest_sealed_ms=sizes.oldest_sealed_ms,
            disk_free_bytes=usage.free,
            disk_total_bytes=usage.total,
            disk_full=self._engine.full,
            batch_number=self._engine.batch_number,
            epoch=self._engine.epoch,
            shapes=self._broker.shapes.count,
            topics_known=len(self._broker.topics),
            connections_max=self._listener.connections_max,
            per_group=self._per_group(),
        )

    def _per_group(self) -> Iterator[tuple[str, int, int]]:
        for table in self._broker.slots.tables:
            for group_id, group in table.groups.items():
                yield group_id, group.live, group.newest_ms() or 0

    # --- the end ----------------------------------------------------------------------------------------------------

    def _stop(self, number: int) -> None:
        if self._asked_to_stop:
            # Asked twice: what is acknowledged is on disk anyway.
            os._exit(_FORCED_EXIT_CODE)
        self._asked_to_stop = True
        logger.info("stop_requested", signal=signal.Signals(number).name)
        self._stopping.set()

    async def _close(self, http: HttpServer, work: "asyncio.Task[None]") -> int:
        self._broker.groups.stop()
        await self._listener.stop(timeout_ms=self._settings.shutdown_timeout_ms)
        work.cancel()
        await asyncio.wait([work])
        if self._sealing is not None:
            await self._sealing.stop()
        await self._engine.close()
        await http.stop()
        self._lock.release()
        return self._exit_code


class CannotListen(Exception):
    """An address cannot be had; the words say which, why, and where it was asked for."""


async def _listen(start: Callable[[str, int], Awaitable[int]], address: Address, asked_by: str) -> int:
    try:
        return await start(address.host, address.port)
    except OSError as error:
        # The loop writes the address once more before the reason.
        reason = (error.strerror or str(error)).rpartition("): ")[2]
        raise CannotListen(f"cannot listen on {address} ({asked_by}): {reason}") from error


async def _sliced(work: Iterator[int], heard: Callable[[int], None] = lambda _: None) -> None:
    """Run a long piece of work in slices, with turns for the loop between them."""
    began = time.monotonic()
    for count in work:
        heard(count)
        if time.monotonic() - began >= _SLICE_SECONDS:
            await asyncio.sleep(0)
            began = time.monotonic()


def _flush_words(settings: Settings) -> str:
    if settings.log_flush_interval_messages == 1:
        return "every batch is synced before it is acknowledged"
    return "by interval: a power cut can lose acknowledged commits"


def _limits(settings: Settings) -> Limits:
    return Limits(
        slots=settings.offsets_topic_num_partitions,
        metadata_units_max=settings.offset_metadata_max_bytes,
        topic_partitions=settings.num_partitions,
        topics_asked_max=settings.topics_asked_max,
        strict=settings.topics_strict,
        response_bytes_max=settings.response_max_bytes,
        retention_ms=settings.retention_ms_for,
        session_timeout_ms=(settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms),
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        group_members_max=settings.group_max_size,
    )


def _server_limits(settings: Settings) -> ServerLimits:
    return ServerLimits(
        frame_bytes_max=settings.socket_request_max_bytes,
        connections_max=settings.max_connections_total,
        connections_per_host_max=settings.max_connections_per_ip,
        connections_per_second_max=settings.max_connection_creation_rate,
        idle_ms_max=settings.connections_max_idle_ms,
        frame_read_ms_max=settings.request_read_timeout_ms,
        reply_write_ms_max=settings.response_write_timeout_ms,
        in_flight_max=settings.requests_in_flight_max,
        memory_bytes_max=settings.queued_max_bytes,
    )


def _engine_settings(settings: Settings) -> EngineSettings:
    return EngineSettings(
        flush_messages=settings.log_flush_interval_messages,
        flush_ms=settings.log_flush_interval_ms,
        segment_bytes=settings.log_segment_bytes,
        roll_ms=settings.log_roll_ms,
        cleanable_ratio=settings.log_cleaner_min_cleanable_ratio,
        compaction_lag_ms=settings.log_cleaner_max_compaction_lag_ms,
        cleaner_backoff_ms=settings.log_cleaner_backoff_ms,
        history=settings.history_enabled,
        history_ms=settings.history_retention_ms,
        history_bytes=settings.history_retention_bytes,
        reserve_bytes=settings.disk_reserve_bytes,
    )
