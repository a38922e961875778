"""What an input looks like, told from its first lines."""

from __future__ import annotations

import pytest

from grapevine.model.errors import UsageError
from grapevine.pipeline.formats import FORMATS
from grapevine.pipeline.layout import JSON, SPACE, Asked, Layout, detect_layout, is_data, preview, split


def detect(*texts: str, format: str = "follows", **asked: str) -> Layout:
    return detect_layout([text.splitlines() for text in texts], FORMATS[format], Asked(**asked))


def shown(text: str, format: str = "pairs", **asked: str) -> str:
    return preview([text.splitlines()], detect(text, format=format, **asked), FORMATS[format])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b, c\td\n1\t2\n", Layout("\t")),
        ("a b,c d\n", Layout(",")),
        ("a  b\n", Layout(SPACE)),
        ("a;b\nc;d, e\n", Layout(";")),
        ("a|b\nc|d\n", Layout("|")),
        ("1::2\n3::4\n", Layout("::")),
        ("# from,to\nann bob\n", Layout(SPACE)),
        ("From\tTo\nann\tbob\n", Layout("\t", (), ("From\tTo",))),
        ("x y\n1 2\n3 4\n", Layout(SPACE, (), ("x y",))),
        ("1 2\n3 4\n", Layout(SPACE)),
        ("", Layout(SPACE)),
    ],
)
def test_delimiter_and_header_are_told_from_the_first_lines(text: str, expected: Layout) -> None:
    assert detect(text) == expected


def test_a_header_is_what_has_words_where_numbers_belong() -> None:
    assert detect("who,what,when\nann,Oslo,5\n", format="edits").headers == ("who,what,when",)
    assert detect("who,what,when\nann,Oslo,5\n", format="edits", header="no").headers == ()
    assert detect("ann,Oslo,5\nbob,Rome,6\n", format="edits").headers == ()
    assert detect("ann,Oslo,5\nbob,Rome,6\n", format="edits", header="yes").headers == ("ann,Oslo,5",)


def test_a_quoted_header_over_names_is_one() -> None:
    assert detect('"User","Item"\n"ann","Oslo, Norway"\n', format="pairs").headers == ('"User","Item"',)


def test_a_first_name_over_numbers_is_a_header_only_over_columns_of_numbers() -> None:
    """Who is called like no number in a file of numbers would be swallowed."""
    assert detect("x17 y9\n1 2\nx3 4\n", format="pairs").headers == ()
    assert detect("x17 y9\n1 2\n", format="pairs").headers == (), "one line of numbers tells nothing"
    assert detect("x17 y9\n1 2\n3 4\n", format="pairs").headers == ("x17 y9",)


def test_files_may_spell_their_headers_differently() -> None:
    found = detect("user item\n1 2\n", "User Item\n1 2\n", "", format="pairs")
    assert found == Layout(SPACE, (), ("user item", "User Item"))


COMMENTS = {"  ": False, "# x": False, "#": False, "## a b": False, " % x y": False, "x #": True, "#1fan Rome": True}


def test_names_may_begin_with_a_comment_sign() -> None:
    layout, pairs = Layout(SPACE), FORMATS["pairs"]
    assert {text: is_data(text, layout, pairs) for text in COMMENTS} == COMMENTS | {"x #": True}
    assert not is_data("#1fan Rome", Layout(SPACE, comments="yes"), pairs)
    assert is_data("# x", Layout(SPACE, comments="no"), pairs)
    assert not is_data("#1fan", layout, pairs), "it has too few columns for a name"
    assert not is_data("#1 2", layout, FORMATS["latency-matrix"])


def test_columns_are_found_by_the_names_in_a_header() -> None:
    text = "time,page_id,comment,user_id\n5,Oslo,nice,ann\n"
    assert detect(text, format="pairs").columns == (3, 1)
    assert detect(text, format="edits").columns == (3, 1, 0)
    assert detect("item,user\nOslo,ann\n", format="pairs").columns == (1, 0)
    assert detect("user,item\nann,Oslo\n", format="pairs").columns == ()


