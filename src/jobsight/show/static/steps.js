// Step functions in columns {start, end, value}, in seconds, as charts need them, in milliseconds.
// Where one step ends and the next begins later nothing is known: lines break there, and it is hatched.
const EPSILON = 0.02;

function broken(series, index) {
  return index > 0 && series.start[index] - series.end[index - 1] > EPSILON;
}

/** A line along the steps, broken at gaps; `floor` is the same with gaps at zero, for the area under it. */
export function outline(series) {
  const found = { x: [], y: [], floor: [] };
  const add = (seconds, value, floor) => {
    found.x.push(1000 * seconds);
    found.y.push(value);
    found.floor.push(floor);
  };
  series.value.forEach((value, index) => {
    if (broken(series, index)) {
      add(series.end[index - 1], NaN, 0);
      add(series.start[index], NaN, 0);
    }
    add(series.start[index], value, value);
    add(series.end[index], value, value);
  });
  return found;
}

/** Where nothing is known between two instants. */
export function gaps(series, from, to) {
  const found = { from: [], to: [] };
  const add = (start, end) => {
    if (end - start <= EPSILON) return;
    found.from.push(1000 * start);
    found.to.push(1000 * end);
  };
  let known = from;
  series.start.forEach((start, index) => {
    add(known, start);
    known = Math.max(known, series.end[index]);
  });
  add(known, to);
  return found;
}

/** Of phases that follow each other, the second, the fourth and so on: shaded, they part the others. */
export function everySecond(phases) {
  const chosen = phases.filter((_, index) => index % 2);
  return { from: chosen.map(({ begin }) => 1000 * begin), to: chosen.map(({ end }) => 1000 * end) };
}

/** The value at an instant, or undefined. */
export function at(series, seconds) {
  let low = 0;
  let high = series.start.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (series.end[middle] < seconds) low = middle + 1;
    else if (series.start[middle] > seconds) high = middle - 1;
    else return series.value[middle];
  }
  return undefined;
}

export const peak = (series) => series.value.reduce((most, value) => Math.max(most, value), 0);
