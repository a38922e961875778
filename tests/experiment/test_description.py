"""Experiment files: what they mean, and every mistake with its line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapevine.experiment.claims import CLAIMS
from grapevine.experiment.description import published_experiments, read_experiment
from grapevine.experiment.plan import plan
from grapevine.model.errors import UsageError

GOOD = """
title = "A grid"
seeds = [1, 2]

[run]
rounds = 20

[[workloads]]
name = "small"
model = "vitis-random"
nodes = [50, 60]
topics = 20
subscriptions_per_node = 3

[[systems]]
system = "vitis"
table_size = [5, 6]

[[systems]]
system = "opt"
table_size = "none"

[quick]
nodes = 40
seeds = [1]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "e.toml"
    path.write_text(text)
    return path


def test_the_grid_is_every_combination_of_workload_parameters_seeds_and_system_parameters(tmp_path: Path) -> None:
    runs = plan(read_experiment(write(tmp_path, GOOD)))
    vitis = [run for run in runs if run.system == "vitis"]
    assert len(vitis) == 2 * 2 * 2
    assert len(runs) == 8 + 2 * 2
    assert {run.parameters for run in vitis} == {
        f'{{"nodes": {nodes}, "table_size": {size}}}' for nodes in (50, 60) for size in (5, 6)
    }
    assert {run.config["table_size"] for run in runs if run.system == "opt"} == {None}
    assert len({run.run_id for run in runs}) == len(runs)


def test_quick_replaces_sizes_and_seeds(tmp_path: Path) -> None:
    runs = plan(read_experiment(write(tmp_path, GOOD), quick=True))
    assert {run.workload.parameters["nodes"] for run in runs} == {40}
    assert {run.seed for run in runs} == {1}


def test_a_run_is_known_by_what_decides_it(tmp_path: Path) -> None:
    first = {run.run_id for run in plan(read_experiment(write(tmp_path, GOOD)))}
    renamed = GOOD.replace('"A grid"', '"Another title"').replace('"small"', '"tiny"')
    assert {run.run_id for run in plan(read_experiment(write(tmp_path, renamed)))} == first
    longer = GOOD.replace("rounds = 20", "rounds = 21")
    assert not first & {run.run_id for run in plan(read_experiment(write(tmp_path, longer)))}


def test_all_mistakes_are_told_at_once_with_line_and_key(tmp_path: Path) -> None:
    bad = """titel = "x"
seeds = [-1]

[run]
rounds = 0

[[workloads]]
name = "a"
model = "vitis-random"
nodez = 50

[[workloads]]
name = "b"
model = "nothing"

[[systems]]
system = "vitis"
workloads = ["a", "c"]
table_size = [3, 15, "many"]

[[systems]]
system = "nope"

[[plots]]
kind = "pie"
"""
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, bad))
    said = str(caught.value)
    for expected in (
        "e.toml:1: titel: an experiment has no key titel; it has title, paper, ",
        "e.toml:1: title: needs a text",
        "e.toml:2: seeds: needs a list of whole numbers",
        "e.toml:5: run.rounds: 0: needs at least 1",
        "e.toml:10: workloads.nodez: vitis-random has no key nodez; it has nodes, ",
        "e.toml:14: workloads.model: 'nothing': choose one of vitis-random",
        "e.toml:18: systems.workloads: 'c': the workloads here are a",
        "e.toml:19: systems.table_size: 3: needs at least 4",
        "e.toml:19: systems.table_size: 'many': needs a whole number",
        "e.toml:22: systems.system: 'nope': choose one of ",
        "e.toml:25: plots.kind: 'pie': choose one of series, distribution, progress",
    ):
        assert expected in said, (expected, said)
    assert said.startswith(f"{tmp_path / 'e.toml'}: 11 mistakes\n")


