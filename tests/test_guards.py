"""Rules that one would otherwise have to remember: where randomness comes from, and what no file names.

Each rule is checked on all sources, and on a few lines that break it, so that it is known to notice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]
PACKAGE = TREE / "src" / "grapevine"

# Randomness that no seed decides, by folder, and why no result depends on it there.
UNSEEDED = {
    "net": ({"secrets"}, "tokens of the control server and names of temporary networks must not be guessed"),
    "pipeline": ({"uuid"}, "names Spark's job groups, so that a progress bar finds its own tasks"),
}
GENERATORS = {  # made with a seed, these are functions of it
    "random.Random",
    "numpy.random.default_rng",
    "numpy.random.SeedSequence",
    "numpy.random.PCG64",
    "numpy.random.Philox",
}
NEVER_A_SEED = ("time.", "datetime.", "os.getpid", "os.urandom", "uuid.", "secrets.")


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


# Randomness


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each name that a file imports stands for, in full."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.AST, names: dict[str, str]) -> str | None:
    """`numpy.random.default_rng` for np.random.default_rng; None for what was not imported, such as a parameter."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := full_name(node.value, names)) is not None:
        return f"{owner}.{node.attr}"
    return None


def is_unseeded(call: ast.Call, names: dict[str, str]) -> bool:
    """Whether a generator is made without a seed, or with one that is another in every run."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given or any(isinstance(value, ast.Constant) and value.value is None for value in given):
        return True
    inside = (full_name(node, names) for value in given for node in ast.walk(value))
    return any(name is not None and name.startswith(NEVER_A_SEED) for name in inside)


def is_never_seeded(name: str) -> bool:
    """Whether a name stands for randomness that takes no seed, or shares one state with the whole process."""
    shared = name.startswith("random.") or re.fullmatch(r"numpy\.random\.[a-z_]\w*", name)
    secret = name.startswith("secrets.") or name in ("uuid.uuid1", "uuid.uuid4", "os.urandom")
    return bool(shared and name not in GENERATORS) or secret


def random_sources(text: str) -> Iterator[str]:
    """Where a file takes randomness from that no seed decides: line and name."""
    if not re.search(r"random|uuid|secrets", text):
        return
    tree = ast.parse(text)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            made = full_name(node.func, names)
            if made in GENERATORS and is_unseeded(node, names):
                yield f"line {node.lineno}: {made} without a seed"
        elif isinstance(node, ast.Name | ast.Attribute):
            name = full_name(node, names)
            if name is not None and is_never_seeded(name):
                yield f"line {node.lineno}: {name}"


@pytest.mark.parametrize(
    "broken",
    [
        "import random\nx = random.random()",
        "import random\nx = sorted([1], key=random.shuffle)",
        "from random import choice\nx = choice([1])",
        "from random import Random\nx = Random()",
        "from random import Random\nx = Random(None)",
        "import time\nfrom random import Random\nx = Random(int(time.time()))",
        "from random import SystemRandom\nx = SystemRandom()",
        "import numpy as np\nx = np.random.rand(3)",
        "import numpy as np\nnp.random.seed(1)",
        "import numpy as np\nx = np.random.default_rng()",
        "from numpy.random import default_rng\nx = default_rng()",
        "import uuid\nx = uuid.uuid4()",
        "from uuid import uuid4\nx = uuid4()",
        "import secrets\nx = secrets.token_hex()",
        "import os\nx = os.urandom(8)",
    ],
)
def test_randomness_without_a_seed_is_noticed(broken: str) -> None:
    assert list(random_sources(broken))


@pytest.mark.parametrize(
    "sound",
    [
        "from random import Random\nx = Random(f'peer {1}').random()",
        "from random import Random\ndef pick(random: Random) -> float:\n    return random.uniform(0, 1)",
        "import numpy as np\ndef f(seed: int) -> np.random.Generator:\n    return np.random.default_rng(seed)",
        "from grapevine.kernels.rng import draw\nx = draw(1, 2, 3, 4)",
    ],
)
def test_seeded_generators_and_those_passed_in_are_fine(sound: str) -> None:
    assert not list(random_sources(sound))


def is_excepted(path: Path, place: str) -> bool:
    """Whether this folder may take randomness from there."""
    modules, _ = UNSEEDED.get(path.relative_to(PACKAGE).parts[0], (set(), ""))
    return any(f" {module}." in place for module in modules)


def test_results_depend_on_the_seed_alone() -> None:
    """CONTRIBUTING.md: randomness is `draw`, or a generator that was made with a seed."""
    found = [
        f"{path.relative_to(TREE)}, {place}"
        for path in sources()
        for place in random_sources(path.read_text(encoding="utf-8"))
        if not is_excepted(path, place)
    ]
    assert not found, "randomness that no seed decides (use kernels.rng.draw, or a Random that was passed in)"


def test_every_exception_is_still_needed() -> None:
    for folder, (modules, _) in UNSEEDED.items():
        texts = [path.read_text(encoding="utf-8") for path in sorted((PACKAGE / folder).rglob("*.py"))]
        places = [place for text in texts for place in random_sources(text)]
        for module in modules:
            assert any(f" {module}." in place for place in places), f"{folder} no longer uses {module}: take it out"


# Hashes


def hash_calls(text: str) -> list[int]:
    """Lines that call Python's own `hash`, outside `__hash__`."""
    if "hash(" not in text:
        return []
    tree = ast.parse(text)
    fine = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
        for inner in ast.walk(node)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "hash"
        and id(node) not in fine
    ]


