/** All heads of all layers as small fields, shaded by a share; some may be ringed. Knows numbers only. */

import { h, percent, put } from "../dom.js";

/** Fields in `el`; `pick(layer, head)` is told. Gives {show, lock}. */
export function heads(el, { label, pick }) {
  let [rows, cols, fields] = [0, 0, []];
  el.classList.add("head-fields");
  el.setAttribute("role", "grid");
  el.setAttribute("aria-label", label);

  function build(ringed) {
    const rings = new Set(ringed.map(([a, b]) => a * cols + b));
    fields = Array.from({ length: rows * cols }, (_, i) => h("button", {
      type: "button", class: `head-field${rings.has(i) ? " ringed" : ""}`, role: "gridcell", tabindex: i ? -1 : 0, "data-at": i,
      onclick: () => pick(Math.floor(i / cols), i % cols),
    }));
    el.style.setProperty("--cols", cols);
    put(el, h("div", { class: "head-row", role: "row" }, h("span", { class: "head-name", role: "presentation" }), Array.from({ length: cols }, (_, k) => h("span", { class: "head-name middle num", role: "columnheader" }, String(k)))),
      Array.from({ length: rows }, (_, r) => h("div", { class: "head-row", role: "row" }, h("span", { class: "head-name num", role: "rowheader" }, String(r)), fields.slice(r * cols, (r + 1) * cols))));
  }

  el.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -cols, ArrowDown: cols }[event.key];
    const at = Number(event.target.dataset?.at);
    if (!by || Number.isNaN(at) || !fields[at + by]) return;
    event.preventDefault();
    fields[at].tabIndex = -1;
    fields[at + by].tabIndex = 0;
    fields[at + by].focus();
  });

  return {
    /** Shares (layers, heads), and which [layer, head] are ringed. */
    show(shares, ringed) {
      const key = JSON.stringify([shares.shape, ringed]);
      if (el.dataset.key !== key) {
        [rows, cols] = shares.shape;
        build(ringed);
        el.dataset.key = key;
      }
      fields.forEach((field, i) => {
        const text = `Layer ${Math.floor(i / cols)}, head ${i % cols}: ${percent(shares[i])}${field.classList.contains("ringed") ? ", an alignment head" : ""}`;
        field.style.setProperty("--share", shares[i].toFixed(3));
        field.title = text;
        field.setAttribute("aria-label", text);
      });
    },
    lock(layer, head) {
      fields.forEach((field, i) => field.setAttribute("aria-selected", String(layer !== null && Math.floor(i / cols) === layer && (head === null || i % cols === head))));
    },
  };
}
