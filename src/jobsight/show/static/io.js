// The file system's page: total, by user and density of one operation, on one time axis; a click asks who made a peak.
import { instants, times, units } from "./axis.js";
import * as numbers from "./numbers.js";
import { colour } from "./plot.js";
import { clock, day, zone } from "./times.js";

const box = document.getElementById("charts");
const cursor = document.getElementById("cursor");
const COLOURS = ["--cpu", "--gpu", "--memory", "--io", "--network", "--power", "--written", "--threads"];
let panels = null;
let views = null;

const amount = (value) => (panels.unit === "bytes" ? numbers.rate(value) : `${numbers.digits(value)}/s`);

/** Steps that follow each other become one line, with a gap where one is missing. */
function line(series, step) {
  const found = { x: [], y: [] };
  series.time.forEach((time, index) => {
    const value = series.value[index];
    if (!value) return; // zeros have no place on a logarithmic scale
    if (found.x.length && found.x.at(-1) < 1000 * time) { found.x.push(NaN); found.y.push(NaN); }
    found.x.push(1000 * time, 1000 * (time + step));
    found.y.push(value, value);
  });
  return found;
}

/** From which time to which nobody looked. */
function unseen({ total, since, until, step }) {
  const found = { from: [], to: [] };
  let last = since;
  const close = (to) => { if (to > last) { found.from.push(1000 * last); found.to.push(1000 * to); } };
  total.time.forEach((time, index) => {
    if (total.observed[index] === 0) return;
    close(time);
    last = time + step;
  });
  if (until - last > step) close(until); // the newest rows are still on their way
  return found;
}

function bounds(values) {
  const known = values.filter((value) => value > 0);
  if (!known.length) return [0.1, 10];
  const [least, most] = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, 0]);
  return [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most) + 0.05)];
}

/** Powers of ten; between them 2 and 5 too where there are few. */
function powers([low, high]) {
  const [first, last] = [Math.round(Math.log10(low)), Math.round(Math.log10(high))];
  const parts = last - first > 2 ? [1] : [1, 2, 5];
  const found = [];
  for (let power = first; power <= last; power += 1) for (const part of parts) found.push(part * 10 ** power);
  return new Bokeh.Models.FixedTicker({ ticks: found.filter((value) => value <= high), minor_ticks: [] });
}

function dress(figure, tick, last) {
  const font = getComputedStyle(document.body).fontFamily;
  const [x, y] = [figure.xaxes[0], figure.yaxes[0]];
  for (const axis of [x, y]) {
    Object.assign(axis, {
      axis_line_color: colour("--line"), major_tick_line_color: colour("--line"), minor_tick_line_color: null,
      major_label_text_color: colour("--quiet"), major_label_text_font_size: "12px", major_label_text_font: font,
    });
  }
  Object.assign(x, { ticker: instants(), formatter: times(), major_label_text_line_height: 1 });
  Object.assign(y, { formatter: units(tick), axis_line_color: null });
  for (const grid of [...figure.xgrids, ...figure.ygrids]) Object.assign(grid, { grid_line_color: colour("--line"), grid_line_alpha: 0.5 });
  figure.xgrids[0].ticker = x.ticker;
  if (!last) Object.assign(x, { major_label_text_color: null, major_label_text_font_size: "0px", major_tick_out: 0 });
}

function frame(range, span, heights, log, tick, last) {
  const { BoxZoomTool, CrosshairTool, WheelZoomTool } = Bokeh.Models;
  const zoom = new BoxZoomTool({ dimensions: "width" });
  const wheel = new WheelZoomTool({ dimensions: "width", modifiers: { ctrl: true } });
  const figure = new Bokeh.Plotting.Figure({
    x_range: range, y_range: new Bokeh.Range1d({ start: heights[0], end: heights[1] }), y_axis_type: log ? "log" : "linear",
    sizing_mode: "stretch_both", toolbar_location: null, tools: [zoom, wheel, new CrosshairTool({ overlay: span })],
    min_border_left: 88, min_border_right: 16, min_border_top: 4, min_border_bottom: last ? 24 : 8,
    background_fill_alpha: 0, border_fill_alpha: 0, outline_line_color: null,
  });
  figure.toolbar.active_drag = zoom;
  figure.toolbar.active_scroll = wheel;
  dress(figure, tick, last);
  if (log) figure.yaxes[0].ticker = figure.ygrids[0].ticker = powers(heights);
  const source = new Bokeh.ColumnDataSource({ data: unseen(panels) });
  figure.vstrip({ source, x0: { field: "from" }, x1: { field: "to" }, line_color: null, fill_color: null, hatch_pattern: "/", hatch_color: colour("--line"), hatch_scale: 8, hatch_weight: 1 });
  if (box.dataset.from) {
    const picked = new Bokeh.ColumnDataSource({ data: { from: [1000 * box.dataset.from], to: [1000 * box.dataset.to] } });
    figure.vstrip({ source: picked, x0: { field: "from" }, x1: { field: "to" }, line_color: null, fill_color: colour("--careful"), fill_alpha: 0.25 });
  }
  return figure;
}

