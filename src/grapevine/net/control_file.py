"""Where a node says how programs of its machine reach it: what `control` writes and `remote` reads."""

from __future__ import annotations

CONTROL_FILE = "control.json"  # in the data folder, unless another is named: url and token, for its owner alone
UNIX = "unix:"  # in the url, before the path of a socket
