// Parts of the page that bring themselves up to date: fetched with the page, replaced where they changed.
// Focus and scroll stay; a hidden tab fetches nothing; what somebody reads or selects is not taken away.
import { localise } from "./times.js";

const stale = document.getElementById("stale");
let due = 0;

function interval() {
  const wanted = [...document.querySelectorAll("[data-live]")].map((part) => Number(part.dataset.live)).filter(Boolean);
  return wanted.length ? 1000 * Math.min(...wanted) : 0;
}

function busy(part) {
  const selection = getSelection();
  const selected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return selected || part.querySelector("details[open]") !== null;
}

function address(element) {
  return element.id ? `#${CSS.escape(element.id)}` : element.getAttribute("href") ? `[href="${CSS.escape(element.getAttribute("href"))}"]` : null;
}

function swap(part, fresh) {
  for (const shown of part.querySelectorAll(".more:not([hidden])")) fresh.querySelector(`#${CSS.escape(shown.id)}`)?.removeAttribute("hidden");
  localise(fresh);
  if (fresh.outerHTML === part.outerHTML) return;
  const focused = part.contains(document.activeElement) ? address(document.activeElement) : null;
  const across = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  part.replaceWith(fresh);
  fresh.querySelectorAll(".scroll").forEach((box, index) => { box.scrollLeft = across[index] ?? 0; });
  if (focused) fresh.querySelector(focused)?.focus({ preventScroll: true });
}

async function refresh() {
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (fresh && !busy(part)) swap(part, document.adoptNode(fresh));
  }
  document.dispatchEvent(new Event("refreshed"));
}

async function tick() {
  const every = interval();
  if (!every) return;
  if (!document.hidden && Date.now() >= due) {
    due = Date.now() + every;
    try {
      await refresh();
      stale.hidden = true;
    } catch (error) {
      stale.textContent = `⚠ not up to date: ${error.message}`;
      stale.hidden = false;
    }
  }
  setTimeout(tick, 500);
}

export function live() {
  due = Date.now() + interval();
  tick();
}
