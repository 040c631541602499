"""What becomes of a record's value: bytes as they came, or parsed by a schema; what cannot be parsed is never lost.

With a schema the table has two columns: `value`, parsed, and `value_raw`, the bytes of those that could not be parsed.
"""

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from offsetd.pipeline.load.refusal import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import Column

#: The field in which Spark tells of JSON that it could not parse.
_CORRUPT: Final = "__corrupt"


class ValueFormat(Enum):
    """How values are encoded."""

    RAW = "raw"
    JSON = "json"
    AVRO = "avro"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """A format and, unless it is raw, its schema."""

    format: ValueFormat = ValueFormat.RAW
    schema: str = ""
    """JSON: Spark's DDL or Spark's own JSON of a struct. Avro: the text of an .avsc file."""

    def columns(self) -> "dict[str, Column]":
        """Return the columns that a record's `value` becomes.

        Raises:
            BadRequest: the schema cannot be understood.
        """
        from pyspark.sql.functions import col  # noqa: PLC0415

        if self.format is ValueFormat.RAW:
            return {"value": col("value")}
        parsed, failed = self._json() if self.format is ValueFormat.JSON else self._avro()
        return {"value": _unless(failed, parsed), "value_raw": _when(failed, col("value"))}

    def _json(self) -> "tuple[Column, Column]":
        from pyspark.sql.functions import col, from_json, struct  # noqa: PLC0415
        from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415

        schema = _spark_schema(self.schema)
        with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = from_json(col("value").cast("string"), with_corrupt, options)
        failed = col("value").isNotNull() & (parsed.isNull() | parsed[_CORRUPT].isNotNull())
        fields = struct(*(parsed[field.name].alias(field.name) for field in schema.fields))
        return _when(col("value").isNotNull(), fields), failed

    def _avro(self) -> "tuple[Column, Column]":
        from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415
        from pyspark.sql.functions import col, lit  # noqa: PLC0415

        try:
            schema = json.loads(self.schema)
        except ValueError as error:
            raise BadRequest(f"the schema file is no Avro schema in JSON: {error}.") from error
        parsed = from_avro(col("value"), self.schema, {"mode": "PERMISSIVE"})
        if not (isinstance(schema, dict) and schema.get("type") == "record"):
            return parsed, col("value").isNotNull() & parsed.isNull()
        # Of a record that it cannot parse Spark makes one whose fields are all null; one that truly is so keeps its
        # bytes beside it too, which costs little and loses nothing.
        empty = lit(True)  # noqa: FBT003
        for field in schema["fields"]:
            empty &= parsed[field["name"]].isNull()
        return parsed, col("value").isNotNull() & (parsed.isNull() | empty)


def read_values(value_format: ValueFormat, schema_file: Path | None) -> Values:
    """Return the format with the schema of a file.

    Raises:
        BadRequest: one of both is missing or too much, or the file cannot be read.
    """
    if value_format is ValueFormat.RAW:
        if schema_file is not None:
            raise BadRequest("--schema is for --value-format json or avro; raw values have none.")
        return Values()
    if schema_file is None:
        raise BadRequest(f"--value-format {value_format.value} needs a --schema file.")
    try:
        return Values(format=value_format, schema=schema_file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the schema file {schema_file} cannot be read: {error}.") from error


def _spark_schema(text: str) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415

    try:
        if text.lstrip().startswith("{"):
            return StructType.fromJson(json.loads(text))
        return StructType.fromDDL(text)
    except Exception as error:
        # Spark's parser raises exceptions of many kinds, and all of them mean this.
        first = str(error).strip().splitlines()[0]
        raise BadRequest(f"the schema is neither Spark's DDL (id BIGINT, name STRING) nor its JSON: {first}") from error


def _when(condition: "Column", value: "Column") -> "Column":
    from pyspark.sql.functions import when  # noqa: PLC0415

    return when(condition, value)


def _unless(condition: "Column", value: "Column") -> "Column":
    from pyspark.sql.functions import when  # noqa: PLC0415

    return when(~condition, value)
