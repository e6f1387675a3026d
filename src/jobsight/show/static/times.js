// Times in the reader's zone; the UTC instant stays in the tooltip.
const two = (number) => String(number).padStart(2, "0");

export function clock(date, form = "second") {
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return form === "minute" ? time : `${time}:${two(date.getSeconds())}`;
}

export function day(date) {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";

export function localise(root = document) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const date = new Date(element.dateTime);
    if (!Number.isNaN(date.getTime())) element.textContent = `${day(date)} ${clock(date, element.dataset.form)}`;
  }
}
