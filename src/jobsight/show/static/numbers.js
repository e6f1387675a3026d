// Numbers as people read them: three significant digits, a unit on every one. The server's formats/number.py, here.
export function digits(value, count = 3) {
  if (Math.abs(value) < 1e-9) return "0";
  const places = Math.min(9, Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value)))));
  const text = value.toFixed(places);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base * 0.9995 && unit < units.length - 1) {
    value /= base;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

export const size = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
export const rate = (value) => scaled(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
export const cores = (value) => (value < 0.0005 ? "0" : digits(value, value < 1 ? 2 : 3));
export const count = (value) => digits(value, 6);

export function duration(seconds) {
  if (seconds < 60) return `${digits(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${two(hours)}:${two(minutes)}`;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
