"""Settings from texts, TOML and Python: the same answer to the same mistake, and all of them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapevine
from grapevine.model.config import Config, parameter
from grapevine.model.errors import UsageError
from grapevine.model.settings import check_values, make, none_of, parse_texts, unknown_names, with_none
from grapevine.synthetic import generate


@dataclass(frozen=True, slots=True, kw_only=True)
class Example(Config):
    size: int = parameter(15, "links", source="§1", low=4, high=100)
    count: int = parameter(0, "how many", source="§1")
    share: float | None = parameter(None, "share", source="§2", low=0)
    pause: float = parameter(1.0, "pause", source="§2")
    law: str = parameter("zipf", "law", source="§3", choices=("zipf", "none"))
    fast: bool = parameter(False, "in a hurry", source="§4")
    label: str = parameter("", "name", source="§4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Other(Config):
    colour: str = parameter("red", "colour", source="§5")


whole = st.integers(-(2**63) + 1, 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
valid = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(4, 100),
        "count": whole,
        "share": st.none() | st.floats(min_value=0, allow_infinity=False),
        "pause": finite | whole,
        "law": st.sampled_from(["zipf", "none"]),
        "fast": st.booleans(),
        "label": st.text(),
    },
)
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())
names = st.sampled_from(list(Example.__dataclass_fields__)) | st.text(max_size=6)


def as_kept(values: dict[str, Any]) -> dict[str, Any]:
    """A whole number for a float is that float."""
    return values | {"pause": float(values["pause"])} if "pause" in values else values


@given(valid)
def test_what_is_valid_is_taken_as_it_is(values: dict[str, Any]) -> None:
    made = make(Example, values, owner="an example")
    assert made.as_dict() == Example().as_dict() | as_kept(values)


@given(valid)
def test_a_text_means_what_python_would_have_been_given(values: dict[str, Any]) -> None:
    texts = [
        f"{name}={str(value).lower() if value in (None, True, False) else value}" for name, value in values.items()
    ]
    found, mistakes = parse_texts(texts, Example, owner="an example")
    assert (found, mistakes) == (as_kept(values), [])
    assert all(type(found[name]) is float for name in ("pause",) if name in found)


@given(st.dictionaries(names, anything, max_size=6))
def test_whatever_is_given_is_a_config_or_one_line_that_names_every_mistake(values: dict[str, Any]) -> None:
    found, mistakes = check_values(Example, values, owner="an example")
    wrong = set(values) - set(found)
    if not wrong:
        assert Example(**values).as_dict() == Example().as_dict() | values
        return
    with pytest.raises(UsageError) as raised:
        make(Example, values, owner="an example")
    assert str(raised.value) == "; ".join(mistakes)
    for name in wrong:
        assert (f"{name}=" if name in Example.__dataclass_fields__ else name) in str(raised.value)
    assert Example(**found)


@given(st.lists(st.text(max_size=12) | st.builds("{}={}".format, names, st.text(max_size=6))))
def test_any_texts_are_values_or_mistakes(texts: list[str]) -> None:
    found, mistakes = parse_texts(texts, Example, Other, owner="an example")
    assert Example(**{name: value for name, value in found.items() if name != "colour"})
    assert mistakes or all("=" in text for text in texts)


@given(names, anything)
def test_texts_and_python_values_are_refused_alike(name: str, value: Any) -> None:
    """Strings apart, which a text may turn into something else."""
    if name not in Example.__dataclass_fields__ or isinstance(value, (str, list, type(None))):
        return
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if Example.__dataclass_fields__[name].type == "str":
        return
    from_python = check_values(Example, {name: value}, owner="x").mistakes
    from_text = parse_texts([f"{name}={text}"], Example, owner="x").mistakes
    assert [mistake.partition(": ")[2] for mistake in from_text] == [m.partition(": ")[2] for m in from_python]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"size": "many"}, "size='many': needs a whole number"),
        ({"size": 5.0}, "size=5.0: needs a whole number"),
        ({"size": True}, "size=True: needs a whole number"),
        ({"size": None}, "size=None: needs a whole number"),
        ({"size": 3}, "size=3: needs at least 4"),
        ({"size": 101}, "size=101: needs at most 100"),
        ({"count": 2**63}, f"count={2**63}: needs at most {2**63 - 1}"),
        ({"pause": 10**400}, f"pause={10**400}: needs at most {2**63 - 1}"),
        ({"share": "x"}, "share='x': needs a number or none"),
        ({"share": math.nan}, "share=nan: needs a finite number"),
        ({"pause": -math.inf}, "pause=-inf: needs a finite number"),
        ({"pause": False}, "pause=False: needs a number"),
        ({"fast": 1}, "fast=1: needs true or false"),
        ({"law": 5}, "law=5: choose one of zipf, none"),
        ({"label": 5}, "label=5: needs a text"),
        ({"size": 3, "law": "x"}, "size=3: needs at least 4; law='x': choose one of zipf, none"),
        ({"hue": 1}, "x has no parameter hue; it has size, count, share, pause, law, fast, label"),
        (
            {"sise": 1},
            "x has no parameter sise; it has size, count, share, pause, law, fast, label; did you mean size?",
        ),
    ],
)
def test_a_mistake_says_what_was_given_and_what_is_allowed(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        make(Example, values, owner="x")
    assert str(raised.value) == said
    if all(name in Example.__dataclass_fields__ for name in values):
        with pytest.raises(UsageError) as raised:
            Example(**values)
        assert str(raised.value) == said


def test_texts_are_read_by_the_type_of_their_field() -> None:
    texts = ["size=20", "share=none", "fast=TRUE", "pause=3", "label=a=b", "colour=none"]
    assert parse_texts(texts, Example, Other, owner="x").or_raise() == {
        "size": 20,
        "share": None,
        "fast": True,
        "pause": 3.0,
        "label": "a=b",
        "colour": "none",
    }
    texts = ["size=many", "size=none", "size", "hue=1", "fast=yes", "pause=nan", "share=x"]
    with pytest.raises(UsageError) as raised:
        parse_texts(texts, Example, owner="x", flag="--option").or_raise()
    assert str(raised.value).split("; ") == [
        "--option size=many: needs a whole number",
        "--option size=none: needs a whole number",
        "--option size: write it as key=value",
        "x has size, count, share, pause, law, fast, label",
        "--option fast=yes: needs true or false",
        "--option pause=nan: needs a finite number",
        "--option share=x: needs a number or none",
        "x has no parameter hue",
        "it has size, count, share, pause, law, fast, label",
    ]


def test_none_stands_for_no_value_where_there_may_be_none() -> None:
    written = {"share": "none", "law": "none", "label": "none", "size": 5}
    assert with_none(Example, written) == written | {"share": None}
    assert with_none(Example, {"share": ["none", 0.5]}) == {"share": [None, 0.5]}


def test_all_unknown_names_are_one_sentence() -> None:
    assert unknown_names("x", ["a", "siz", "size", 3], ["size", "law"]) == [
        "x has no parameter a, siz, 3; it has size, law; did you mean size?"
    ]
    assert unknown_names("x", ["size"], ["size", "law"]) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table_size": "x"}, "table_size='x': needs a whole number"),
        ({"table_size": True}, "table_size=True: needs a whole number"),
        ({"table_size": 15.0}, "table_size=15.0: needs a whole number"),
        ({"tabel_size": 15}, r"vitis has no parameter tabel_size; it has .*; did you mean table_size\?"),
        ({"rounds": "x"}, "rounds='x': needs a whole number"),
        ({"seed": True}, "seed=True: needs a whole number"),
        ({"seed": "1"}, "seed='1': needs a whole number"),
        ({"threads": 0}, "threads=0: needs a whole number of 1 or more"),
    ],
)
def test_simulate_checks_its_arguments_as_the_command_line_does(given: dict[str, Any], said: str) -> None:
    workload = generate("vitis-random", nodes=30, topics=4, subscriptions_per_node=2)
    with pytest.raises(UsageError, match=said):
        grapevine.simulate("vitis", workload, **given)


def test_models_check_their_arguments_as_the_command_line_does() -> None:
    with pytest.raises(UsageError, match="nodes='30': needs a whole number; rate_exponent=nan: needs a finite number"):
        generate("vitis-random", nodes="30", rate_exponent=math.nan)


def test_a_name_that_is_none_of_the_known_ones_is_answered_with_the_nearest() -> None:
    known = ["omen", "vitis"]
    assert none_of("vits", known, "system ") == "system 'vits': choose one of omen, vitis; did you mean vitis?"
    assert none_of(5, ["omen"]) == "5: choose one of omen"
    for ask, expected in (
        (lambda: grapevine.simulate("vits", generate("vitis-high", nodes=60)), "did you mean vitis?"),
        (lambda: generate("vitis-hig"), "did you mean vitis-high?"),
    ):
        with pytest.raises(UsageError) as caught:
            ask()
        assert expected in str(caught.value)
