"""Requests of members that are held: their place in the order of replies, and how the decision is written down."""

from offsetd.broker.turns import Turn, Turns
from offsetd.coordinator.effects import JoinReply, SyncReply
from offsetd.observed import Observed
from protocol.api import Response, encode_response
from protocol.errors import Code
from protocol.header import RequestHeader
from protocol.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.sync_group import SyncGroupResponse

#: The first version of JoinGroup in which there may be no protocol.
_NO_PROTOCOL_SINCE = 7


class Held(Turn):
    """A request that is answered when others, or the passing of time, have decided it."""

    __slots__ = ("_header", "_observed", "_turns")

    def __init__(self, turns: Turns, header: RequestHeader, observed: Observed) -> None:
        super().__init__()
        self._turns = turns
        self._header = header
        self._observed = observed
        turns.wait(self)

    def _send(self, code: Code, response: Response) -> None:
        header = self._header
        if code is not Code.NONE:
            self._observed.refusals[header.api_key, int(code)] += 1
        reply = encode_response(header.api_key, header.api_version, header.correlation_id, response)
        self._turns.done(self, reply)


class HeldJoin(Held):
    """A JoinGroup until its join phase is over."""

    __slots__ = ()

    def answer(self, reply: JoinReply | SyncReply) -> None:
        """Send the decision, when the turn has come."""
        assert isinstance(reply, JoinReply), "a join is answered as a join"
        nameless = None if self._header.api_version >= _NO_PROTOCOL_SINCE else ""
        response = JoinGroupResponse(
            error_code=reply.code,
            generation_id=reply.generation,
            protocol_type=reply.protocol_type,
            protocol_name=nameless if reply.protocol is None else reply.protocol,
            leader=reply.leader,
            skip_assignment=reply.skip_assignment,
            member_id=reply.member_id,
            members=tuple(
                JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
                for member_id, instance_id, metadata in reply.members
            ),
        )
        self._send(reply.code, response)


class HeldSync(Held):
    """A SyncGroup until its generation is in the log."""

    __slots__ = ()

    def answer(self, reply: JoinReply | SyncReply) -> None:
        """Send the decision, when the turn has come."""
        assert isinstance(reply, SyncReply), "a sync is answered as a sync"
        response = SyncGroupResponse(
            error_code=reply.code,
            protocol_type=reply.protocol_type,
            protocol_name=reply.protocol,
            assignment=reply.assignment,
        )
        self._send(reply.code, response)