@pytest.mark.parametrize(
    ("churn", "expected"),
    [
        ('{ crowd = "half" }', "churn.crowd: crowd=half: write it as SHARE@ROUND"),
        ('{ crowd = "0.5@3", crash = "0.5@9" }', "churn: needs one of path (with format), model, crowd and crash"),
        ('{ model = "vitis-high" }', "churn.model: 'vitis-high': choose one of spidercast-churn"),
        ('{ model = "spidercast-churn", mean_up_s = 0 }', "churn.mean_up_s: 0: needs at least 0.001"),
        ('{ crash = "1.5@3" }', "churn.crash: crash=1.5@3: needs a share between 0 and 1"),
        ('{ crash = ["0.5@3", 7] }', "churn.crash: 7: needs a text or none"),
        ('{ crash = "0.5@3", round_s = 2.0 }', "churn.round_s: says how a churn trace is played"),
        (
            '{ path = "x", format = "avt", speed = 3 }',
            "churn.speed: churn has no key speed; it has path, format",
        ),
        ('{ path = "x" }', "churn.format: a churn trace needs the path of its file and its format"),
        ('{ model = "outage", round_s = 0 }', "churn.round_s: 0: needs at least 0.001"),
        ('{ model = "outage", rejoin = "again" }', "churn.rejoin: 'again': choose one of same, new"),
        ('{ model = "outage", graceful = 1 }', "churn.graceful: 1: needs true or false"),
        ('{ model = "outage", event_rounds = ["none", 0] }', "churn.event_rounds: 0: needs at least 1"),
        (
            '{ model = "outage", round_seconds = 3 }',
            "churn.round_seconds: outage has no key round_seconds",
        ),
        ("3", "churn: needs to be a table"),
    ],
)
def test_churn_is_checked_before_anything_runs(tmp_path: Path, churn: str, expected: str) -> None:
    text = GOOD.replace('name = "small"\n', f'name = "small"\nchurn = {churn}\n')
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, text))
    assert expected in str(caught.value)


TIMED = """
title = "In virtual time"

[run]
rounds = 20

[clock]
hours = 2
latency = "recorded"
recorded = ["a.tsv.gz", "b.tsv.gz"]

[[workloads]]
name = "feed"
model = "rappel-feed"
nodes = 30

[[workloads]]
name = "sample"
trace = "follower-list"
path = "followers.gz"
seed_topics = 250
publishers = 100

[[systems]]
system = "rappel"

[[systems]]
system = "vitis"
workloads = ["feed"]

[quick]
hours = 0.5
seed_topics = 20
"""


@pytest.mark.parametrize(
    ("instead_of", "given", "expected"),
    [
        ("hours = 2", "huors = 2", "e.toml:8: clock.huors: [clock] has no key huors; it has latency, "),
        ("hours = 2", 'hours = "two"', "e.toml:8: clock.hours: 'two': needs a number"),
        ("hours = 2", "hours = [1, 2]", "e.toml:8: clock.hours: [1, 2]: needs a number"),
        ("hours = 2", "payload_bytes = 1.5", "e.toml:8: clock.payload_bytes: 1.5: needs a whole number"),
        ("hours = 2", "hours = 0", "e.toml:8: clock.hours: 0: needs at least 0.01"),
        ("hours = 2", "publish_from_s = 5", "e.toml:7: clock: publish_from_s=5: publishers start after warm_up_s=65"),
        ("rounds = 20", "rounds = 20.5", "e.toml:5: run.rounds: 20.5: needs a whole number"),
        ("[run]\nrounds = 20", "run = 3", "e.toml:4: run: needs to be a table, [run]"),
        ('"recorded"', '"guessed"', "e.toml:9: clock.latency: 'guessed': choose one of as-links, recorded"),
        (', "b.tsv.gz"]', ", 2]", "e.toml:10: clock.recorded: needs a list of files below the folder of traces"),
        ('["a.tsv.gz", "b.tsv.gz"]', '"a.tsv.gz"', "e.toml:10: clock.recorded: needs a list of files"),
        ('recorded = ["a.tsv.gz", "b.tsv.gz"]', "", "e.toml:9: clock.latency: recorded latency needs the files of"),
        ("publishers = 100", "users = 9", "e.toml:17: workloads: give users, or seed_topics and publishers"),
        ("publishers = 100", 'sample = "k-core"', "e.toml:22: workloads.sample: needs users, how many"),
        (
            "publishers = 100",
            'sample = "core"',
            "e.toml:22: workloads.sample: 'core': choose one of bfs, followees, k-",
        ),
        ("publishers = 100", "publishers = 0", "e.toml:22: workloads.publishers: 0: needs a whole number of 1 or more"),
        ("seed_topics = 250", "seed_topics = [2]", "e.toml:21: workloads.seed_topics: [2]: needs a whole number of 1"),
    ],
)
def test_mistakes_in_the_clock_and_in_samples_have_their_line(
    tmp_path: Path, instead_of: str, given: str, expected: str
) -> None:
    assert instead_of in TIMED
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, TIMED.replace(instead_of, given, 1)))
    assert expected in str(caught.value)
    assert ": 1 mistake\n" in str(caught.value)


def test_quick_shortens_the_clock_and_the_sample(tmp_path: Path) -> None:
    whole, quick = (read_experiment(write(tmp_path, TIMED), quick=quick) for quick in (False, True))
    assert (whole.clock.hours, quick.clock.hours) == (2, 0.5)
    assert whole.workloads[1].parameters == {"seed_topics": 250, "publishers": 100}
    assert quick.workloads[1].parameters == {"seed_topics": 20, "publishers": 100}
    assert quick.run == whole.run
    wrong = TIMED.replace("hours = 0.5", 'hours = "short"')
    with pytest.raises(UsageError, match=r"e.toml:32: quick.hours: 'short': needs a number"):
        read_experiment(write(tmp_path, wrong), quick=True)


