// Draws the charts and makes tables sortable. The library before it has put vegaEmbed on the window.
const root = document.documentElement;

// SVG, because its colours are CSS variables: charts follow the page when it turns dark.
// `ast` interprets expressions instead of compiling them, which the page's content security policy forbids.
const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true };

const LEAST = 260; // pixels that lines need

// The names at the ends of lines stay where they leave enough room for the lines themselves; the legend has them, too.
function withLabels(spec, width) {
  const room = spec.usermeta?.labelRoom;
  if (room === undefined || width >= LEAST + room) return spec;
  return { ...spec, layer: spec.layer.filter((layer) => !layer.name?.startsWith("label ")) };
}

async function drawChart(place) {
  const spec = JSON.parse(document.getElementById(`${place.id}-spec`).textContent);
  try {
    await window.vegaEmbed(place, withLabels(spec, place.clientWidth), options);
  } catch (error) {
    place.textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }
}

function sortBy(heading) {
  const table = heading.closest("table");
  const column = heading.cellIndex;
  const direction = heading.ariaSort === "ascending" ? -1 : 1;
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = direction === 1 ? "ascending" : "descending";

  const numeric = heading.classList.contains("number");
  const keyed = [...table.tBodies[0].rows].map((row) => ({ row, by: row.cells[column].dataset.by }));
  keyed.sort((a, b) => {
    if (a.by === undefined || b.by === undefined) return (a.by === undefined) - (b.by === undefined);
    const numbers = numeric ? Number(a.by) - Number(b.by) : NaN;
    return direction * (Number.isNaN(numbers) ? a.by.localeCompare(b.by, undefined, { numeric: true }) : numbers);
  });
  table.tBodies[0].append(...keyed.map(({ row }) => row));
}

for (const heading of document.querySelectorAll(".sortable thead th")) {
  heading.querySelector("button").addEventListener("click", () => sortBy(heading));
}

await Promise.all([...document.querySelectorAll(".chart")].map(drawChart));
// For whoever checks the page in a browser: everything is drawn, and this is how wide it came out.
root.dataset.drawn = "yes";
root.dataset.widths = `${root.scrollWidth} ${root.clientWidth}`;
