// The job list: sort by a heading, kept in the address; export what is shown.
const table = document.querySelector("table[data-sorts]");
const address = () => new URL(location.href);

function value(row, column, kind) {
  const text = row.cells[column].dataset.value;
  if (kind !== "number") return text;
  return text === "" ? null : Number(text);
}

function compare(one, other) {
  if (typeof one === "number") return one - other;
  return one.localeCompare(other, undefined, { numeric: true });
}

function sort(name, order) {
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.findIndex((head) => head.dataset.name === name);
  if (column < 0) return;
  const { kind } = heads[column].dataset;
  const sign = order === "descending" ? -1 : 1;
  const rows = [...table.tBodies[0].rows].map((row) => [value(row, column, kind), row]);
  rows.sort(([one], [other]) => {
    // What is not known stands last, whichever way it is sorted.
    if (one === null || other === null) return (one === null) - (other === null);
    return sign * compare(one, other);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", order);
}

function remember(name, order) {
  const here = address();
  here.searchParams.set("sort", name);
  here.searchParams.set("order", order);
  history.replaceState(null, "", here);
  for (const [field, text] of [["sort", name], ["order", order]]) {
    for (const input of document.querySelectorAll(`input[name=${field}]`)) input.value = text;
  }
}

function cell(text, separator) {
  // A spreadsheet runs what begins like a formula, and names are chosen by users.
  const safe = /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  if (separator === "\t") return safe.replace(/[\t\r\n]/g, " ");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function text(separator) {
  const names = [...table.tHead.rows[0].cells].map((head) => head.dataset.name);
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((found) => found.dataset.value));
  return [names, ...rows].map((row) => row.map((found) => cell(found, separator)).join(separator)).join("\n") + "\n";
}

if (table) {
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () => {
      // Numbers are looked at from the largest, names from A.
      const first = head.dataset.kind === "number" ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      sort(head.dataset.name, order);
      remember(head.dataset.name, order);
    });
  }
  const wanted = address().searchParams;
  if (wanted.get("sort")) sort(wanted.get("sort"), wanted.get("order") === "descending" ? "descending" : "ascending");
  for (const link of document.querySelectorAll("[data-export]")) {
    link.addEventListener("click", () => {
      const separator = link.dataset.export === "csv" ? "," : "\t";
      link.href = URL.createObjectURL(new Blob([text(separator)], { type: "text/plain" }));
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
  }
}
