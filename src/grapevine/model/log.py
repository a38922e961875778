"""What commands say on the error stream while they run: lines for people, or lines of JSON for programs that watch."""

from __future__ import annotations

import json
import logging
import sys
import time

LOGS = ("plain", "json")  # the forms; `--log` of commands
LOG_LEVELS = ("debug", "info", "warning", "error")


class PlainFormatter(logging.Formatter):
    """A log record as a person reads it: the time, what is wrong if something is, and the message."""

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {level}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """A log record as a line of JSON; what was given as `extra={"fields": {…}}` is in it by name."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_to_stderr(form: str, level: str) -> None:
    """Everything from this level on goes to standard error, in this form: `plain` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else PlainFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
