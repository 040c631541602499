"""Which request goes where. Each API's own steps are beside this file; here is only the table of routes."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import structlog

from offsetd.broker.client import Client, Clock
from offsetd.broker.commits import Commits
from offsetd.broker.expiries import Expiries
from offsetd.broker.fetches import Fetches
from offsetd.broker.groups import Groups, Timer
from offsetd.broker.longreads import LongReads, ReplyTooLarge
from offsetd.broker.metadata import Metadata
from offsetd.broker.removals import Removals
from offsetd.broker.slots import Slots
from offsetd.broker.turns import Turn
from offsetd.broker.waiter import Waiters
from offsetd.coordinator.catalog import (
    Identity,
    answer_api_versions,
    answer_describe_cluster,
    answer_describe_configs,
    answer_find_coordinator,
    refuse_api_versions,
)
from offsetd.coordinator.consumer_group import refuse_consumer_group_heartbeat
from offsetd.coordinator.ends import (
    answer_fetch_records,
    answer_list_offsets,
    refuse_produce,
    topics_ended,
    topics_polled,
)
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.overview import GroupView, view_of
from offsetd.coordinator.slices import Slices, descriptions_in_slices, ends_in_slices, groups_in_slices
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.log import Log
from offsetd.observed import Observed
from protocol.api import (
    API_VERSIONS,
    APIS,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    PRODUCE,
    SYNC_GROUP,
    decode_header,
    decode_request,
    encode_response,
)
from protocol.describe_groups import DescribeGroupsRequest
from protocol.errors import Code
from protocol.fetch import FetchRequest
from protocol.header import RequestHeader
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.list_offsets import ListOffsetsRequest
from protocol.produce import ProduceRequest

logger = structlog.get_logger()

#: A client that asks Fetch to wait longer than this is answered earlier; it will ask again.
_FETCH_WAIT_MS_MAX = 30_000


class Broker:
    """Answers every request of every connection."""

    def __init__(
        self,
        *,
        identity: Identity,
        limits: Limits,
        log: Log,
        observed: Observed,
        clock: Clock,
        later: Callable[[float, Callable[[], None]], Timer],
        new_id: Callable[[], str],
        known_topics: dict[str, KnownTopic] | None = None,
        commit_timeout_ms: int = 5000,
    ) -> None:
        self.identity = identity
        self.observed = observed
        self.slots = Slots(limits.slots)
        self.topics = Topics(
            cluster_id=identity.cluster_id,
            index=self.slots.index,
            limits=limits,
            known=known_topics or {},
            are_whole=self.slots.are_whole,
        )
        self._limits = limits
        self._log = log
        self._clock = clock
        self._later = later
        self._waiters = Waiters(log, clock)
        self.groups = Groups(
            slots=self.slots,
            waiters=self._waiters,
            limits=limits,
            observed=observed,
            clock=clock,
            later=later,
            new_id=new_id,
        )
        removals = Removals(
            slots=self.slots,
            waiters=self._waiters,
            groups=self.groups,
            topics=self.topics,
            observed=observed,
            clock=clock,
        )
        self.commits = Commits(
            slots=self.slots,
            waiters=self._waiters,
            groups=self.groups,
            topics=self.topics,
            limits=limits,
            observed=observed,
            clock=clock,
            timeout_ms=commit_timeout_ms,
        )
        self.shapes = self.commits.shapes
        self._long = LongReads(later)
        self.fetches = Fetches(
            slots=self.slots,
            observed=observed,
            clock=clock,
            reply_bytes_max=limits.response_bytes_max,
            long=self._long,
        )
        self.metadata = Metadata(
            identity=lambda: self.identity,
            topics=self.topics,
            observed=observed,
            clock=clock,
            reply_bytes_max=limits.response_bytes_max,
            long=self._long,
        )
        self._served = [(api.key, api.min_version, api.max_version) for api in APIS.values()]
        own: dict[int, Callable[[bytes, Client], None]] = {
            OFFSET_COMMIT: self.commits.receive,
            OFFSET_FETCH: self.fetches.receive,
            METADATA: self.metadata.receive,
            LIST_OFFSETS: self._list_offsets,
            FETCH: self._fetch_records,
            LIST_GROUPS: self._list_groups,
            DESCRIBE_GROUPS: self._describe_groups,
            JOIN_GROUP: self.groups.receive_join,
            SYNC_GROUP: self.groups.receive_sync,
            HEARTBEAT: self.groups.receive_heartbeat,
            LEAVE_GROUP: self.groups.receive_leave,
            DELETE_GROUPS: removals.receive_groups,
            OFFSET_DELETE: removals.receive_offsets,
        }
        self._routes = {
            key.to_bytes(2, "big") + version.to_bytes(2, "big"): (own.get(key, self._answer), (key, version))
            for key, low, high in self._served
            for version in range(low, high + 1)
        }

    def receive(self, frame: bytes, client: Client) -> None:
        """Take one whole frame (without its size) and see to it that it is answered in its turn.

        Raises:
            ProtocolError: the frame cannot be read, or nobody serves its API and version; close the connection.
        """
        route = self._routes.get(frame[:4])
        if route is None:
            self._unserved(frame, client)
            return
        handle, counted = route
        self.observed.requests[counted] += 1
        handle(frame, client)

    def _unserved(self, frame: bytes, client: Client) -> None:
        # Of all that is not served, only a version of ApiVersions gets past its header.
        header, _ = decode_header(frame)
        # Whatever version the client tried, it can read version 0, and learns from it what to try next.
        reply = refuse_api_versions([row for row in self._served if row[0] == API_VERSIONS])
        client.turns.reply(encode_response(API_VERSIONS, 0, header.correlation_id, reply))

    def _answer(self, frame: bytes, client: Client) -> None:
        header, request = decode_request(frame)
        turns = client.turns
        if isinstance(request, ProduceRequest) and request.acks == 0:
            # Such a producer reads no reply, and would take one for the answer to its next request.
            return
        since = client.received_at
        turns.read(lambda _: self._reply(header, request, since))

    def _reply(self, header: RequestHeader, request: Any, since: float) -> bytes:
        key, version = header.api_key, header.api_version
        response: Any
        if key == FIND_COORDINATOR:
            response = answer_find_coordinator(request, version=version, identity=self.identity)
        elif key == API_VERSIONS:
            response = answer_api_versions(request, version=version, served=self._served)
        elif key == DESCRIBE_CLUSTER:
            response = answer_describe_cluster(request, identity=self.identity)
        elif key == DESCRIBE_CONFIGS:
            response = answer_describe_configs(request, identity=self.identity, topics=self.topics)
        elif key == CONSUMER_GROUP_HEARTBEAT:
            response = refuse_consumer_group_heartbeat()
        else:
            assert key == PRODUCE, f"no answer is written for API {key}"
            response = refuse_produce(request, version=version)
        return self._encoded(header, response, since)

    def _list_groups(self, frame: bytes, client: Client) -> None:
        header, decoded = decode_request(frame)
        request = cast("ListGroupsRequest", decoded)
        turns, since = client.turns, client.received_at

        def read(turn: Turn) -> bytes | None:
            if not self.slots.are_whole():
                self.observed.refusals[LIST_GROUPS, int(Code.COORDINATOR_LOAD_IN_PROGRESS)] += 1
                loading = ListGroupsResponse(error_code=Code.COORDINATOR_LOAD_IN_PROGRESS)
                return self._encoded(header, loading, since)
            self.observed.latency[LIST_GROUPS].observe(self._clock.monotonic() - since)
            slices = groups_in_slices(
                request,
                self.groups.ids(),
                self.groups.view,
                version=header.api_version,
                correlation_id=header.correlation_id,
                bytes_max=self._limits.response_bytes_max,
            )
            return self._long.read(turns, turn, slices)

        turns.read(read)

    def _describe_groups(self, frame: bytes, client: Client) -> None:
        header, decoded = decode_request(frame)
        request = cast("DescribeGroupsRequest", decoded)
        turns, since = client.turns, client.received_at
        turns.read(lambda turn: self._long.read(turns, turn, self._descriptions(header, request, since)))

    def _descriptions(self, header: RequestHeader, request: DescribeGroupsRequest, since: float) -> Slices:
        bytes_max = self._limits.response_bytes_max
        for lookup in (self._view, lambda _: (Code.UNKNOWN_SERVER_ERROR, None)):
            reply = yield from descriptions_in_slices(
                request,
                lookup,
                version=header.api_version,
                correlation_id=header.correlation_id,
                bytes_max=bytes_max,
            )
            if reply is not None:
                self.observed.latency[DESCRIBE_GROUPS].observe(self._clock.monotonic() - since)
                return reply
            logger.warning("reply_too_large", api="DescribeGroups", limit_bytes=bytes_max)
        raise ReplyTooLarge(limit_bytes=bytes_max)

    def _view(self, group_id: str) -> tuple[Code, GroupView | None]:
        code, group = self.slots.lookup(group_id)
        if code is not Code.NONE:
            self.observed.refusals[DESCRIBE_GROUPS, int(code)] += 1
            return code, None
        membership = self.groups.memberships.get(group_id)
        return code, None if group is None and membership is None else view_of(membership, group)

    def _encoded(self, header: RequestHeader, response: Any, since: float) -> bytes:
        reply = encode_response(header.api_key, header.api_version, header.correlation_id, response)
        self.observed.latency[header.api_key].observe(self._clock.monotonic() - since)
        return reply

    def _list_offsets(self, frame: bytes, client: Client) -> None:
        header, decoded = decode_request(frame)
        request = cast("ListOffsetsRequest", decoded)
        turns, since = client.turns, client.received_at

        def answer() -> bytes:
            response = answer_list_offsets(request, version=header.api_version, topics=self.topics)
            return self._encoded(header, response, since)

        ended = topics_ended(request)
        turns.read(lambda turn: self._long.read(turns, turn, ends_in_slices(self.topics.ends, ended, answer)))

    def _fetch_records(self, frame: bytes, client: Client) -> None:
        """Answer Fetch with nothing, after the wait that the client asked for; it begins when its turn has come."""
        header, decoded = decode_request(frame)
        request = cast("FetchRequest", decoded)
        turns = client.turns

        def answer() -> bytes:
            response = answer_fetch_records(request, version=header.api_version, topics=self.topics)
            return encode_response(FETCH, header.api_version, header.correlation_id, response)

        def read(turn: Turn) -> bytes | None:
            polled = topics_polled(request, version=header.api_version, topics=self.topics)
            return self._long.read(turns, turn, ends_in_slices(self.topics.ends, polled, answer))

        def wait(turn: Turn) -> None:
            turn.parked = read
            self._later(wait_ms / 1000, lambda: turns.unpark(turn))

        wait_ms = min(request.max_wait_ms, _FETCH_WAIT_MS_MAX)
        turns.read(wait if wait_ms > 0 and request.min_bytes > 0 else read)

    def load(self) -> Iterator[int]:
        """Fill every slot from the log, in slices; yields offsets so far."""
        return self.slots.load(self._log, self.groups.take_up)

    def expiries(self) -> Expiries:
        """Return the sweep, for when every slot is loaded."""
        return Expiries(
            slots=self.slots,
            waiters=self._waiters,
            groups=self.groups,
            limits=self._limits,
            observed=self.observed,
            clock=self._clock,
        )