def test_samples_of_one_trace_are_workloads_of_their_own(tmp_path: Path) -> None:
    cut = TIMED.replace("seed_topics = 250\npublishers = 100", "users = 9").replace("seed_topics = 20", "users = 5")
    by_default, bfs, core = (
        read_experiment(write(tmp_path, cut.replace("users = 9", f"users = 9{by}")))
        for by in ("", '\nsample = "bfs"', '\nsample = "k-core"')
    )
    keys = [{run.workload.key for run in plan(one) if run.workload.trace} for one in (by_default, bfs, core)]
    assert keys[0] == keys[1] != keys[2]
    assert core.workloads[1].sample == "k-core"


def test_peers_run_by_the_clock_and_others_by_rounds(tmp_path: Path) -> None:
    runs = plan(read_experiment(write(tmp_path, TIMED)))
    assert {(run.system, run.workload.name) for run in runs} == {
        ("rappel", "feed"),
        ("rappel", "sample"),
        ("vitis", "feed"),
    }
    for run in runs:
        timed = run.system == "rappel"
        assert ("hours" in run.run, "rounds" in run.run) == (timed, not timed)
        assert run.recorded == (("a.tsv.gz", "b.tsv.gz") if timed else ())
    assert runs[-1].system == "vitis"  # the shortest comes last


def test_a_timed_run_is_known_by_its_clock_and_its_latencies(tmp_path: Path) -> None:
    def ids(text: str) -> dict[str, set[str]]:
        runs = plan(read_experiment(write(tmp_path, text)))
        return {kind: {run.run_id for run in runs if run.system == kind} for kind in ("rappel", "vitis")}

    first = ids(TIMED)
    assert ids(TIMED) == first
    for changed in (
        TIMED.replace("hours = 2", "hours = 3"),
        TIMED.replace("hours = 2", "loss = 0.1"),
        TIMED.replace('"b.tsv.gz"', '"c.tsv.gz"'),
        TIMED.replace('["a.tsv.gz", "b.tsv.gz"]', '["b.tsv.gz", "a.tsv.gz"]'),
    ):
        other = ids(changed)
        assert not other["rappel"] & first["rappel"]
        assert other["vitis"] == first["vitis"]
    rounds = ids(TIMED.replace("rounds = 20", "rounds = 21"))
    assert rounds["rappel"] == first["rappel"] and not rounds["vitis"] & first["vitis"]


def test_lists_in_churn_are_a_grid(tmp_path: Path) -> None:
    churn = 'churn = { model = "spidercast-churn", mean_up_s = [50.0, 100.0], round_s = 0.5 }'
    runs = plan(read_experiment(write(tmp_path, GOOD.replace('name = "small"\n', f'name = "small"\n{churn}\n'))))
    assert {(run.shown["mean_up_s"], run.churn["mean_up_s"]) for run in runs if run.churn} == {
        (50.0, 50.0),
        (100.0, 100.0),
    }


def test_what_values_of_churn_contradict_in_each_other_is_said_before_anything_runs(tmp_path: Path) -> None:
    for churn, said in (
        ('{ model = "outage", first_round = 5 }', "first_round=5: only count with event_rounds"),
        ('{ model = "outage", fails_s = 9.0, returns_s = 5.0 }', "returns_s=5: needs to be later than fails_s=9"),
    ):
        text = GOOD.replace('name = "small"\n', f'name = "small"\nchurn = {churn}\n')
        with pytest.raises(UsageError, match=said):
            plan(read_experiment(write(tmp_path, text)))


def test_none_in_churn_is_no_value(tmp_path: Path) -> None:
    churn = 'churn = { model = "spidercast-churn", mean_down_s = "none", event_rounds = ["none", 3] }'
    runs = plan(read_experiment(write(tmp_path, GOOD.replace('name = "small"\n', f'name = "small"\n{churn}\n'))))
    assert {(run.churn["mean_down_s"], run.churn["event_rounds"]) for run in runs if run.churn} == {
        (None, None),
        (None, 3),
    }


