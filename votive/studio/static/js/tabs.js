/** Tabs of one group: arrows move between them. Knows no views. */

/** Let a tab list work; gives a function for each tab by its name that shows it. */
export function tabs(list) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const choose = (tab, focus = false) => {
    for (const other of all) {
      const on = other === tab;
      other.setAttribute("aria-selected", String(on));
      other.tabIndex = on ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const i = all.indexOf(document.activeElement);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[event.key];
    if (i < 0 || to === undefined) return;
    event.preventDefault();
    choose(all[(to + all.length) % all.length], true);
  });
  choose(all.find((t) => t.getAttribute("aria-selected") === "true") ?? all[0]);
  return Object.fromEntries(all.map((t) => [t.id.replace("tab-", ""), () => choose(t)]));
}
