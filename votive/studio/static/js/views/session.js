/** A session in one view: its text above, and below what is chosen: the next token, the tree, the lens… */

import { h } from "../dom.js";
import { render as attention } from "./attention.js";
import { render as edits } from "./edits.js";
import { render as layers } from "./layers.js";
import { render as lens } from "./lens.js";
import { render as timeline } from "./timeline.js";
import { render as topk } from "./topk.js";
import { render as tree } from "./tree.js";
import { act } from "../ask.js";

const VIEWS = { next: topk, tree, lens, attention, layers, edits };

export function render({ model, el }) {
  const boxes = Object.fromEntries(Object.keys(VIEWS).map((name) => [name, h("div", { hidden: name !== "next" })]));
  const choose = Object.keys(boxes).map((name) => h("button", {
    type: "button", class: "segment", "aria-pressed": String(name === "next"), onclick: () => show(name),
  }, name));
  const moves = ["step", "undo", "redo", "branch"].map((name) => h("button", {
    type: "button", onclick: () => act(model, `session.${name}`),
  }, name));
  const text = h("div", { class: "notebook-text" });

  function show(name) {
    Object.entries(boxes).forEach(([n, box]) => { box.hidden = n !== name; });
    choose.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === name)));
  }

  // A saved page shows what there was, and goes no further.
  el.append(model.get("replies") ? "" : h("div", { class: "row" }, moves), text,
    h("div", { class: "row" }, h("span", { class: "segments", role: "group", "aria-label": "View" }, choose)), ...Object.values(boxes));
  const ends = [timeline({ model, el: text }), ...Object.entries(VIEWS).map(([name, view]) => view({ model, el: boxes[name] }))];
  return () => ends.forEach((end) => end?.());
}
