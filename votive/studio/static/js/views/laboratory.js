/** The laboratory: features and steering, attribution graph, sweeps, probes, one at a time. */

import { copied } from "../copy.js";
import { h, put } from "../dom.js";
import { watch } from "../state.js";
import { featuresView } from "./lab_features.js";
import { graphView } from "./lab_graph.js";
import { probeView } from "./lab_probe.js";
import { sweepView } from "./lab_sweep.js";

const VIEWS = [
  ["features", "Features", "What a sparse autoencoder finds in the text, and steering by it", featuresView],
  ["graph", "Graph", "How the tokens become the next one: what adds to what", graphView],
  ["sweep", "Sweep", "Where in the model one token of the text matters", sweepView],
  ["probe", "Probes", "Which layers tell two kinds of texts apart", probeView],
];

export function render({ model, el }) {
  let now = "features";
  const boxes = {};
  const ends = [];
  const choose = VIEWS.map(([name, text, title]) => h("button", { type: "button", class: "segment", id: `lab-${name}`, title, onclick: () => show(name) }, text));
  const fault = h("p", { class: "state error", role: "alert", id: "lab-fault", hidden: true });
  const body = h("div", { class: "lab-body" });
  const code = h("button", { type: "button", id: "lab-copy", title: "Copy the lines of Python that do the same", disabled: true, onclick: () => copied(model, boxes[now].python) }, "Copy as Python");

  /** What a view needs of this one: telling errors, and the Python of what it shows. */
  const context = (name) => ({
    model,
    fail: (text) => { fault.hidden = !text; fault.textContent = text ?? ""; },
    python: (text) => {
      boxes[name].python = text;
      el.dataset.python = text ?? "";
      code.disabled = !text;
    },
  });

  function show(name) {
    now = name;
    choose.forEach((b) => b.setAttribute("aria-pressed", String(b.id === `lab-${name}`)));
    fault.hidden = true;
    if (!boxes[name]) {
      const box = h("div", { id: `lab-view-${name}` });
      boxes[name] = { box, python: null };
      body.append(box);
      ends.push(VIEWS.find(([n]) => n === name)[3]({ ...context(name), el: box }));
    }
    for (const [n, { box }] of Object.entries(boxes)) box.hidden = n !== name;
    code.disabled = !boxes[name].python;
    el.dataset.python = boxes[name].python ?? "";
  }

  el.append(h("div", { class: "row" }, h("span", { class: "segments", role: "group", "aria-label": "Part of the laboratory" }, choose), h("span", { class: "grow" }), code), fault, body);
  // A view is made when it is first looked at.
  const watcher = new IntersectionObserver(([entry]) => entry.isIntersecting && !boxes[now] && show(now));
  watcher.observe(el);
  choose.forEach((b) => b.setAttribute("aria-pressed", String(b.id === `lab-${now}`)));
  const off = watch(model, ["info"], () => {
    ends.splice(0).forEach((end) => end?.());
    for (const name of Object.keys(boxes)) delete boxes[name];
    put(body);
    if (el.offsetParent !== null) show(now);
  });
  return () => {
    off();
    watcher.disconnect();
    ends.forEach((end) => end?.());
  };
}
