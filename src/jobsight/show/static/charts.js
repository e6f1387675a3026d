// The job page's charts: one range, one cursor, drawn from the API's columns.
import * as numbers from "./numbers.js";
import { Chart, colour } from "./plot.js";
import { clock, day, zone } from "./times.js";

const per = (whole, seconds) => (whole === null || !seconds ? null : whole / seconds);

// Means are those of the job's figures: what a chart is sent may have been thinned to its lows and highs.
const PLANS = [
  {
    name: "cpu", ticks: "decimal", least: 0.1, tick: numbers.cores, say: (value) => `${numbers.cores(value)} cores`,
    lines: [{ series: "cpu", label: "cores in use", colour: "--cpu", mean: (job) => job.cores_mean }],
    limit: { series: "cpus", label: "allocated", colour: "--text", within: Infinity },
  },
  {
    name: "memory", ticks: "binary", least: 1024, tick: numbers.size, say: numbers.size,
    lines: [
      { series: "memory", label: "its own", colour: "--memory", mean: (job) => job.memory_mean },
      { series: "memory_cache", label: "page cache", colour: "--memory", dotted: true },
    ],
    limit: { series: "memory_limit", label: "limit", colour: "--critical", within: 10 },
  },
  {
    name: "threads", ticks: "whole", least: 1, tick: numbers.count, say: numbers.count,
    lines: [{ series: "threads", label: "at the end of each interval", colour: "--threads" }],
  },
  {
    name: "gpu", ticks: "decimal", least: 0.1, tick: numbers.cores, say: (value) => `${numbers.cores(value)} GPUs`,
    lines: [{ series: "gpu", label: "computing", colour: "--gpu", mean: (job) => job.reserved.gpus.used }],
    limit: { series: "gpus", label: "held", colour: "--text", within: Infinity },
  },
  {
    name: "gpu_memory", ticks: "binary", least: 1024, tick: numbers.size, say: numbers.size,
    lines: [{ series: "gpu_memory", label: "in use on its GPUs", colour: "--gpu" }],
  },
  {
    name: "io", ticks: "decimal", least: 1000, tick: numbers.rate, say: numbers.rate,
    lines: [
      { series: "written", label: "written", colour: "--written", mean: (job) => per(job.written, job.elapsed) },
      { series: "read", label: "read", colour: "--io", mean: (job) => per(job.read, job.elapsed) },
    ],
  },
  {
    name: "lustre", ticks: "decimal", least: 1000, tick: numbers.rate, say: numbers.rate,
    lines: [
      { series: "lustre_written", label: "written", colour: "--written" },
      { series: "lustre_read", label: "read", colour: "--io" },
    ],
  },
  {
    name: "metadata", ticks: "decimal", least: 1, tick: numbers.cores, say: (value) => `${numbers.cores(value)} operations/s`,
    lines: [{ series: "lustre_metadata", label: "operations", colour: "--network" }],
  },
];

const box = document.getElementById("charts");
const cursor = document.getElementById("cursor");
const hint = cursor.innerHTML;
let profile = null;
let drawn = null; // { charts, range, views }
let whole = [0, 1];

const shown = (series) => PLANS.filter((plan) => document.getElementById(`chart-${plan.name}`) && plan.lines.some((line) => series[line.series]?.value.length));
const names = (plans) => plans.map((plan) => plan.name).join();

function point(seconds) {
  for (const chart of drawn.charts) chart.read(seconds);
  if (seconds === undefined) {
    cursor.innerHTML = hint;
    document.getElementById("zone").textContent = zone();
  } else {
    const date = new Date(1000 * seconds);
    const phase = profile.answers.phases.find(({ begin, end }) => begin <= seconds && seconds < end);
    const doing = phase ? ` · ${phase.kind}` : "";
    cursor.textContent = `${day(date)} ${clock(date)}${doing} · ${numbers.duration(Math.max(0, seconds - profile.summary.started))} after the start`;
  }
}

function chosen() {
  const given = new URL(location.href).searchParams;
  const [from, to] = [Number(given.get("from")), Number(given.get("to"))];
  return from > 0 && to > from ? [1000 * from, 1000 * to] : null;
}

