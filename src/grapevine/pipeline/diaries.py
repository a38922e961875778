"""The diaries of a live network as one frame: every line is a record, or rejected with the reason.

What was read is stored once, below the output: nodes may still be writing, and all later steps are to see the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from grapevine.model.errors import UsageError
from grapevine.model.location import Location
from grapevine.net.diary import SUFFIX
from grapevine.pipeline.inputs import find_inputs
from grapevine.pipeline.lines import LONGEST_LINE, read_lines, rejected_rows
from grapevine.pipeline.reasons import first_reason
from grapevine.pipeline.stage import Stage

_EVENT = "topic", "publisher", "sequence"
_NEEDED = {  # the fields without which a record says nothing
    "session": ("node", "system", "config"),
    "leaving": (),
    "end": (),
    "subscribed": ("topic",),
    "unsubscribed": ("topic",),
    "published": _EVENT,
    "received": (*_EVENT, "sender", "wanted", "again"),
    "delivered": (*_EVENT, "sender", "pulled"),
    "links": ("links", "neighbours"),
    "traffic": ("sent", "messages_in", "messages_out", "bytes_in", "bytes_out"),
    "lost": ("records",),
}
_TYPES = {
    **dict.fromkeys(("what", "node", "system", "config", "topic", "name", "publisher", "sender"), "STRING"),
    **dict.fromkeys(("time", "sequence", "neighbours", "records"), "BIGINT"),
    **dict.fromkeys(("messages_in", "messages_out", "bytes_in", "bytes_out"), "BIGINT"),
    **dict.fromkeys(("wanted", "again", "pulled"), "BOOLEAN"),
    "links": "ARRAY<ARRAY<STRING>>",
    "sent": "MAP<STRING, BIGINT>",
}
_IDS = "node", "topic", "publisher", "sender"
_HEX = "[0-9a-f]{16}"
_LAST_TIME_US = 1 << 52  # in the year 2112


@dataclass(frozen=True, slots=True)
class Diaries:
    """The lines of all diaries, read once. A node's records are ordered by `block` and `row`: clocks may go back."""

    records: DataFrame  # a row per line: file, block, row, owner (the node, in hexadecimal), kind, reason, text, fields
    counts: dict[str, Any]  # diaries (files), lines, rejected (lines), lost (records that nodes could not write)

    def of(self, *what: str) -> DataFrame:
        """The records of these kinds (`session`, `received`, …) with the fields that every one of them needs; `owner`
        is the node that wrote it, `time` is in microseconds since 1970."""
        fields = dict.fromkeys(field for kind in what for field in _NEEDED[kind])
        more = ("name",) if "subscribed" in what else ()
        return (
            self.records.where(F.col("kind") == "data")
            .where(F.col("what").isin(*what))
            .select("owner", "block", "row", "what", "time", *fields, *more)
        )

    def all(self) -> DataFrame:
        """All records without their fields: owner, block, row, what (the kind), time."""
        return self.records.where(F.col("kind") == "data").select("owner", "block", "row", "what", "time")

    def rejected(self) -> DataFrame:
        """The `rejected` table: lines that could not be read, with the reason."""
        return rejected_rows(self.records, self.records)


