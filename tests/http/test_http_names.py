"""What APIs are called in metrics."""

from offsetd.http.names import api_name


def test_every_api_goes_by_kafkas_name() -> None:
    assert {key: api_name(key) for key in (0, 8, 11, 12, 13, 14, 15, 16, 42, 47, 60, 68)} == {
        0: "Produce",
        8: "OffsetCommit",
        11: "JoinGroup",
        12: "Heartbeat",
        13: "LeaveGroup",
        14: "SyncGroup",
        15: "DescribeGroups",
        16: "ListGroups",
        42: "DeleteGroups",
        47: "OffsetDelete",
        60: "DescribeCluster",
        68: "ConsumerGroupHeartbeat",
    }


def test_an_api_that_is_not_served_goes_by_its_number() -> None:
    assert api_name(999) == "999"
