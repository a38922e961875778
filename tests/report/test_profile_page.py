from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.image import imread

from grapevine.model import tables
from grapevine.model.manifest import Manifest
from grapevine.report.profile_page import draw_profile

ROWS: dict[str, list[dict[str, object]]] = {
    "degree_statistics": [
        {"workload": "w", "degree": degree, "count": 3, "mean": 2.0, "variance": 1.0, "standard_deviation": 1.0,
         "maximum": 4, "gini": 0.1, "exponent": 2.0, "exponent_error": 0.1, "tail_start": 1, "tail_share": 1.0,
         "fit_distance": 0.1, "whole_exponent": 2.0, "whole_fit_distance": 0.1}
        for degree in ("subscriptions", "subscribers")
    ],
    "degree_ccdf": [
        {"workload": "w", "degree": degree, "value": value, "count": 1, "ccdf": 1 / value}
        for degree in ("subscriptions", "subscribers") for value in (1, 2, 4)
    ],
    "interest_coverage": [],
    "interest_overlap": [],
}  # fmt: skip


def test_a_profile_is_drawn_as_png_and_svg_even_without_overlap_rows(tmp_path: Path) -> None:
    for table in tables.PROFILE_TABLES:
        (tmp_path / table.name).mkdir()
        pq.write_table(pa.Table.from_pylist(ROWS[table.name], table.schema), tmp_path / table.name / "part-0.parquet")
    Manifest(kind="profile", stage="test", version="0").write(tmp_path)
    png, svg = draw_profile(tmp_path)
    image = imread(png)
    assert image.shape[1] > 1_000
    assert image.min() < 0.5 < image.max()
    groups = [element.get("id", "") for element in ElementTree.parse(svg).iter()]
    assert [f"axes_{i}" in groups for i in (1, 2, 3)] == [True] * 3
    first = svg.read_bytes()
    assert draw_profile(tmp_path)[1].read_bytes() == first, "the same profile gives the same file"