def test_files_that_are_no_toml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not valid TOML"):
        read_experiment(write(tmp_path, "title = "))
    with pytest.raises(UsageError, match="cannot be read"):
        read_experiment(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("name", sorted(published_experiments()))
def test_published_experiments_are_valid_and_speak_to_known_claims(name: str) -> None:
    for quick in (False, True):
        experiment = read_experiment(published_experiments()[name], quick=quick)
        assert plan(experiment)
        assert set(experiment.claims) <= set(CLAIMS)


def test_every_claim_names_experiments_that_exist() -> None:
    for claim in CLAIMS.values():
        assert set(claim.experiments) <= set(published_experiments()), claim.id


@pytest.mark.parametrize(
    ("plot", "expected"),
    [
        ('x = "table_size"\ny = "hit_ration"', "plots.y: 'hit_ration' is not measured; did you mean hit_ratio?"),
        ('x = "table_size"\ny = "online_nodes"', "known are backup_of_max, "),
        (
            'kind = "progress"\ny = "relays_per_event"',
            "plots.y: 'relays_per_event' is not measured; known are connected",
        ),
        (
            'kind = "distribution"\nquantity = "hops"',
            "plots.quantity: 'hops' is not measured; known are backup_of, degree",
        ),
    ],
)
def test_a_plot_of_what_nobody_measures_is_a_mistake(tmp_path: Path, plot: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, f"{GOOD}\n[[plots]]\n{plot}\n"))
    assert expected in str(caught.value)
    assert "1 mistake\n" in str(caught.value)


@pytest.mark.parametrize(
    ("plot", "expected"),
    [
        (
            'x = "tabel_size"\ny = "hops"',
            "e.toml:28: plots.x: no grid has 'tabel_size': choose one of system, workload, nodes, table_size; "
            "did you mean table_size?",
        ),
        (
            'x = "rounds"\ny = "hops"',
            "e.toml:28: plots.x: no grid has 'rounds': choose one of system, workload, nodes, ",
        ),
        ('x = "topics"\ny = "hops"', "e.toml:28: plots.x: no grid has 'topics': choose one of "),
        ('x = 5\ny = "hops"', "e.toml:28: plots.x: no grid has 5: choose one of "),
        (
            'kind = "progress"\nx = "round"\ny = "hit_ratio"',
            "e.toml:29: plots.x: a plot of kind progress has no key x; it has ",
        ),
        (
            'kind = "distribution"\nquantity = "degree"\nlog_y = true',
            "e.toml:30: plots.log_y: a plot of kind distribution has no key log_y; it has ",
        ),
        ("kind = [1]", "e.toml:28: plots.kind: [1]: choose one of series, distribution, progress"),
        ('kind = "distribution"', "e.toml:27: plots.quantity: a plot of this kind needs it"),
        ('xx = "nodes"\nx = "nodes"\ny = "hops"', "e.toml:28: plots.xx: a plot of kind series has no key xx; it has "),
    ],
)
def test_an_axis_that_is_not_there_is_a_mistake_with_its_line(tmp_path: Path, plot: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_experiment(write(tmp_path, f"{GOOD}\n[[plots]]\n{plot}\n"))
    assert expected in str(caught.value)
    assert ": 1 mistake\n" in str(caught.value)


@pytest.mark.parametrize("x", ["system", "workload", "nodes", "table_size", "mean_up_s", "driver"])
def test_whatever_a_grid_varies_may_lie_along_x(tmp_path: Path, x: str) -> None:
    churn = 'churn = { model = "spidercast-churn", mean_up_s = [50.0, 100.0], round_s = 0.5 }'
    text = GOOD.replace('name = "small"\n', f'name = "small"\n{churn}\n')
    text = text.replace('system = "opt"\n', 'system = "opt"\ndriver = "rounds"\n')
    for quick in (False, True):
        made = read_experiment(write(tmp_path, f'{text}\n[[plots]]\nx = "{x}"\ny = "hops"\n'), quick=quick)
        assert made.plots[-1]["x"] == x


@pytest.mark.parametrize("name", ["delay_ms_p95", "rejoins_at_height_3", "connect_ok_per_change", "degree_over_15"])
def test_a_plot_may_show_a_member_of_a_family(tmp_path: Path, name: str) -> None:
    made = read_experiment(write(tmp_path, f'{GOOD}\n[[plots]]\nx = "table_size"\ny = "{name}"\n'))
    assert made.plots[-1]["y"] == name


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('folder = "hdfs://host/w"', "e.toml:4: workloads.folder: 'hdfs://host/w': needs the path"),
        ("folder = 5", "e.toml:4: workloads.folder: 5: needs the path of a workload's folder on this machine"),
        ('folder = "w"\nnodes = 5', "a workload's folder has no"),
    ],
)
def test_mistakes_in_a_folder_are_told_with_their_line(tmp_path: Path, entry: str, expected: str) -> None:
    text = f'title = "x"\n[[workloads]]\nname = "m"\n{entry}\n[[systems]]\nsystem = "vitis"\n'
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_experiment(tmp_path / "e.toml")
    assert expected in str(caught.value)
