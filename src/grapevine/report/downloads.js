// Saves a figure's data as CSV, and its picture as SVG or PNG, without asking anybody else for anything.
const FONT = getComputedStyle(document.body).fontFamily.replaceAll('"', "'");
const MARGIN = 16;
const SCALE = 2; // pixels of a PNG for each of the page

// Pictures go onto white paper, whatever the page looks like: the first rule of the style has the light colours.
const light = document.getElementById("style").sheet.cssRules[0].style;
const inColour = (source) => source.replace(/var\((--[\w-]+)\)/g, (_, name) => light.getPropertyValue(name).trim());

const escaped = (text) => text.replace(/[&<>]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[letter]);

function measure(text, font) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${font} ${FONT}`;
  return context.measureText(text).width;
}

// The entries of a legend in lines of at most this width; each is a swatch and its name.
function legendOf(entries, width, top) {
  const lines = [];
  let [x, y] = [MARGIN, top];
  for (const [label, swatch] of Object.entries(entries)) {
    const wide = 42 + measure(label, "13px");
    if (x > MARGIN && x + wide > width - MARGIN) [x, y] = [MARGIN, y + 20];
    const inside = swatch.replace(/^<svg[^>]*>/, "").replace(/<\/svg>$/, "");
    lines.push(`<g transform="translate(${x} ${y})">${inside}</g>`);
    lines.push(`<text x="${x + 42}" y="${y + 11.5}" font-size="13">${escaped(label)}</text>`);
    x += wide + 18;
  }
  return { source: lines.join(""), height: lines.length ? y - top + 30 : 0 };
}

// The figure as one SVG: its title, its legend, and its charts with their headings where they are on the page.
function pictureOf(figure, legend) {
  const charts = [...figure.querySelectorAll(".chart svg, svg.overlay")];
  const boxes = charts.map((chart) => chart.getBoundingClientRect());
  const headings = [...figure.querySelectorAll("h4")];
  const tops = [...boxes, ...headings.map((heading) => heading.getBoundingClientRect())].map((box) => box.top);
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...tops)];
  const title = figure.querySelector("h3").textContent;
  const charted = Math.max(...boxes.map((box) => box.right)) - left;
  const width = Math.ceil(Math.max(charted, measure(title, "bold 17px")) + 2 * MARGIN);
  const explained = legendOf(legend, width, MARGIN + 30);
  const down = MARGIN + 30 + explained.height - top;
  const parts = charts.map((chart, i) => {
    const copy = chart.cloneNode(true);
    const { left: x, top: y, width: wide, height: high } = boxes[i];
    const place = { x: x - left + MARGIN, y: y + down, width: wide, height: high };
    for (const [name, value] of Object.entries(place)) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy);
  });
  const names = headings.map((heading) => {
    const box = heading.getBoundingClientRect();
    const place = `x="${box.left - left + MARGIN}" y="${box.bottom + down - 4}"`;
    return `<text ${place} font-size="13" font-weight="bold">${escaped(heading.textContent)}</text>`;
  });
  const height = Math.ceil(Math.max(...boxes.map((box) => box.bottom)) + down + MARGIN);
  const source = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
    ` font-family="${FONT}" fill="var(--ink)"><rect width="100%" height="100%" fill="var(--card)"/>`,
    `<text x="${MARGIN}" y="${MARGIN + 16}" font-size="17" font-weight="bold">${escaped(title)}</text>`,
    explained.source,
    ...names,
    ...parts,
    "</svg>",
  ];
  return { source: inColour(source.join("")), width, height };
}

async function asPng({ source, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * width, height: SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const makers = {
  csv: async (figure, { csv }) => new Blob([csv], { type: "text/csv" }),
  svg: async (figure, { legend }) => new Blob([pictureOf(figure, legend).source], { type: "image/svg+xml" }),
  png: async (figure, { legend }) => asPng(pictureOf(figure, legend)),
};

async function save(button) {
  const group = button.closest(".downloads");
  const about = JSON.parse(document.getElementById(group.dataset.of).textContent);
  const content = await makers[button.dataset.as](button.closest("figure"), about);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = `${about.name}.${button.dataset.as}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

for (const group of document.querySelectorAll(".downloads")) {
  group.hidden = false;
  for (const button of group.querySelectorAll("button")) button.addEventListener("click", () => save(button));
}
