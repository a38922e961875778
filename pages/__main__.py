"""`python -m pages`: write all generated pages (`make pages`)."""

from pages import DOCS, PAGES

for path, page in PAGES.items():
    target = DOCS / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(), encoding="utf-8")
