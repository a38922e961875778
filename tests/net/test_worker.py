"""A process full of nodes, as the cluster has it: it answers, it ends when told to, and its end is noticed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from grapevine.model.errors import GrapevineError
from grapevine.net.orders import Exchanges, Look, Opened, Published, Report, Subscribe, Subscribed
from grapevine.net.worker import Worker
from tests.net.hostile import eventually


class Watched:
    """A worker, and what it told."""

    def __init__(self, folder: Path) -> None:
        self.ended = 0
        self.reports: list[Report] = []
        self.worker = Worker(0, folder / "log", report=self.on_report, published=self.on_published, ended=self.on_end)

    def on_report(self, worker: Worker, report: Report) -> None:
        self.reports.append(report)

    def on_published(self, answer: Published) -> None:
        raise AssertionError("nothing was published")

    def on_end(self, worker: Worker) -> None:
        self.ended += 1


def test_a_worker_answers_reports_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        watched = Watched(tmp_path)
        worker = watched.worker
        await worker.start()
        assert (await worker.ask(Look(), Exchanges, 60)).partners == []
        await eventually(lambda: watched.reports, 60)
        assert worker.last is not None and worker.last == watched.reports[-1] and worker.last.up == 0
        with pytest.raises(GrapevineError, match="group 0: KeyError"):
            await worker.ask(Subscribe({5: ["x"]}), Subscribed, 60)  # there is no node 5
        await worker.stop()
        assert not worker.is_up and watched.ended == 1 and worker.expected_to_end

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_the_end_of_a_worker_is_told_to_whoever_waits_for_its_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        watched = Watched(tmp_path)
        with pytest.raises(GrapevineError, match="group 0: it is not running"):
            await watched.worker.ask(Look(), Opened, 60)
        await watched.worker.start()
        waiting = asyncio.create_task(watched.worker.ask(Look(), Opened, 60))
        await asyncio.sleep(0)
        await watched.worker.kill()
        with pytest.raises(GrapevineError, match="group 0: it ended; see"):
            await waiting
        assert watched.ended == 1 and watched.worker.session == 1

    asyncio.run(asyncio.wait_for(scenario(), 120))