def test_columns_are_where_the_user_says() -> None:
    text = "5,x,ann,y,Oslo\n6,x,bob,y,Rome\n"
    assert detect(text, format="edits", columns="user=3,item=5,time=1").columns == (2, 4, 0)
    named = "stamp,x,actor,y,place\n" + text
    found = detect(named, format="pairs", columns="user=Actor, item=place")
    assert (found.columns, found.headers) == ((2, 4), ("stamp,x,actor,y,place",))
    assert detect(named, format="pairs", columns="user=3,item=5").headers == ("stamp,x,actor,y,place",)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("user=1", "item is missing; e.g. user=1,item=2"),
        ("user=0,item=1", "positions begin with 1"),
        ("user", "needs the form NAME=POSITION"),
        ("usr=1,item=2", "pairs has no column usr; it has user, item; did you mean user?"),
        ("user=a,item=b", "the input has no header with such names"),
    ],
)
def test_columns_that_cannot_be_are_one_sentence(columns: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        detect("1 2\n3 4\n", format="pairs", columns=columns)
    assert expected in str(caught.value)


def test_columns_that_are_not_in_the_header_are_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="the header has no column actr; it has actor, place; did you mean actor"):
        detect("actor,place\nann,Oslo\n", format="pairs", columns="user=actr,item=place", header="yes")
    with pytest.raises(UsageError, match="avt says itself where its columns are"):
        detect("a 1 0 10\n", format="avt", columns="user=1")
    with pytest.raises(UsageError, match="different orders"):
        detect("user,item\na,b\n", "item,user\nb,a\n", format="pairs")


def test_json_lines_have_keys() -> None:
    lines = '{"actor": "ann", "repo": "x", "n": 5}\n{"actor": "bob", "repo": "y", "n": 6}\n'
    found = detect(lines, format="pairs", columns="user=actor,item=repo")
    assert found == Layout(JSON, ("actor", "repo"), (), "no")
    assert detect('{"item": 1, "user": 2}\n', format="pairs").columns == ("user", "item")
    with pytest.raises(UsageError, match="the first object has actor, repo, n: say which are user, item"):
        detect(lines, format="pairs")


def test_the_user_is_told_how_the_first_row_is_read() -> None:
    first = "first row read as user=ann, item=Oslo"
    assert shown("user,item\nann,Oslo\n") == f"{first}; comma; 2 columns; header 'user,item'"
    assert shown("ann::Oslo\n") == f"{first}; ::; 2 columns; no header"
    assert shown("t\tx\n1\tann\n", columns="user=2,item=1").startswith("first row read as user=x, item=t; tab")
    assert shown('{"user": "ann", "item": 7}\n') == "first row read as user=ann, item=7; json"
    assert shown("# nothing\n") == "no data in the first lines; space"


def test_a_delimiter_is_any_text_or_has_a_name() -> None:
    assert [detect("a~~b\n", delimiter=text).delimiter for text in ("~~", "tab", "semicolon", "\\t")] == [
        "~~", "\t", ";", "\t"
    ]  # fmt: skip
    with pytest.raises(UsageError, match="is empty"):
        detect("a b\n", delimiter="")


def test_lists_have_no_header_and_only_text() -> None:
    """A member may be called like a column."""
    assert detect("user v\nann bob\n", format="members").headers == ()
    assert detect("user item\nann Oslo\n", format="adjacency").headers == ()
    with pytest.raises(UsageError, match="members: is read from text alone"):
        detect("[]", format="members", delimiter="json")


def test_fields_may_be_quoted() -> None:
    assert split('ann,"Washington, D.C."', ",") == ["ann", "Washington, D.C."]
    assert split('"a";"b; c"', ";") == ["a", "b; c"]
    assert split('"a"\t b ', "\t") == ["a", "b"]
