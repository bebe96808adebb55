/** Horizontal bars with labels, as a list that keys can walk through. Knows no model. */

import { h, percent } from "../dom.js";

/**
 * One row of bars: {label, title, p, q, ghost, chosen}. `p` is the wide bar, `q` (optional) the
 * thin one under it, `ghost` an earlier p. Each is a button.
 */
export function bar(row, { pick, hover = () => {}, scale = 1 }) {
  const width = (v) => `${Math.max(0, Math.min(100, (100 * (v ?? 0)) / scale))}%`;
  return h("button", {
    class: `bar-row${row.chosen ? " chosen" : ""}`, type: "button", title: row.title,
    "aria-pressed": row.chosen ? "true" : null,
    onclick: () => pick(row), onpointerenter: () => hover(row), onpointerleave: () => hover(null),
    onfocus: () => hover(row), onblur: () => hover(null),
  },
  h("span", { class: "bar-label" }, row.label),
  h("span", { class: "bar-track" },
    row.ghost === undefined ? null : h("span", { class: "bar-ghost", style: { left: width(row.ghost) } }),
    h("span", { class: "bar-fill", style: { width: width(row.p) } }),
    row.q === undefined ? null : h("span", { class: "bar-after", style: { width: width(row.q) } })),
  h("span", { class: "bar-number" }, percent(row.p)),
  row.q === undefined ? null : h("span", { class: "bar-number after" }, row.q ? percent(row.q) : "·"));
}