def find_diaries(folder: Location) -> list[str]:
    """The paths of the diaries in a folder, sorted; UsageError if there is no such folder, or no diary in it."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; give the one in which nodes keep their diaries")
    found = sorted(str(path) for path in folder.glob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(f"{folder}: holds no diaries (*{SUFFIX}); start nodes with a folder for them")
    return find_inputs(found)


def read_diaries(stage: Stage, paths: list[str], scratch: Location) -> Diaries:
    """Read all lines and store them in `scratch`: nodes may still be writing. UsageError if none can be read."""
    seen = Observation()
    with stage.step("reading diaries"):
        parsed = parse_records(read_lines(stage.spark, paths))
    kinds = [F.count_if(F.col("kind") == kind).alias(kind) for kind in ("data", "rejected")]
    records = stage.keep(parsed.observe(seen, *kinds, F.sum("records").alias("lost")), scratch, "reading diaries")
    found = seen.get
    counts = {"lines": found["data"] + found["rejected"], "rejected": found["rejected"], "lost": found["lost"] or 0}
    diaries = Diaries(records, {"diaries": len(paths), **counts})
    if not found["data"]:
        first = diaries.rejected().orderBy("file", "line").first()
        why = f"{found['rejected']:,} lines were rejected; line {first.line} {first.reason}" if first else "no lines"
        raise UsageError(f"not readable as diaries: {why}")
    return diaries


def parse_records(lines: DataFrame) -> DataFrame:
    """Add `owner`, `kind` (data, blank or rejected), the `reason` of a rejection and the fields of records."""
    schema = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())
    read = F.from_json("text", f"{schema}, _corrupt STRING", {"columnNameOfCorruptRecord": "_corrupt"})
    text, owner = F.col("text"), F.regexp_extract("file", f"({_HEX}){SUFFIX}$", 1)
    shaped = lines.withColumn("owner", owner).withColumn("record", read)
    blank = text.rlike(r"^\s*$")
    judged = shaped.withColumn("reason", F.when(~blank, _reason(text)))
    kind = F.when(blank, "blank").when(F.col("reason").isNotNull(), "rejected").otherwise("data")
    fields = [F.when(F.col("kind") == "data", F.col(f"record.{name}")).alias(name) for name in _TYPES]
    kept = F.when(F.col("kind") == "rejected", text).alias("text")
    return judged.withColumn("kind", kind).select("file", "block", "row", "owner", "kind", "reason", kept, *fields)


def _reason(text: Column) -> Column:
    """Why a line is no record, the first reason that applies; null for a record."""
    record, what = F.col("record"), F.col("record.what")
    reasons = [
        F.when(F.length(text) > LONGEST_LINE, F.lit(f"longer than {LONGEST_LINE:,} characters")),
        F.when(~F.is_valid_utf8(text) | text.contains("\x00"), F.lit("not text (binary, or not UTF-8)")),
        F.when(F.col("owner") == "", F.lit("the file is not named after a node (16 hexadecimal digits)")),
        F.when(record.isNull() | record["_corrupt"].isNotNull() | what.isNull(), F.lit("is not a record in JSON")),
        F.when(~what.isin(*_NEEDED), F.concat(F.lit("is of no known kind: "), F.substring(what, 1, 40))),
        F.when(
            ~F.coalesce(record["time"].between(0, _LAST_TIME_US), F.lit(False)),
            F.lit("has no time in microseconds since 1970"),
        ),
    ]
    of_kinds = {
        kind: first_reason(*(_missing(record[name], name) for name in _TYPES if name in needed))
        for kind, needed in _NEEDED.items()
    }
    received = of_kinds.pop("received")  # first, since most records are: a record is asked for the fields of its kind
    of_kind = F.when(what == "received", received)
    for kind, reason in of_kinds.items():
        of_kind = of_kind.when(what == kind, reason)
    reasons.append(of_kind)
    stranger = (what == "session") & (record["node"] != F.col("owner"))
    return first_reason(*reasons, F.when(stranger, F.lit("is a session of another node than the file's")))


def _missing(field: Column, name: str) -> Column:
    """A reason when the field that a record needs is not there, or is no id where it should be one."""
    wrong = field.isNull() | (~field.rlike(f"^{_HEX}$") if name in _IDS else F.lit(False))
    return F.when(wrong, F.lit(f"has no valid {name}"))


def system_and_config(diaries: Diaries) -> tuple[str, dict[str, Any]]:
    """The system that all sessions ran, and the parameters on which they agree; UsageError if there were several."""
    rows = diaries.of("session").select("system", "config").distinct().collect()
    systems = sorted({row.system for row in rows})
    if len(systems) != 1:
        ran = f"nodes of several systems ({', '.join(systems)})" if systems else "no node says which system it ran"
        raise UsageError(f"not the diaries of one network: {ran}; collect each network from a folder of its own")
    configs = [_as_dict(row.config) for row in rows]
    return systems[0], {
        key: value for key, value in configs[0].items() if all(config.get(key, ...) == value for config in configs)
    }


def _as_dict(text: str) -> dict[str, Any]:
    """A session's configuration from its JSON text; empty if that is no object."""
    found = json.loads(text) if text.startswith("{") else {}
    return dict(found)
