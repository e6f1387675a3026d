// Colours: as the system has them, light, or dark. Runs before the page is painted, so that nothing flashes.
(() => {
  const LOOKS = { system: "◐", light: "☀", dark: "☾" };
  const names = Object.keys(LOOKS);
  const root = document.documentElement;

  function remembered() {
    try {
      const kept = localStorage.getItem("theme");
      return kept in LOOKS ? kept : "system";
    } catch {
      return "system"; // storage may be forbidden
    }
  }

  function wear(name) {
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
  }

  function show(button, name) {
    button.firstChild.textContent = LOOKS[name];
    button.title = name === "system" ? "Colours: as the system has them" : `Colours: ${name}`;
  }

  let worn = remembered();
  wear(worn);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    show(button, worn);
    button.addEventListener("click", () => {
      worn = names[(names.indexOf(worn) + 1) % names.length];
      try {
        localStorage.setItem("theme", worn);
      } catch {
        // then it holds for this page
      }
      wear(worn);
      show(button, worn);
      document.dispatchEvent(new Event("theme"));
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("theme")));
})();
