"""Slow, obvious SpiderCast: the neighbour maintenance of Figs. 1-5, §2.4, §3.3.1 and §3.7, in plain Python.

Written from the paper, to be compared with the kernels node by node and round by round. Coverage is counted, topic by
topic, as printed. All randomness is `draw(seed, round, node, salt, …)`. Where the paper leaves it open:

- A round is one iteration of the loop at every node, from the state at its start: first of one task, then of the next.
  Messages are handled in the order of a hash, one by one; then the answers in the same order. A LEAVE acts at once.
- The degree and target of neighbours are those at the start of the round. Of a neighbour that crashed and is not yet
  missed nothing is known: it counts as a node without links.
- L is raised when the degree has reached L + Margin (printed is `<`, but see `raised` in blocks/consent);
  `printed` names the rules that are those of Fig. 4: target, disconnect, redirect.
- `uncovered` of Fig. 5 counts neighbours, as Fig. 3 does (printed is `cands`).
- A CONNECT from somebody who is a neighbour already changes nothing and is answered CONNECT-OK.
- Whoever has nobody to redirect to does not answer. Who was redirected to a neighbour or to the dead asks another.
- The interest view knows at once who is there. Only nodes that cover something are asked.
- similarity and random (§3.9.1) want a number of neighbours; what is missing to it stands for CALCKUNCOVERED.
- A heartbeat goes from a node to its neighbours and names the tasks in which it holds the link; others are over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.naive import draw

CONNECT_TIES, DISCONNECT_TIES, REDIRECT_TIES, ARRIVAL = range(8, 12)
MEMBERSHIP = 2**42
TRIES = 100  # for a random node

Told = dict[int, tuple[int, int]]  # what heartbeats say: degree and target of every node
Letter = tuple[str, int]  # what, and to whom


@dataclass
class Task:
    """The variables of Fig. 1, of one node and one task."""

    bit: int
    rule: str  # greedy, random, similar or stranger
    k: int
    target: int  # L
    neighbours: dict[int, int] = field(default_factory=dict)  # and the round in which each was last heard
    redirect: int | None = None
    asked: dict[int, int] = field(default_factory=dict)  # when each was asked last

    @property
    def degree(self) -> int:
        return len(self.neighbours)


@dataclass
class Node:
    number: int
    topics: set[int]
    alive: bool = False
    checks: int = 0  # coverages at which it has looked at its degree (§3.3.1)
    tasks: list[Task] = field(default_factory=list)

    def limit(self, task: Task) -> int:
        """L^max."""
        return task.k * len(self.topics) if task.rule in ("greedy", "random") else task.k

    def neighbours(self) -> set[int]:
        return {q for task in self.tasks for q in task.neighbours}


class NaiveConnections:
    def __init__(
        self,
        topics: Sequence[set[int]],
        wishes: Sequence[tuple[str, int]],
        *,
        seed: int,
        margin: int = 5,
        view_share: float = 1.0,
        quarantine_rounds: int = 5,
        max_age: int = 3,
        ties: str = "random",
        printed: Sequence[str] = (),
        adaptive: bool = False,
    ) -> None:
        self.seed, self.now, self.wishes, self.adaptive, self.printed = seed, 0, wishes, adaptive, printed
        self.margin, self.quarantine_rounds, self.max_age, self.ties = margin, quarantine_rounds, max_age, ties
        self.sent = Counter[str]()
        self.nodes = [Node(number, set(mine)) for number, mine in enumerate(topics)]
        self.views = [self.draw_view(p, view_share) for p in self.nodes]
        self.forget(range(len(topics)))

    def draw_view(self, p: Node, share: float) -> set[int]:
        """The interest view, drawn once (§3.7); who of it is away does not count."""
        others = range(len(self.nodes))
        return {q for q in others if share >= 1 or (draw(self.seed, MEMBERSHIP, p.number, q) >> 11) / 2**53 < share}

    # Who is there, and what they want (§2.4)

    def forget(self, numbers: Sequence[int]) -> None:
        """As new: no neighbours, and L = L^max."""
        for p in (self.nodes[number] for number in numbers):
            p.tasks = [Task(1 << i, rule, k, 0) for i, (rule, k) in enumerate(self.wishes)]
            p.checks = p.tasks[-1].k
            for task in p.tasks:
                task.target = p.limit(task)

    def join(self, numbers: Sequence[int]) -> None:
        self.forget(numbers)
        for number in numbers:
            self.nodes[number].alive = True

    def crash(self, numbers: Sequence[int]) -> None:
        self.forget(numbers)
        for number in numbers:
            self.nodes[number].alive = False

    def leave(self, numbers: Sequence[int]) -> None:
        """An orderly leave: LEAVE to all the neighbours."""
        goodbyes = [(p, i, q) for p in numbers for i, task in enumerate(self.nodes[p].tasks) for q in task.neighbours]
        for p, i, q in goodbyes:
            self.send("leave")
            self.nodes[q].tasks[i].neighbours.pop(p, None)
        self.crash(numbers)

    def send(self, kind: str) -> None:
        self.sent[kind] += 1

    # A round

    def round(self) -> None:
        self.now += 1
        self.suspect()
        if self.adaptive:
            self.adapt()
        for which in range(len(self.wishes)):
            self.run(which)
        self.heartbeat()

    def suspect(self) -> None:
        """FAILUREDETECTIONSUSPECT."""
        for task in (task for p in self.nodes for task in p.tasks):
            for q in [q for q, heard in task.neighbours.items() if heard < self.now - self.max_age]:
                del task.neighbours[q]

    def heartbeat(self) -> None:
        named = {
            (p.number, q): {i for i, task in enumerate(p.tasks) if q in task.neighbours}
            for p in self.nodes
            if p.alive
            for q in p.neighbours()
        }
        for (p, q), held in named.items():
            back = named.get((q, p), set())
            for i in held & back:
                self.nodes[p].tasks[i].neighbours[q] = self.now
            if held & back:
                for i in held - back:
                    del self.nodes[p].tasks[i].neighbours[q]

    def adapt(self) -> None:
        """§3.3.1: when a coverage is reached, a degree of K_g asks for random links, one below the topics for more."""
        for p in (p for p in self.nodes if p.alive):
            greedy, random = p.tasks
            if p.checks == random.k and all(self.missing(p, task, set(task.neighbours)) == 0 for task in p.tasks):
                degree = len(p.neighbours())
                few = degree == greedy.k if random.k == 0 else degree < len(p.topics) and random.k <= 3
                random.k += few
                p.checks += 1

    def run(self, which: int) -> None:
        told = {p.number: (p.tasks[which].degree, p.tasks[which].target) for p in self.nodes}
        letters = {p.number: self.maintain(p, p.tasks[which], told) for p in self.nodes if p.alive}
        sent = {p: letter for p, letter in letters.items() if letter}
        order = sorted(sent, key=lambda p: draw(self.seed, self.now, p, ARRIVAL, 1 << which))
        answers = {}
        for p in order:
            kind, q = sent[p]
            self.send(kind)
            receive = self.on_connect if kind == "connect" else self.on_disconnect
            answers[p] = receive(self.nodes[q], self.nodes[p], which, told)
        for p in order:
            if answer := answers[p]:
                self.send(answer[0])
                self.on_answer(self.nodes[p], self.nodes[sent[p][1]], which, answer)

    # Fig. 3

    def missing(self, p: Node, task: Task, neighbours: set[int]) -> int:
        """CALCKUNCOVERED, or the neighbours that a task still wants."""
        if task.rule in ("greedy", "random"):
            return len(self.uncovered(p, task, neighbours))
        return max(task.k - len(neighbours), 0)

    def uncovered(self, p: Node, task: Task, neighbours: set[int]) -> set[int]:
        return {t for t in p.topics if sum(t in self.nodes[q].topics for q in neighbours) < task.k}

    def disconnect_candidate(self, p: Node, task: Task, told: Told) -> int | None:
        high_degree = [q for q in task.neighbours if told[q][0] > told[q][1]]
        cost = {q: self.missing(p, task, set(task.neighbours) - {q}) for q in high_degree}
        cheapest = [q for q in cost if cost[q] == min(cost.values())]
        return max(
            cheapest, key=lambda q: draw(self.seed, self.now, p.number, DISCONNECT_TIES, task.bit, q), default=None
        )

    # Fig. 2

    def maintain(self, p: Node, task: Task, told: Told) -> Letter | None:
        if task.k == 0:
            return None
        letter, gap = None, 0
        under_covered = self.missing(p, task, set(task.neighbours))
        if under_covered > 0:
            task.target = p.limit(task)
            gap = task.target - task.degree
            if gap > 0:
                letter = self.connect(p, task)
        if under_covered == 0 or gap < 0:
            letter = self.disconnect(p, task, told)
        return letter

    def connect(self, p: Node, task: Task) -> Letter | None:
        n, task.redirect = task.redirect, None
        if n is None or not self.nodes[n].alive or n in task.neighbours:
            n = self.next_node(p, task)
        if n is None:
            return None
        task.asked[n] = self.now
        return "connect", n

    def disconnect(self, p: Node, task: Task, told: Told) -> Letter | None:
        task.target = min(p.limit(task), task.degree)
        over = task.degree - task.target
        m = self.disconnect_candidate(p, task, told)
        if m is not None and (over > 0 or self.missing(p, task, set(task.neighbours) - {m}) == 0):
            return "disconnect", m
        return None

    # Fig. 5 and §3.9.1

    def next_node(self, p: Node, task: Task) -> int | None:
        quarantined = {q for q, when in task.asked.items() if self.now - when < self.quarantine_rounds}
        taken = {p.number, *task.neighbours, *quarantined}
        words = self.seed, self.now, p.number, CONNECT_TIES, task.bit
        if task.rule == "stranger":
            return self.next_stranger(p, taken, words)
        cands = [q for q in sorted(self.views[p.number] - taken) if self.nodes[q].alive]
        wanted = p.topics if task.rule == "similar" else self.uncovered(p, task, set(task.neighbours))
        gain = {q: len(self.nodes[q].topics & wanted) for q in cands if self.nodes[q].topics & wanted}
        if task.rule != "random":
            if self.ties != "random":  # the same for all nodes, and with `order` in all rounds
                words = self.seed, self.now if self.ties == "stream" else 0, 0, CONNECT_TIES, task.bit
            return max(gain, key=lambda q: (gain[q], draw(*words, q)), default=None)
        # The draw counts places: topic by topic, whoever was not met with an earlier topic.
        able = list(dict.fromkeys(q for t in sorted(wanted) for q in gain if t in self.nodes[q].topics))
        return able[(draw(*words) >> 32) * len(able) >> 32] if able else None

    def next_stranger(self, p: Node, taken: set[int], words: tuple[int, ...]) -> int | None:
        online = [q.number for q in self.nodes if q.alive]
        drawn = (online[(draw(*words, attempt) >> 32) * len(online) >> 32] for attempt in range(TRIES))
        able = [q for q in online if q in self.views[p.number] - taken]
        last = able[(draw(*words, TRIES) >> 32) * len(able) >> 32] if able else None
        return next((q for q in drawn if q in able), last)

    # Fig. 4: p has received something from n, in the task of this number

    def on_connect(self, p: Node, n: Node, which: int, told: Told) -> Letter | None:
        if n.number in p.tasks[which].neighbours or self.add(p, n, which):
            return "connect-ok", p.number
        m = self.redirect_candidate(p, n, which, told)
        return None if m is None else ("redirect", m)

    def add(self, p: Node, n: Node, which: int) -> bool:
        """ADDCONNECTION, unless p is full."""
        task = p.tasks[which]
        limit = p.limit(task)
        if task.degree >= limit + self.margin:
            return False
        task.neighbours[n.number] = self.now
        near = task.degree < task.target + self.margin
        if task.target < limit and near == ("target" in self.printed):
            task.target += 1
        return True

    def redirect_candidate(self, p: Node, n: Node, which: int, told: Told) -> int | None:
        above = self.margin if "redirect" in self.printed else 0
        cands = [q for q in p.tasks[which].neighbours if told[q][0] < told[q][1] + above and q != n.number]

        def preference(q: int) -> tuple[int, int]:
            tie = draw(self.seed, self.now, p.number, REDIRECT_TIES, 1 << which, q)
            return len(self.nodes[q].topics & n.topics), tie

        return max(cands, key=preference, default=None)

    def on_disconnect(self, p: Node, n: Node, which: int, told: Told) -> Letter | None:
        task = p.tasks[which]
        if n.number not in task.neighbours:
            return None
        under_covered = self.missing(p, task, set(task.neighbours) - {n.number})
        enough = task.target if "disconnect" in self.printed else p.limit(task)
        if task.degree <= enough and under_covered > 0:
            return None
        del task.neighbours[n.number]
        if under_covered == 0:
            task.target = task.degree
        return "disconnect-ok", p.number

    def on_answer(self, p: Node, n: Node, which: int, answer: Letter) -> None:
        kind, about = answer
        task = p.tasks[which]
        if kind == "redirect":
            task.redirect = about
        elif kind == "disconnect-ok":
            task.neighbours.pop(n.number, None)
        elif n.number not in task.neighbours and not self.add(p, n, which):
            self.send("leave")
            n.tasks[which].neighbours.pop(p.number, None)
