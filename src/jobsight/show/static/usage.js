// The usage page's chart: what there was, was given and was used, in CPUs, step by step.
import { instants, ticks, times, units } from "./axis.js";
import * as numbers from "./numbers.js";
import { colour } from "./plot.js";
import { clock, day } from "./times.js";

const LINES = [
  { name: "up", label: "to be had", colour: "--text", dash: [6, 4], style: "dashed", of: (row) => row.total - row.down },
  { name: "allocated", label: "given to jobs", colour: "--threads", fill: 0.15, style: "solid", of: (row) => row.allocated },
  { name: "used", label: "used", colour: "--cpu", fill: 0.3, style: "solid", of: (row) => row.used },
  { name: "own", label: "chosen", colour: "--gpu", style: "solid", of: (row) => row.own_used },
  { name: "demand", label: "waited for", colour: "--warning", dash: [2, 2], style: "dotted", of: (row) => row.demand },
];
const box = document.getElementById("charts");
let report = null;
let view = null;

/** Steps with their ends, and what was there in CPUs: CPU seconds of a step by its seconds. */
function spans() {
  const { steps, until, counted } = report;
  const usual = report.step === "day" ? 86_400 : 3_600;
  return steps.map((row, index) => {
    const next = steps[index + 1]?.time ?? Math.min(counted ?? until, until);
    // A step after which nothing was counted for long has ended by itself.
    const end = Math.max(row.time + 3_600, Math.min(next, row.time + 1.05 * usual));
    return { row, begin: row.time, end };
  });
}

function columns(line, parts) {
  const found = { x: [], y: [] };
  for (const { row, begin, end } of parts) {
    const value = line.of(row);
    const y = value === null || value === undefined ? NaN : value / (end - begin);
    if (found.x.length && found.x.at(-1) < 1000 * begin) { found.x.push(found.x.at(-1)); found.y.push(NaN); }
    found.x.push(1000 * begin, 1000 * end);
    found.y.push(y, y);
  }
  return found;
}

function dress(figure) {
  const font = getComputedStyle(document.body).fontFamily;
  const [x, y] = [figure.xaxes[0], figure.yaxes[0]];
  for (const axis of [x, y]) {
    Object.assign(axis, {
      axis_line_color: colour("--line"), major_tick_line_color: colour("--line"), minor_tick_line_color: null,
      major_label_text_color: colour("--quiet"), major_label_text_font_size: "12px", major_label_text_font: font,
    });
  }
  Object.assign(x, { ticker: instants(), formatter: times(), major_label_text_line_height: 1 });
  Object.assign(y, { ticker: ticks("decimal"), formatter: units(numbers.cores), axis_line_color: null });
  for (const grid of [figure.xgrids[0], figure.ygrids[0]]) Object.assign(grid, { grid_line_color: colour("--line"), grid_line_alpha: 0.5 });
  figure.xgrids[0].ticker = x.ticker;
  figure.ygrids[0].ticker = y.ticker;
}

function keys(lines) {
  const made = lines.map((line) => {
    const key = document.createElement("span");
    const stroke = key.appendChild(document.createElement("i"));
    stroke.className = line.style;
    stroke.style.borderColor = `var(${line.colour})`;
    key.append(line.label);
    return key;
  });
  box.querySelector(".keys").replaceChildren(...made);
}

function read(parts, lines, seconds) {
  const here = parts.find(({ begin, end }) => begin <= seconds && seconds < end);
  const said = here && lines.map((line) => `${line.label} ${numbers.cores(line.of(here.row) / (here.end - here.begin))}`).join(" · ");
  const date = new Date(1000 * seconds);
  const when = report.step === "day" ? day(date) : `${day(date)} ${clock(date, "minute")}`;
  box.querySelector(".readout").textContent = said ? `${when}: ${said} CPUs` : "";
}

async function draw() {
  box.dataset.rendered = "false";
  if (view) view.clear();
  const parts = spans();
  const lines = LINES.filter((line) => parts.some(({ row }) => line.of(row) !== null && line.of(row) !== undefined));
  const series = lines.map((line) => columns(line, parts));
  const most = Math.max(...series.flatMap(({ y }) => y.filter((value) => !Number.isNaN(value))), 0.1);
  const figure = new Bokeh.Plotting.Figure({
    x_range: new Bokeh.Range1d({ start: 1000 * report.since, end: 1000 * report.until }),
    y_range: new Bokeh.Range1d({ start: 0, end: 1.08 * most }), sizing_mode: "stretch_both", toolbar_location: null, tools: [],
    min_border_left: 72, min_border_right: 16, min_border_top: 4, min_border_bottom: 24,
    background_fill_alpha: 0, border_fill_alpha: 0, outline_line_color: null,
  });
  dress(figure);
  lines.forEach((line, index) => {
    const source = new Bokeh.ColumnDataSource({ data: series[index] });
    const color = colour(line.colour);
    if (line.fill) figure.varea({ source, x: { field: "x" }, y1: 0, y2: { field: "y" }, fill_color: color, fill_alpha: line.fill });
    figure.line({ source, x: { field: "x" }, y: { field: "y" }, line_color: color, line_width: 1.5, line_dash: line.dash ?? [] });
  });
  figure.on_event("mousemove", (event) => read(parts, lines, event.x / 1000));
  figure.on_event("mouseleave", () => { box.querySelector(".readout").textContent = ""; });
  const document_ = new Bokeh.Document();
  document_.add_root(figure);
  const target = box.querySelector(".plot");
  target.replaceChildren();
  keys(lines);
  view = await Bokeh.embed.add_document_standalone(document_, box, [target]);
  while (!document_.is_idle) await new Promise(requestAnimationFrame);
  box.dataset.rendered = "true";
}

async function begin() {
  try {
    const answer = await fetch(box.dataset.api, { cache: "no-store" });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    report = await answer.json();
    await draw();
  } catch (error) {
    const waiting = document.getElementById("waiting");
    waiting.textContent = `The chart could not be drawn: ${error.message}.`;
    waiting.hidden = false;
    throw error;
  }
  document.addEventListener("theme", () => draw());
}

if (box) begin();