function draw(figure, series, name, width) {
  const source = new Bokeh.ColumnDataSource({ data: line(series, panels.step) });
  figure.line({ source, x: { field: "x" }, y: { field: "y" }, line_color: colour(name), line_width: width });
}

function keys(id, pairs) {
  const place = document.querySelector(`#${id} .keys`);
  place.replaceChildren(...pairs.map(([text, name]) => {
    const key = document.createElement("span");
    const sign = document.createElement("i");
    sign.style.borderTopColor = colour(name);
    key.append(sign, text);
    return key;
  }));
}

function heat(figure, { time, decade, number }) {
  const most = Math.max(1, ...number);
  const data = {
    x: time.map((at) => 1000 * (at + panels.step / 2)), y: decade.map((power) => power + 0.5),
    width: time.map(() => 1000 * panels.step), alpha: number.map((many) => 0.15 + 0.85 * Math.log1p(many) / Math.log1p(most)),
  };
  const source = new Bokeh.ColumnDataSource({ data });
  figure.rect({ source, x: { field: "x" }, y: { field: "y" }, width: { field: "width" }, height: 1, line_color: null, fill_color: colour("--cpu"), fill_alpha: { field: "alpha" } });
  document.querySelector("#chart-density .keys").textContent = `darker: more users, at most ${numbers.digits(most)}`;
}

function figures(range, span) {
  const { total, users, density } = panels;
  const levels = bounds([...total.value, ...users.flatMap((user) => user.value)]);
  const found = { total: frame(range, span, bounds(total.value), true, amount, false), users: frame(range, span, levels, true, amount, !density) };
  draw(found.total, total, "--written", 1.5);
  users.forEach((user, index) => draw(found.users, user, COLOURS[index % COLOURS.length], 1.5));
  keys("chart-users", users.map((user, index) => [user.name || "— not known", COLOURS[index % COLOURS.length]]));
  if (density) {
    const powers = density.decade.length ? density.decade : [0];
    found.density = frame(range, span, [Math.min(...powers), Math.max(...powers) + 1], false, (power) => amount(10 ** power), true);
    found.density.yaxes[0].ticker = new Bokeh.Models.SingleIntervalTicker({ interval: 1, num_minor_ticks: 0 });
    heat(found.density, density);
  }
  return found;
}

function said(seconds) {
  const { total, users, density, step } = panels;
  const place = total.time.findIndex((time) => time <= seconds && seconds < time + step);
  const value = place < 0 ? null : total.value[place];
  const date = new Date(1000 * seconds);
  cursor.textContent = `${day(date)} ${clock(date)} · click: who made it`;
  document.querySelector("#chart-total .readout").textContent = value === null ? "— not observed" : amount(value);
  const at = users.map((user) => [user.name, user.value[user.time.findIndex((time) => time <= seconds && seconds < time + step)]]).filter(([, rate]) => rate);
  document.querySelector("#chart-users .readout").textContent = at.sort((one, other) => other[1] - one[1]).slice(0, 3).map(([name, rate]) => `${name} ${amount(rate)}`).join(" · ");
  if (density) {
    const many = density.time.reduce((sum, time, index) => (time <= seconds && seconds < time + step ? sum + density.number[index] : sum), 0);
    document.querySelector("#chart-density .readout").textContent = `${numbers.digits(many)} users`;
  }
}

/** The address has the peak, so that a link shows another person the same. */
function ask(seconds) {
  const { since, step } = panels;
  const begin = since + Math.floor((seconds - since) / step) * step;
  const here = new URL(location.href);
  here.searchParams.set("from", String(begin));
  here.searchParams.set("to", String(begin + step));
  here.hash = "makers";
  location.assign(here);
}

async function render() {
  box.dataset.rendered = "false";
  if (views) views.clear();
  const whole = [1000 * panels.since, 1000 * panels.until];
  const range = new Bokeh.Range1d({ start: whole[0], end: whole[1], min_interval: 60_000 });
  const span = new Bokeh.Models.Span({ dimension: "height", line_color: colour("--quiet"), line_width: 1 });
  const document_ = new Bokeh.Document();
  const targets = [];
  for (const [name, figure] of Object.entries(figures(range, span))) {
    figure.on_event("mousemove", (event) => said(event.x / 1000));
    figure.on_event("tap", (event) => ask(event.x / 1000));
    figure.on_event("doubletap", () => range.setv({ start: whole[0], end: whole[1] }));
    document_.add_root(figure);
    targets.push(document.querySelector(`#chart-${name} .plot`));
    targets.at(-1).replaceChildren();
  }
  views = await Bokeh.embed.add_document_standalone(document_, box, targets);
  while (!document_.is_idle) await new Promise(requestAnimationFrame);
  box.dataset.rendered = "true";
}

async function begin() {
  document.getElementById("zone").textContent = zone();
  const answer = await fetch(box.dataset.api, { cache: "no-store" });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  panels = await answer.json();
  await render();
  document.addEventListener("theme", render);
}

if (box) {
  begin().catch((error) => {
    const waiting = document.getElementById("waiting");
    waiting.textContent = `The charts could not be drawn: ${error.message}.`;
    waiting.hidden = false;
    throw error;
  });
}
