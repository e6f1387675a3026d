// One chart: its lines, its limit, its gaps, its caption.
import { instants, ticks, times, units } from "./axis.js";
import { at, everySecond, gaps, outline, peak } from "./steps.js";

const NONE = { start: [], end: [], value: [] };

/** A colour of the style sheet as the browser computes it, for the canvas. */
export function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export class Chart {
  /** `plan` is one of those in charts.js; `range` and `span` are shared by all charts. */
  constructor(plan, range, span, last) {
    this.plan = plan;
    this.element = document.getElementById(`chart-${plan.name}`);
    this.sources = plan.lines.map(() => new Bokeh.ColumnDataSource({ data: { x: [], y: [], floor: [] } }));
    this.limit = new Bokeh.ColumnDataSource({ data: { x: [], y: [], floor: [] } });
    this.phases = new Bokeh.ColumnDataSource({ data: { from: [], to: [] } });
    this.gaps = new Bokeh.ColumnDataSource({ data: { from: [], to: [] } });
    this.height = new Bokeh.Range1d({ start: 0, end: 1 });
    this.figure = this.#figure(range, span, last);
    this.#draw();
  }

  #figure(range, span, last) {
    const { BoxZoomTool, CrosshairTool, WheelZoomTool } = Bokeh.Models;
    const zoom = new BoxZoomTool({ dimensions: "width" });
    const wheel = new WheelZoomTool({ dimensions: "width", modifiers: { ctrl: true } });
    const found = new Bokeh.Plotting.Figure({
      x_range: range, y_range: this.height, sizing_mode: "stretch_both", toolbar_location: null,
      tools: [zoom, wheel, new CrosshairTool({ overlay: span })],
      min_border_left: 72, min_border_right: 16, min_border_top: 4, min_border_bottom: last ? 24 : 8,
      background_fill_alpha: 0, border_fill_alpha: 0, outline_line_color: null,
    });
    found.toolbar.active_drag = zoom;
    found.toolbar.active_scroll = wheel;
    this.#dress(found, last);
    return found;
  }

  #dress(figure, last) {
    const [x, y] = [figure.xaxes[0], figure.yaxes[0]];
    const [xgrid, ygrid] = [figure.xgrids[0], figure.ygrids[0]];
    const font = getComputedStyle(document.body).fontFamily;
    for (const axis of [x, y]) {
      Object.assign(axis, {
        axis_line_color: colour("--line"), major_tick_line_color: colour("--line"), minor_tick_line_color: null,
        major_label_text_color: colour("--quiet"), major_label_text_font_size: "12px", major_label_text_font: font,
      });
    }
    Object.assign(x, { ticker: instants(), formatter: times(), major_label_text_line_height: 1 });
    Object.assign(y, { ticker: ticks(this.plan.ticks), formatter: units(this.plan.tick), axis_line_color: null });
    Object.assign(xgrid, { ticker: x.ticker, grid_line_color: colour("--line"), grid_line_alpha: 0.5 });
    Object.assign(ygrid, { ticker: y.ticker, grid_line_color: colour("--line"), grid_line_alpha: 0.5 });
    if (!last) Object.assign(x, { major_label_text_color: null, major_label_text_font_size: "0px", major_tick_out: 0 });
  }

  #draw() {
    this.figure.vstrip({
      source: this.phases, x0: { field: "from" }, x1: { field: "to" }, line_color: null, fill_color: colour("--quiet"),
      fill_alpha: 0.09,
    });
    this.figure.vstrip({
      source: this.gaps, x0: { field: "from" }, x1: { field: "to" }, line_color: null, fill_color: null,
      hatch_pattern: "/", hatch_color: colour("--line"), hatch_scale: 8, hatch_weight: 1,
    });
    this.plan.lines.forEach((line, index) => {
      const [source, color] = [this.sources[index], colour(line.colour)];
      if (!line.dotted) this.figure.varea({ source, x: { field: "x" }, y1: 0, y2: { field: "floor" }, fill_color: color, fill_alpha: 0.2 });
      this.figure.line({
        source, x: { field: "x" }, y: { field: "y" }, line_color: color, line_width: 1.5, line_dash: line.dotted ? [2, 2] : [],
      });
    });
    if (this.plan.limit) {
      const color = colour(this.plan.limit.colour);
      this.figure.line({ source: this.limit, x: { field: "x" }, y: { field: "y" }, line_color: color, line_width: 1, line_dash: [6, 4] });
    }
  }

  /** New columns, from the API's answer. */
  update({ series, summary, answers }) {
    this.summary = summary;
    this.phases.data = everySecond(answers.phases);
    this.known = this.plan.lines.map((line) => ({ ...line, series: series[line.series] ?? NONE })).filter((line) => line.series.value.length);
    this.plan.lines.forEach((line, index) => { this.sources[index].data = outline(series[line.series] ?? NONE); });
    const limit = series[this.plan.limit?.series] ?? NONE;
    this.limit.data = outline(limit);
    this.gaps.data = gaps(this.known[0].series, summary.started, summary.seen);
    const most = Math.max(...this.known.map((line) => peak(line.series)));
    this.bound = limit.value.length ? peak(limit) : undefined;
    // A limit far above would press the line to the ground; it is then told in words.
    this.beyond = this.bound > this.plan.limit?.within * most;
    this.height.end = 1.08 * Math.max(most, this.beyond ? 0 : this.bound ?? 0, this.plan.least);
    this.#caption();
    this.read(undefined);
  }

  #caption() {
    const entries = this.known.map((line) => [line.label, line.colour, line.dotted ? "dotted" : "solid"]);
    if (this.bound !== undefined) {
      const { label, colour: name } = this.plan.limit;
      entries.push([`${label} ${this.plan.say(this.bound)}${this.beyond ? ", above the chart" : ""}`, name, "dashed"]);
    }
    const keys = entries.map(([text, name, style]) => {
      const key = document.createElement("span");
      const stroke = key.appendChild(document.createElement("i"));
      stroke.className = style;
      stroke.style.borderColor = `var(${name})`;
      key.append(text);
      return key;
    });
    this.element.querySelector(".keys").replaceChildren(...keys);
    this.element.querySelector(".plot").setAttribute("aria-label", `${this.plan.name} over time: ${this.#summary()}`);
  }

  #summary() {
    const said = this.known.map((line) => {
      const name = this.known.length > 1 ? `${line.label} ` : "";
      const mean = line.mean?.(this.summary) ?? null;
      return `${name}${mean === null ? "" : `mean ${this.plan.say(mean)}, `}peak ${this.plan.say(peak(line.series))}`;
    });
    return said.join(" · ");
  }

  /** Says what was at an instant; mean and peak when there is none. */
  read(seconds) {
    const said = seconds === undefined ? this.#summary() : this.known.map(({ label, series }) => {
      const value = at(series, seconds);
      return `${this.known.length > 1 ? `${label} ` : ""}${value === undefined ? "— not observed" : this.plan.say(value)}`;
    }).join(" · ");
    this.element.querySelector(".readout").textContent = said;
  }
}