def test_a_call_of_hash_is_noticed() -> None:
    assert hash_calls("place = hash('topic') % 8") == [1]
    assert not hash_calls("class A:\n    def __hash__(self) -> int:\n        return hash(self.id)")


def test_nothing_is_decided_by_pythons_hash() -> None:
    """The hash of a string is another in every process (PYTHONHASHSEED): use `model.ids` or `kernels.rng`."""
    found = {path.name: lines for path in sources() if (lines := hash_calls(path.read_text(encoding="utf-8")))}
    assert not found


# Names of hosts and machines. A letter stands in brackets, so that the patterns do not find themselves.

REGISTRY = re.compile(
    r"py[p]i\.(org|io)|pyth[o]nhosted|an[a]conda\.org|repo1\.mav[e]n|mav[e]n\.org|registry\.np[m]js|arti[f]actory|extra-index-ur[l]",
    re.IGNORECASE,
)
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(ho[m]e|ro[o]t|t[m]p|Us[e]rs|mn[t])/")
TEXTS = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cfg", ".transcript", ".ipynb", ""}
FOLDERS = ("src", "tests", "bench", "pages", "docs", "examples", "experiments", ".github", ".ci")


def texts_of_the_tree() -> Iterator[tuple[str, str]]:
    """Every text file that belongs to the project."""
    inside = (path for folder in FOLDERS for path in sorted((TREE / folder).rglob("*")))
    for path in [*sorted(TREE.glob("*")), *sorted(TREE.glob(".*")), *inside]:
        if path.is_file() and path.suffix in TEXTS and "__pycache__" not in path.parts and path.name != ".git":
            yield str(path.relative_to(TREE)), path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY, "--index-url https://py" + "pi.org/simple"),
        (MACHINE_PATH, 'Path("/t' + 'mp/out")'),
        (MACHINE_PATH, "cd /ho" + "me/somebody/grapevine"),
    ],
)
def test_names_of_hosts_and_machines_are_noticed(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    """Whoever clones this has other mirrors and other folders."""
    found = [
        f"{name}: {match.group()}"
        for name, text in texts_of_the_tree()
        for pattern in (REGISTRY, MACHINE_PATH)
        for match in pattern.finditer(text)
    ]
    assert not found
