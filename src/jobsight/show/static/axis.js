// Axes that speak our units and the reader's zone. Classes in place of Bokeh's CustomJS, which would need eval.
import { clock, day } from "./times.js";

const HOUR = 3_600_000;

function offset(instant) {
  return -60_000 * new Date(instant).getTimezoneOffset();
}

function label(instant, before, step) {
  const date = new Date(instant);
  if (step >= 23 * HOUR) return day(date);
  const time = clock(date, step < 60_000 ? "second" : "minute");
  const turned = before === undefined ? false : day(new Date(before)) !== day(date);
  return turned ? `${time}\n${day(date)}` : time;
}

/** Formatter of values by one of the functions in numbers.js. */
export function units(format) {
  class UnitFormatter extends Bokeh.Models.BasicTickFormatter {
    static __name__ = "UnitFormatter";
    doFormat(ticks) { return ticks.map((tick) => format(tick)); }
  }
  return new UnitFormatter();
}

/** Formatter of instants: seconds, minutes or days, as far apart as the ticks are. */
export function times() {
  class TimeFormatter extends Bokeh.Models.BasicTickFormatter {
    static __name__ = "TimeFormatter";
    doFormat(ticks) {
      const step = ticks.length > 1 ? ticks[1] - ticks[0] : HOUR;
      return ticks.map((tick, index) => label(tick, ticks[index - 1], step));
    }
  }
  return new TimeFormatter();
}

/** Ticks at whole hours and days of the reader's zone, not of UTC. */
export function instants() {
  class ZoneTicker extends Bokeh.Models.DatetimeTicker {
    static __name__ = "ZoneTicker";
    get_ticks(low, high, range, cross) {
      const shift = offset(low);
      const found = super.get_ticks(low + shift, high + shift, range, cross);
      return { major: found.major.map((tick) => tick - shift), minor: found.minor.map((tick) => tick - shift) };
    }
  }
  return new ZoneTicker({ desired_num_ticks: 8 });
}

/** Ticks at round values: 1, 2, 5 for most, powers of two for memory, whole ones for what is counted. */
export function ticks(kind) {
  const { AdaptiveTicker } = Bokeh.Models;
  const common = { desired_num_ticks: 4, num_minor_ticks: 0 };
  const mantissas = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
  if (kind === "binary") return new AdaptiveTicker({ ...common, base: 1024, mantissas, min_interval: 1 });
  return new AdaptiveTicker({ ...common, base: 10, mantissas: [1, 2, 5], min_interval: kind === "whole" ? 1 : 0 });
}
