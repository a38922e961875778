"""The reader of feeds: everybody gets the items of the feeds that it follows, once each."""

from __future__ import annotations

import re
import signal
from collections import Counter
from pathlib import Path

from tests.examples.programs import started

FOLLOWED = {
    ("ann", "weather"),
    ("ann", "stars"),
    ("bob", "football"),
    ("cyn", "weather"),
    ("cyn", "football"),
    ("cyn", "stars"),
    ("dan", "weather"),
    ("dan", "football"),
}


def test_every_reader_gets_every_item_of_its_feeds_once(tmp_path: Path) -> None:
    with started("feed_reader.py", "--items", "2", "--every", "0.1", folder=tmp_path) as reader:
        assert (reader.finish(), reader.complaints()) == (0, "")
        items = re.findall(r"^ *(\w+) reads (\w+) +item (\d) on \w+ ", "\n".join(reader.lines), re.MULTILINE)
        assert Counter(items) == {(name, feed, number): 1 for name, feed in FOLLOWED for number in "12"}
        assert "cyn has read 2 of 2 on weather, 2 of 2 on football, 2 of 2 on stars" in reader.lines
        assert len(set(re.findall(r"^feed \w+: ([0-9a-f]{64})/", "\n".join(reader.lines), re.MULTILINE))) == 3
        assert not reader.left_behind()


def test_it_can_be_stopped_on_the_way(tmp_path: Path) -> None:
    with started("feed_reader.py", "--items", "100000", folder=tmp_path) as reader:
        reader.until("reads")
        assert (reader.finish(signal.SIGINT), reader.complaints()) == (0, "")
        assert not reader.left_behind()
