// What every page does: local times, live parts, forms with short addresses, arrow keys in job lists.
import { live } from "./live.js";
import { localise } from "./times.js";

function shortAddress(form) {
  // An empty `since` means all time and has to stay; other empty fields say nothing.
  for (const field of form.elements) if (!field.value && field.name !== "since") field.disabled = true;
  setTimeout(() => { for (const field of form.elements) field.disabled = false; });
}

for (const form of document.querySelectorAll("form")) form.addEventListener("submit", () => shortAddress(form));
for (const field of document.querySelectorAll("[data-submits]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}

document.addEventListener("click", (event) => {
  const shows = event.target.closest?.("[data-shows]");
  if (shows) {
    document.getElementById(shows.dataset.shows).hidden = false;
    shows.remove();
  }
  for (const open of document.querySelectorAll("details.help[open]")) if (!open.contains(event.target)) open.open = false;
});

document.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const list = document.querySelector("[data-keys]");
  if (!step || !list || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) return;
  const links = [...list.querySelectorAll("tr a")];
  const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  const next = links[here < 0 ? 0 : here + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
});

localise();
live();
