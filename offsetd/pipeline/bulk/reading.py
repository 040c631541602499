"""Dumps of offsets as Spark reads them: every format becomes rows of the same columns, or a row that says why not."""

import csv
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from offsetd.pipeline.bulk.row import COLUMNS, OPTIONAL, REQUIRED, Malformed, OffsetRow, make_row
from offsetd.pipeline.bulk.zookeeper import parse_znode, znode_of_line, znodes_of_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("csv", "parquet", "zookeeper", "kafka-csv")
SCHEMA: Final = (
    "group string, topic string, partition int, offset bigint, metadata string, leader_epoch int, problem string"
)
_CORRUPT: Final = "_corrupt_record"
#: Rows of one Arrow batch.
_BATCH_ROWS: Final = 10_000
_SHOWN_CHARACTERS_MAX: Final = 200

#: Turns a row of the file into rows of offsets, each with its problem, if it has one.
Parser = Callable[[dict[str, Any]], Iterator[tuple[OffsetRow | None, str | None]]]


class DumpUnreadable(Exception):
    """A file is not what it is said to be; says what is wanted."""


def sniff(name: str, first_line: str) -> str:
    """Tell the format of a dump by its name and its first line."""
    line = first_line.strip()
    if re.search(r"\.parquet/?$", name):
        return "parquet"
    if line.startswith(("/", "{", "[")):
        return "zookeeper"
    return "csv" if set(REQUIRED) <= set(next(csv.reader([line]), [])) else "kafka-csv"


