"""The Python interface answers wrong arguments as the command line does: a UsageError of one sentence that says what
was given, what is allowed, and what to do or what may have been meant.

Each table has a row for every way to be wrong: what is given, and what has to be in the sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import grapevine
from grapevine import UsageError, synthetic
from grapevine.model.workload import Latency
from grapevine.sim import churn
from grapevine.sim.clock import ClockConfig
from grapevine.sim.round_run import RunConfig
from grapevine.sim.transcript import Transcript
from tests.net.nodes import during, opening

# As somebody meets them who has no type checker.
simulate: Any = grapevine.simulate
Simulation: Any = grapevine.Simulation
Workload: Any = grapevine.Workload
generate: Any = synthetic.generate
generate_churn: Any = synthetic.generate_churn
Schedule: Any = churn.Schedule
Change: Any = churn.Change
churn_of: Any = churn

NODES = 40
WHOLE, TEXT, SECONDS = "needs a whole number", "needs a text of at least one character", "needs a number of seconds"
SEED = f"{WHOLE} between 0 and 2**63 - 1"
PATH = "needs a path, as a text or a pathlib.Path"
FRAME = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "gap": [None, "y"], "word": ["q", "r"]})


@pytest.fixture(scope="module")
def crowd() -> Any:
    return Workload.from_dict({number: ["news", "jazz"] for number in range(NODES)})


def sentence(call: Callable[[], object]) -> str:
    """What a call is refused with."""
    with pytest.raises(UsageError) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"system": "vits"}, "system 'vits': choose one of gm, lowoda, .*; did you mean vitis?"),
        ({"system": 3}, "system 3: choose one of gm"),
        ({"system": ["vitis"]}, r"system ['vitis']: choose one of gm"),
        ({"workload": "high"}, "workload='high': needs a Workload; read the folder with Workload.load('high')"),
        ({"workload": Path("high")}, "needs a Workload; read the folder with Workload.load"),
        ({"workload": {"a": ["b"]}}, "workload={'a': ['b']}: needs a Workload; make one with Workload.from_dict"),
        ({"workload": FRAME}, "workload of type DataFrame: needs a Workload; make one with grapevine.synthetic"),
        ({"workload": None}, "workload=None: needs a Workload"),
        ({"driver": "peer"}, "driver of vitis 'peer': choose one of rounds, peers; did you mean peers?"),
        ({"driver": 3}, "driver of vitis 3: choose one of rounds, peers"),
        ({"seed": "1"}, f"seed='1': {SEED}"),
        ({"seed": -1}, f"seed=-1: {SEED}"),
        ({"seed": 2**63}, SEED),
        ({"seed": True}, f"seed=True: {SEED}"),
        ({"seed": 1.0}, f"seed=1.0: {SEED}"),
        ({"threads": 0}, f"threads=0: {WHOLE} of 1 or more, or none for all cores"),
        ({"threads": "2"}, f"threads='2': {WHOLE} of 1 or more"),
        ({"threads": True}, f"threads=True: {WHOLE}"),
        ({"schedule": {}}, "schedule={}: needs a Schedule; make one with grapevine.sim.churn"),
        ({"schedule": Schedule(np.array([99]), {})}, "schedule.first 99 … 99: need to lie between 0 and 39"),
        ({"schedule": Schedule("all", {})}, "schedule.first='all': needs a list of whole numbers"),
        ({"schedule": Schedule([0], {0: Change()})}, f"a round of schedule.changes=0: {WHOLE} of 1 or more"),
        ({"schedule": Schedule([0], {3: [1]})}, "schedule.changes[3]=[1]: needs a Change"),
        (
            {"schedule": Schedule([0], {3: Change(joins=[-1])})},
            "schedule.changes[3].joins -1 … -1: need to lie between",
        ),
        ({"run": {"rounds": 5}}, "run={'rounds': 5}: needs a RunConfig; e.g. grapevine.sim.round_run.RunConfig("),
        (
            {"clock": ClockConfig()},
            "clock: for peers in virtual time, and vitis runs by rounds; leave it out, or add dr",
        ),
        ({"latency": Latency(np.zeros((1, 1, 1), np.float32))}, "latency: for peers in virtual time"),
        ({"transcript": Transcript()}, "transcript: for peers in virtual time"),
        (
            {"system": "rvr", "clock": ClockConfig()},
            "leave it out, or take one of rappel, scribe, spidercast, trellis, vitis",
        ),
        ({"driver": "peers", "run": RunConfig()}, "run: vitis runs as peers in virtual time"),
        ({"driver": "peers", "rounds": 3}, "rounds: vitis runs as peers in virtual time"),
        ({"driver": "peers", "threads": 2}, "threads: vitis runs as peers in virtual time, on one core; leave it out"),
        (
            {"driver": "peers", "clock": {"hours": 1}},
            "clock={'hours': 1}: needs a ClockConfig; e.g. grapevine.sim.clock",
        ),
        ({"driver": "peers", "latency": "lan"}, "latency='lan': needs a Latency; e.g. Workload.load("),
        ({"driver": "peers", "transcript": "t.txt"}, "transcript='t.txt': needs a Transcript; e.g. grapevine.sim"),
        ({"progress": "yes"}, "progress='yes': needs True, False, or a function of a dict"),
        ({"progress": 1}, "progress=1: needs True, False, or a function of a dict"),
        ({"rounds": 0}, "rounds=0: needs at least 1"),
        ({"rounds": "3"}, f"rounds='3': {WHOLE}"),
        ({"rounds": True}, f"rounds=True: {WHOLE}"),
        ({"tabel_size": 9}, "vitis has no parameter tabel_size; it has .*; did you mean table_size?"),
        ({"thread": 2}, "vitis has no parameter thread; it has .*; did you mean threads?"),
        ({"table_size": "many"}, f"table_size='many': {WHOLE}"),
        ({"table_size": 3}, "table_size=3: needs at least 4"),
        ({"table_size": 1_000}, "has 40 nodes, too few for table_size=1000; take a larger workload or a smaller table"),
    ],
)
def test_simulate(crowd: Any, given: dict[str, Any], expected: str) -> None:
    arguments: dict[str, Any] = {"system": "vitis", "workload": crowd} | given
    said = sentence(lambda: simulate(**arguments))
    parts = expected.split(".*")
    assert all(part in said for part in parts), said


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: generate("vitis-hihg"), "model 'vitis-hihg': choose one of vitis-random, "),
        (lambda: generate("vitis-hihg"), "; did you mean vitis-high?"),
        (lambda: generate(["vitis-high"]), "model ['vitis-high']: choose one of vitis-random"),
        (lambda: generate(3), "model 3: choose one of vitis-random"),
        (lambda: generate("vitis-high", seed="x"), f"seed='x': {SEED}"),
        (lambda: generate("vitis-high", nodes="x"), f"nodes='x': {WHOLE}"),
        (lambda: generate("vitis-high", nodes=0), "nodes=0: needs at least 1"),
        (lambda: generate("vitis-high", nodes=2**40), "needs at most 2147483647"),
        (lambda: generate("vitis-high", rate_exponent=float("nan")), "rate_exponent=nan: needs a finite number"),
        (lambda: generate("vitis-high", node=3), "vitis-high has no parameter node; it has nodes, "),
        (lambda: generate("vitis-high", seeds=3), "; did you mean seed?"),
        (
            lambda: generate("outage"),
            "outage makes churn, not subscriptions; choose a subscription model, or generate_ch",
        ),
        (
            lambda: generate_churn("vitis-high"),
            "vitis-high makes subscriptions, not churn; choose a churn model, or gen",
        ),
        (lambda: generate_churn("outage", seed=-1), f"seed=-1: {SEED}"),
        (lambda: generate_churn("outage", nodes=0), "nodes=0: needs at least 1"),
        (lambda: synthetic.model_named("outag"), "; did you mean outage?"),
        (lambda: churn_of.mass_failure(9, share=2, round=3), "share=2: needs to lie between 0 and 1"),
        (lambda: churn_of.mass_failure(9, share="x", round=3), "share='x': needs a number"),
        (lambda: churn_of.flash_crowd(9, share=0.5, round=0), f"round=0: {WHOLE} of 1 or more"),
    ],
)
def test_generate_and_churn(call: Callable[[], object], expected: str) -> None:
    assert expected in sentence(call)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: Workload.from_dict([("a", "b")]),
            "wanted=[('a', 'b')]: needs a dict from nodes to their topics, e.g. ",
        ),
        (lambda: Workload.from_dict({"a": "b"}), "wanted['a']='b': needs a list of topics"),
        (lambda: Workload.from_dict({"a": 3}), "wanted['a']=3: needs a list of topics"),
        (
            lambda: Workload.from_dict({"a": [["b"]]}),
            "a topic of wanted['a']=['b']: needs a name, as a text or a number",
        ),
        (lambda: Workload.from_dict({"a": [None]}), "topic None: is no name but a missing value; leave it out"),
        (lambda: Workload.from_dict({float("nan"): []}), "node nan: is no name but a missing value"),
        (lambda: Workload.from_dict({}, rates=3), "rates=3: needs a dict, e.g. {'news': 2.5}"),
        (lambda: Workload.from_dict({}, rates={"a": "x"}), "rates['a']='x': needs a number, zero or more"),
        (lambda: Workload.from_dict({}, rates={"a": float("inf")}), "rates['a']=inf: needs a number, zero or more"),
        (lambda: Workload.from_dict({}, publishers=["a"]), "publishers=['a']: needs a dict, e.g. {'news': 'ann'}"),
        (lambda: Workload.from_dict({"ann": []}, publishers={"a": "an"}), "='an': is no node; did you mean 'ann'?"),
        (lambda: Workload.from_dict({"ann": []}, publishers={"a": "x"}), "='x': is no node; name one, or add it"),
        (lambda: Workload.from_dict({}, name=3), f"name=3: {TEXT}"),
        (
            lambda: Workload.from_pandas({"user": []}),
            "frame={'user': []}: needs a data frame of pandas; a dict goes to W",
        ),
        (
            lambda: Workload.from_pandas(FRAME, user="usr"),
            "the frame has no column usr; it has user, item, gap, word; di",
        ),
        (lambda: Workload.from_pandas(FRAME, item=None), "the frame has no column None"),
        (lambda: Workload.from_pandas(FRAME, item=["item"]), "the frame has no column ['item']"),
        (lambda: Workload.from_pandas(FRAME, item="gap"), "column gap: 1 values are missing; drop their rows"),
        (lambda: Workload.from_pandas(FRAME, rate="word"), "rates['x']='q': needs a number, zero or more"),
        (lambda: Workload.from_pandas(FRAME.iloc[:, [0, 0]]), "the frame has columns of the same name"),
        (
            lambda: Workload.from_networkx({1: [2]}),
            "graph={1: [2]}: needs a graph of networkx; a dict goes to Workload",
        ),
        (lambda: Workload.from_networkx(nx.Graph([(1, 2)]), name=""), f"name='': {TEXT}"),
    ],
)
def test_workloads_from_names(call: Callable[[], object], expected: str) -> None:
    assert expected in sentence(call)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"node_count": "x"}, f"node_count='x': {WHOLE} from 0 to 2,147,483,647"),
        ({"topic_count": -1}, f"topic_count=-1: {WHOLE}"),
        ({"nodes": "x"}, "nodes='x': needs a list of whole numbers"),
        ({"nodes": [0.5]}, "nodes=[0.5]: needs a list of whole numbers"),
        ({"nodes": [[0]]}, "nodes=[[0]]: needs a list of whole numbers"),
        ({"nodes": [[0], [0, 1]]}, "needs a list of whole numbers"),
        ({"nodes": [2**40]}, "nodes 1099511627776 … 1099511627776: need to lie between 0 and 1"),
        ({"topics": [0, 1]}, "topics: there are 2 of them; give 1, one each"),
        ({"nodes": [0, 0], "topics": [1, 1]}, "nodes, topics: 1 pairs come more than once; give each once"),
        ({"rates": "x"}, "rates='x': needs a list of numbers"),
        ({"rates": [1.0]}, "rates: there are 1 of them; give 2, one each"),
        ({"rates": [1.0, -1.0]}, "rates: 1 of them are no amounts; give finite numbers of zero or more"),
        ({"rates": [float("nan"), 1.0]}, "rates: 1 of them are no amounts"),
        ({"publishers": ["x", "y"]}, "publishers=['x', 'y']: needs a list of whole numbers"),
        ({"publishers": [0]}, "publishers: there are 1 of them; give 2, one each"),
        ({"publishers": [0, 2]}, "publishers 0 … 2: need to lie between -1 and 1"),
        ({"name": ""}, f"name='': {TEXT}"),
    ],
)
def test_workloads_from_pairs(given: dict[str, Any], expected: str) -> None:
    arguments: dict[str, Any] = {"nodes": [0], "topics": [0], "node_count": 2, "topic_count": 2} | given
    assert expected in sentence(lambda: Workload.from_pairs(**arguments))


def test_pairs_in_neighbouring_rows_are_not_the_same() -> None:
    assert Workload.from_pairs([0, 1, 3], [1, 1, 1], node_count=4, topic_count=2).subscription_count == 3


@pytest.mark.parametrize("wrong", [3, None, "", b"x"])
def test_folders(crowd: Any, wrong: Any, tmp_path: Path) -> None:
    for call in (Workload.load, Simulation.load, crowd.save):
        assert sentence(lambda call=call: call(wrong)) == f"folder={wrong!r}: {PATH}"  # type: ignore[misc]
    assert "nowhere: no such folder; expected a workload" in sentence(lambda: Workload.load("nowhere"))
    assert "force=1: needs True or False" in sentence(lambda: crowd.save(tmp_path / "w", force=1))
    crowd.save(tmp_path / "w")
    assert sentence(lambda: Workload.load(tmp_path / "w", churn=3)) == f"folder=3: {PATH}"
    assert "w: has no latency table; ingest or generate one" in sentence(
        lambda: Workload.load(tmp_path / "w", latency=tmp_path / "w")
    )


@pytest.mark.parametrize("wrong", [NODES, -1, "a", None, 1.5, True])
def test_rows_of_a_workload(crowd: Any, wrong: Any) -> None:
    assert sentence(lambda: crowd.topics_of(wrong)) == f"node={wrong!r}: {WHOLE} from 0 to {NODES - 1}"
    assert sentence(lambda: crowd.subscribers_of(wrong)) == f"topic={wrong!r}: {WHOLE} from 0 to 1"
    assert crowd.topics_of(np.int32(3)).tolist() == [0, 1], "numpy's numbers are numbers"


def test_numbers_of_numpy_are_numbers_wherever_numbers_are() -> None:
    made = generate("vitis-random", seed=np.int64(2), nodes=np.int32(30), topics=np.int64(4), subscriptions_per_node=2)
    assert made.node_count == 30
    run = simulate("vitis", made, seed=np.int64(5), rounds=np.int16(2), threads=np.int64(1), table_size=np.uint8(6))
    assert (type(run.seed), run.seed, run.config["table_size"], run.settings["rounds"]) == (int, 5, 6, 2)
    as_lists = simulate("vitis", made, rounds=2, table_size=6, schedule=Schedule(list(range(30)), {}))
    as_arrays = simulate("vitis", made, rounds=2, table_size=6, schedule=churn.everyone(30))
    assert as_lists.links.equals(as_arrays.links)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"listen": "here"}, "'here' is no endpoint; give HOST:PORT, e.g. 127.0.0.1:7000"),
        ({"listen": 7000}, "7000 is no endpoint; give HOST:PORT as a text"),
        (
            {"bootstrap": "127.0.0.1:7000"},
            "bootstrap='127.0.0.1:7000': needs a list of endpoints, e.g. ['127.0.0.1:7000']",
        ),
        ({"bootstrap": b"127.0.0.1:7000"}, "bootstrap=b'127.0.0.1:7000': needs a list of endpoints"),
        ({"bootstrap": None}, "bootstrap=None: needs a list of endpoints"),
        ({"bootstrap": {"127.0.0.1:7000": 1}}, "needs a list of endpoints"),
        ({"bootstrap": [7000]}, "7000 is no endpoint; give HOST:PORT as a text"),
        ({"bootstrap": ["127.0.0.1:0"]}, "127.0.0.1:0 is no endpoint to join; give the port that a node listens on"),
        (
            {"system": "vits"},
            "live system 'vits': choose one of rappel, spidercast, trellis, vitis; did you mean vitis?",
        ),
        ({"system": "rvr"}, "live system 'rvr': choose one of rappel, spidercast, trellis, vitis"),
        ({"system": ["vitis"]}, "live system ['vitis']: choose one of rappel, spidercast, trellis, vitis"),
        ({"network": 3}, f"network=3: {TEXT}"),
        ({"network": ""}, f"network='': {TEXT}"),
        ({"data_dir": 5}, f"data_dir=5: {PATH}"),
        ({"announce": 5}, f"announce=5: {TEXT}"),
        ({"announce": "example.org"}, "announce='example.org': give the IP address at which others reach this node"),
        ({"diary": 5}, f"diary=5: {PATH}"),
        (
            {"retention": {"age_s": 3}},
            "retention={'age_s': 3}: needs a Retention; e.g. grapevine.net.event_file.Retention(",
        ),
        ({"parameters": [("table_size", 9)]}, "parameters=[('table_size', 9)]: needs a dict, e.g. {'table_size': 20}"),
        ({"parameters": {"tabel_size": 9}}, "; did you mean table_size?"),
        ({"parameters": {"table_size": "x"}}, f"table_size='x': {WHOLE}"),
        ({"validators": 3}, "validators=3: needs a dict, e.g. {'news': is_short}"),
        ({"validators": {"a": 3}}, "validators['a']=3: needs a function of an event"),
        ({"validators": {3: bool}}, f"a topic of validators=3: {TEXT}"),
        ({"transport": "tls"}, "transport='tls': needs a function of an identity and a config, such as TlsTransport"),
        ({"most_conections": 3}, "a node has no parameter most_conections; it has frame_bytes, "),
        ({"most_conections": 3}, "; did you mean most_connections?"),
        ({"boostrap": ["127.0.0.1:7000"]}, "; did you mean bootstrap?"),
        ({"most_connections": 1}, "most_connections=1: needs at least 2"),
        ({"idle_s": "soon"}, "idle_s='soon': needs a number"),
        ({"table_size": 20}, "table_size: set vitis, not the node; give parameters={'table_size': 20}"),
    ],
)
def test_opening_a_node(given: dict[str, Any], expected: str) -> None:
    async def scenario() -> None:
        with pytest.raises(UsageError) as caught:
            async with opening(**{"parameters": None} | given):
                pass
        assert expected in str(caught.value)
        assert "\n" not in str(caught.value)

    during(scenario())


IN_A_NODE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda node: node.publish(3, b"x"), f"topic=3: {TEXT}"),
    (lambda node: node.publish("", b"x"), f"topic='': {TEXT}"),
    (
        lambda node: node.publish("a", "x"),
        "a payload of type str; give bytes, e.g. text.encode(), 262,144 of them at most",
    ),
    (lambda node: node.publish("a", None), "a payload of type NoneType; give bytes, 262,144 of them at most"),
    (lambda node: node.publish("a", b"x", timeout="x"), f"timeout='x': {SECONDS}, zero or more"),
    (lambda node: node.publish("a", b"x", timeout=-1), f"timeout=-1: {SECONDS}"),
    (lambda node: node.subscribe(["a"]), f"topic=['a']: {TEXT}"),
    (lambda node: node.subscribe("a", size=0), f"size=0: {WHOLE} of 1 or more"),
    (lambda node: node.subscribe("a", size="x"), f"size='x': {WHOLE} of 1 or more"),
    (
        lambda node: node.subscribe("a", policy="drop-old"),
        "policy='drop-old': choose one of block, drop-oldest, drop-new",
    ),
    (lambda node: node.subscribe("a", policy="drop-old"), "; did you mean drop-oldest?"),
    (lambda node: node.subscribe("a", since="x"), "since='x': give 'now', 'beginning', or seconds since 1970"),
    (lambda node: node.subscribe("a", since=float("nan")), f"since=nan: {SECONDS} since 1970"),
    (lambda node: node.subscribe_for_good(""), f"topic='': {TEXT}"),
    (lambda node: node.unsubscribe(3), f"topic=3: {TEXT}"),
    (lambda node: node.declare_rate("a", "x"), "rate='x': needs a number, zero or more"),
    (lambda node: node.declare_rate(3, 1), f"topic=3: {TEXT}"),
    (lambda node: node.validate("a", 3), "validator=3: needs a function of an event"),
    (lambda node: node.validate(3, bool), f"topic=3: {TEXT}"),
    (lambda node: node.join("x"), "'x' is no endpoint; give HOST:PORT"),
    (lambda node: node.partners_of(3), f"topic=3: {TEXT}"),
    (lambda node: node.ready(3, timeout=0.1), f"topic=3: {TEXT}"),
    (lambda node: node.ready("a", peers="x"), f"peers='x': {WHOLE} of 0 or more"),
    (lambda node: node.ready("a", timeout="x"), f"timeout='x': {SECONDS}"),
    (lambda node: node.drain("x"), f"timeout='x': {SECONDS}"),
]


def test_using_a_node() -> None:
    async def scenario() -> None:
        async with opening() as node:
            for call, expected in IN_A_NODE:
                with pytest.raises(UsageError) as caught:
                    if inspect.isawaitable(waiting := call(node)):
                        await waiting
                assert expected in str(caught.value)

    during(scenario())


def test_every_name_of_the_package_is_tried_here() -> None:
    """Whoever adds a function to the public interface adds a table for it."""
    exceptions = {"GrapevineError", "UsageError"}
    elsewhere = {"Comparison", "compare"}  # tests/comparison/test_run.py
    tried = {"Simulation", "Workload", "simulate"}
    assert set(grapevine.__all__) - exceptions - elsewhere - {"__version__"} == tried
    made = {name for name, _ in inspect.getmembers(Workload, inspect.ismethod) if not name.startswith("_")}
    assert made == {"from_dict", "from_networkx", "from_pairs", "from_pandas", "from_rows", "load"}