function remember(from, to) {
  const here = new URL(location.href);
  const all = from <= whole[0] && to >= whole[1];
  for (const [name, value] of [["from", from], ["to", to]]) {
    if (all) here.searchParams.delete(name);
    else here.searchParams.set(name, (value / 1000).toFixed(1));
  }
  if (here.href !== location.href) history.replaceState(null, "", here);
}

function look(from, to) {
  drawn.range.setv({ start: from, end: to });
}

/** Buttons do what dragging does, for whoever has no mouse. */
function turn(what) {
  const { start, end } = drawn.range;
  const width = end - start;
  if (what === "all") look(...whole);
  else if (what === "in") look(start + width / 4, end - width / 4);
  else if (what === "out") look(Math.max(whole[0], start - width / 2), Math.min(whole[1], end + width / 2));
  else {
    const step = what === "back" ? Math.max(whole[0] - start, -width / 2) : Math.min(whole[1] - end, width / 2);
    look(start + step, end + step);
  }
}

function settle() {
  let waiting = 0;
  drawn.range.connect(drawn.range.change, () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => remember(drawn.range.start, drawn.range.end), 200);
  });
}

async function draw(plans) {
  box.dataset.rendered = "false";
  if (drawn) drawn.views.clear();
  const [start, end] = chosen() ?? whole;
  const range = new Bokeh.Range1d({ start, end, min_interval: 1000 });
  const span = new Bokeh.Models.Span({ dimension: "height", line_color: colour("--quiet"), line_width: 1 });
  const charts = plans.map((plan) => new Chart(plan, range, span, plan === plans.at(-1)));
  const document_ = new Bokeh.Document();
  const targets = [];
  for (const chart of charts) {
    chart.update(profile);
    chart.figure.on_event("mousemove", (event) => point(event.x / 1000));
    chart.figure.on_event("mouseleave", () => point(undefined));
    chart.figure.on_event("doubletap", () => look(...whole));
    document_.add_root(chart.figure);
    targets.push(chart.element.querySelector(".plot"));
    targets.at(-1).replaceChildren();
  }
  drawn = { charts, range, plans: names(plans), views: await Bokeh.embed.add_document_standalone(document_, box, targets) };
  settle();
  box.dataset.dark = String(isDark());
  while (!document_.is_idle) await new Promise(requestAnimationFrame);
  box.dataset.rendered = "true";
}

function isDark() {
  const [red] = colour("--ground").match(/[\d.]+/g);
  return Number(red) < 128;
}

function reveal(plans) {
  document.getElementById("waiting").hidden = plans.length > 0;
  for (const plan of PLANS) {
    const figure = document.getElementById(`chart-${plan.name}`);
    if (!figure) continue; // a job without cards has no chart of them
    const empty = !plans.includes(plan);
    figure.hidden = plans.length === 0;
    figure.querySelector(".plot").hidden = empty;
    const said = figure.querySelector(".empty");
    said.hidden = !empty;
    said.textContent = figure.dataset.reason;
  }
}

async function load() {
  const answer = await fetch(box.dataset.api, { cache: "no-store" });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  profile = await answer.json();
  const { started, seen } = profile.summary;
  const follows = drawn && drawn.range.start <= whole[0] && drawn.range.end >= whole[1];
  whole = [1000 * started, 1000 * Math.max(seen, started + 1)];
  const plans = shown(profile.series);
  reveal(plans);
  if (!plans.length) return;
  if (!drawn || drawn.plans !== names(plans)) {
    await draw(plans);
    return;
  }
  for (const chart of drawn.charts) chart.update(profile);
  if (follows) look(...whole);
}

async function begin() {
  document.getElementById("zone").textContent = zone();
  try {
    await load();
  } catch (error) {
    const waiting = document.getElementById("waiting");
    waiting.textContent = `The charts could not be drawn: ${error.message}.`;
    waiting.hidden = false;
    throw error;
  }
  document.addEventListener("refreshed", () => load().catch(() => {})); // live.js has said that the server is away
  document.addEventListener("theme", () => { if (drawn) draw(shown(profile.series)); });
  for (const button of box.querySelectorAll("[data-turn]")) button.addEventListener("click", () => turn(button.dataset.turn));
}

begin();
