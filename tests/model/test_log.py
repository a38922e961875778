"""What commands say on the error stream: the same records, for people and for programs."""

from __future__ import annotations

import json
import logging
import re
import sys

import pytest

from grapevine.model.log import JsonFormatter, PlainFormatter, log_to_stderr


def record(level: int = logging.WARNING, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("grapevine.net", level, "", 0, "peer %s:\n%s", ("a", "b"), None)
    made.__dict__.update(more)
    return made


def test_a_record_is_a_line_of_json_with_the_fields_that_were_given() -> None:
    line = JsonFormatter().format(record(fields={"neighbours": 3}))
    assert "\n" not in line
    content = json.loads(line)
    assert (content["level"], content["logger"], content["message"]) == ("warning", "grapevine.net", "peer a:\nb")
    assert content["time"].endswith("Z") and content["neighbours"] == 3


def test_people_read_the_time_and_what_is_wrong() -> None:
    assert re.fullmatch(r"\d\d:\d\d:\d\d peer a:\nb", PlainFormatter().format(record(logging.INFO)))
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning: peer a:\nb", PlainFormatter().format(record()))


@pytest.mark.parametrize("formatter", [PlainFormatter(), JsonFormatter()])
def test_a_failure_has_its_trace(formatter: logging.Formatter) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        said = formatter.format(record(exc_info=sys.exc_info()))
    assert "ValueError: broken" in said


def test_the_form_and_the_level_are_those_that_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        log_to_stderr("json", "info")
        logging.getLogger("grapevine.test").info("one")
        logging.getLogger("grapevine.test").debug("not this")
        log_to_stderr("plain", "warning")
        logging.getLogger("grapevine.test").info("nor this")
        logging.getLogger("grapevine.test").error("two")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    first, second = capsys.readouterr().err.splitlines()
    assert json.loads(first)["message"] == "one"
    assert second.endswith(" error: two")