def read_dump(
    spark: "SparkSession",
    path: str,
    kind: str | None = None,
    *,
    group: str | None = None,
    names_group: str | None = None,
) -> "DataFrame":
    """Read a dump into a frame of `SCHEMA`.

    Args:
        kind: of `FORMATS`; None to tell it by the file.
        group: of a Kafka CSV that names none; anything else refuses it.
        names_group: the same, for callers who pick a group: what names its groups does not mind.

    Raises:
        DumpUnreadable: it is not there, or not of that format.
    """
    # Imported here: pyspark is not there without the extra.
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        first = "" if path.rstrip("/").endswith(".parquet") else _first_line(spark, path)
        kind = kind or sniff(path, first)
        if group is not None and kind != "kafka-csv":
            raise DumpUnreadable(f"--group is for a Kafka CSV that names no group, and {path} is read as {kind}")
        if kind == "parquet":
            return _parsed(_parquet(spark, path), _parse_fields)
        if kind == "zookeeper":
            whole = first.lstrip().startswith(("{", "["))
            frame = spark.read.text(path, wholetext=whole)
            return _parsed(frame, _parse_json if whole else _parse_line)
        if kind == "kafka-csv" and names_group is not None and len(next(csv.reader([first]), [])) < len(REQUIRED):
            group = names_group
        columns = header_columns(first) if kind == "csv" else kafka_columns(first, group)
        return _parsed(_csv(spark, path, columns, header=kind == "csv"), _with_group(group))
    except PySparkException as error:
        raise DumpUnreadable(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def header_columns(line: str) -> list[str]:
    """Return the columns that a CSV's first line names, in their order.

    Raises:
        DumpUnreadable: one is missing, unknown, or named twice.
    """
    names = [name.strip() for name in next(csv.reader([line.removeprefix("\ufeff")]), [])]
    missing = [name for name in REQUIRED if name not in names]
    unknown = [name for name in names if name not in COLUMNS]
    if missing or unknown or len(set(names)) != len(names):
        raise DumpUnreadable(
            f"the first line {line[:_SHOWN_CHARACTERS_MAX]!r} does not name the columns: want {','.join(REQUIRED)}"
            f"[,{','.join(OPTIONAL)}]"
        )
    return names


def kafka_columns(line: str, group: str | None) -> list[str]:
    """Return the columns of what ``kafka-consumer-groups --export`` writes, which has no header.

    Raises:
        DumpUnreadable: it has neither three columns nor four, or a group is named twice or not at all.
    """
    count = len(next(csv.reader([line]), []))
    if count == len(REQUIRED):
        if group is not None:
            raise DumpUnreadable("the file names its groups: leave --group out")
        return list(REQUIRED)
    if count != len(REQUIRED) - 1:
        raise DumpUnreadable(f"the first line has {count} columns, want group,topic,partition,offset without the names")
    if group is None:
        raise DumpUnreadable("the file is of one group and does not name it: say --group")
    return list(REQUIRED[1:])


def _first_line(spark: "SparkSession", path: str) -> str:
    rows = spark.read.text(path).head(1)
    if not rows:
        raise DumpUnreadable(f"{path} is empty")
    return str(rows[0][0])


def _csv(spark: "SparkSession", path: str, columns: list[str], *, header: bool) -> "DataFrame":
    schema = ", ".join(f"`{name}` string" for name in (*columns, _CORRUPT))
    # A quote within quotes is doubled; line ends may stand within quotes, for metadata is any text.
    return spark.read.schema(schema).csv(
        path,
        header=header,
        multiLine=True,
        quote='"',
        escape='"',
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=_CORRUPT,
    )


def _parquet(spark: "SparkSession", path: str) -> "DataFrame":
    frame = spark.read.parquet(path)
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise DumpUnreadable(f"{path} has no column {', '.join(missing)}: want {', '.join(REQUIRED)}")
    return frame.select(*(name for name in COLUMNS if name in frame.columns))


def _parsed(frame: "DataFrame", parse: Parser) -> "DataFrame":
    """Run a parser over every row, in Spark's workers."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for fields in batch.to_pylist():
                for row, problem in parse(fields):
                    rows.append((*(row or (None,) * len(COLUMNS)), problem))
                    if len(rows) >= _BATCH_ROWS:
                        yield _batch(rows)
                        rows = []
        if rows:
            yield _batch(rows)

    return frame.mapInArrow(run, SCHEMA)


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # it comes with the extra

    kinds = (pa.string(), pa.string(), pa.int32(), pa.int64(), pa.string(), pa.int32())
    columns = [
        pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), (*kinds, pa.string()), strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[*COLUMNS, "problem"])


def _parse_fields(fields: dict[str, Any]) -> Iterator[tuple[OffsetRow | None, str | None]]:
    corrupt = fields.pop(_CORRUPT, None)
    if corrupt is not None:
        yield None, f"it has too few or too many columns: {corrupt[:_SHOWN_CHARACTERS_MAX]!r}"
        return
    try:
        # A column that is there and empty says that there is no metadata; one that is not there says nothing.
        if "metadata" in fields and fields["metadata"] is None:
            fields["metadata"] = ""
        yield make_row(**fields), None
    except Malformed as error:
        shown = ",".join("" if value is None else str(value) for value in fields.values())
        yield None, f"{error} in {shown[:_SHOWN_CHARACTERS_MAX]!r}"


def _with_group(group: str | None) -> Parser:
    if group is None:
        return _parse_fields
    return lambda fields: _parse_fields({"group": group, **fields})


def _parse_line(fields: dict[str, Any]) -> Iterator[tuple[OffsetRow | None, str | None]]:
    line = fields["value"]
    try:
        row = parse_znode(znode_of_line(line))
        if row is not None:
            yield row, None
    except Malformed as error:
        yield None, f"{error} in {line[:_SHOWN_CHARACTERS_MAX]!r}"


def _parse_json(fields: dict[str, Any]) -> Iterator[tuple[OffsetRow | None, str | None]]:
    try:
        for znode in znodes_of_json(fields["value"]):
            try:
                row = parse_znode(znode)
                if row is not None:
                    yield row, None
            except Malformed as error:
                yield None, f"{error} in {znode.path[:_SHOWN_CHARACTERS_MAX]!r}"
    except Malformed as error:
        yield None, str(error)
