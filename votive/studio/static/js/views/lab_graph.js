/** The attribution graph: nodes by position and layer, which can be pruned, opened and hidden; edges of the chosen one. */

import { ask, idle } from "../ask.js";
import { h, percent, put, s, short, visible } from "../dom.js";
import { hover, locked, positionOf, select } from "../state.js";

const [LINE, LEFT, TOP, R] = [46, 52, 22, 6];
const few = (x) => short(Number(x.toPrecision(3)));

export function graphView({ model, el, fail, python }) {
  let [graph, chosen, opened, hidden] = [null, null, new Set(), new Set()];
  const run = h("button", { type: "button", class: "primary", id: "graph-run", title: "Trace how the token at the locked position, or the last one, comes about", onclick: () => trace() }, "Trace");
  const keep = h("input", { type: "range", id: "graph-keep", min: 2, max: 100, value: 24, title: "How many nodes are shown: those of most influence", "aria-label": "How many nodes", oninput: () => draw() });
  const told = h("span", { class: "small dim num", id: "graph-count" });
  const again = h("button", { type: "button", id: "graph-all", title: "Show hidden nodes again, and close opened ones", onclick: () => { opened = new Set(); hidden = new Set(); draw(); } }, "Reset");
  const words = h("p", { class: "small", id: "graph-words", role: "status" }, "Press Trace: the graph shows which tokens, features and neurons add to the next token, and how much.");
  const box = h("div", { class: "graph-scroll", id: "graph-box" });
  const side = h("div", { class: "graph-side", id: "graph-side" });

  async function trace() {
    const session = model.get("session");
    if (!session) return fail("Begin with a prompt first: the graph is of a text.");
    fail(null);
    run.disabled = true;
    try {
      const position = positionOf(model, locked(model));
      graph = await ask(model, "laboratory.graph", { node: session.current, position }, { slot: "graph" });
      [chosen, opened, hidden] = [null, new Set(), new Set()];
      const top = graph.nodes.findIndex((n) => n.kind === "logit");
      chosen = top < 0 ? null : top;
      keep.max = String(graph.nodes.length);
      python(graph.python);
      words.textContent = `${percent(graph.replacement)} of the influence begins at tokens, ${percent(graph.completeness)} of what nodes read is explained. Choose a node for what adds to it; open it to show its inputs, or hide it.`;
      draw();
    } catch (error) {
      if (!idle(error)) fail(error.message);
    }
    run.disabled = false;
    return null;
  }

  /** The nodes that are shown: tokens, logits, those of most influence, what was opened; without what was hidden. */
  function shown() {
    const order = graph.nodes.map((n, i) => [i, n]).filter(([, n]) => !["token", "logit"].includes(n.kind)).sort((a, b) => b[1].influence - a[1].influence);
    const on = new Set([...order.slice(0, Number(keep.value)).map(([i]) => i), ...opened]);
    graph.nodes.forEach((n, i) => ["token", "logit"].includes(n.kind) && on.add(i));
    hidden.forEach((i) => on.delete(i));
    return on;
  }

  function draw() {
    if (!graph) return;
    const on = shown();
    const T = graph.tokens.length;
    const L = graph.layers;
    told.textContent = `${[...on].length} of ${graph.nodes.length} nodes`;
    const cells = new Map();
    for (const i of on) {
      const n = graph.nodes[i];
      const key = `${n.position},${n.kind === "logit" ? L : n.layer}`;
      cells.set(key, [...(cells.get(key) ?? []), i]);
    }
    // A column for each token, as wide as its fullest cell.
    const wide = Array.from({ length: T }, (_, t) => Math.max(58, ...[...cells].filter(([k]) => Number(k.split(",")[0]) === t).map(([, list]) => Math.min(list.length, 9) * (2 * R + 5) + 14)));
    const start = wide.reduce((a, w) => [...a, a.at(-1) + w], [LEFT]);
    const y = (layer) => TOP + (L - layer) * LINE + 10;
    const at = new Map();
    for (const [key, list] of cells) {
      const [t, layer] = key.split(",").map(Number);
      list.forEach((i, k) => at.set(i, [start[t] + 14 + (k % 9) * (2 * R + 5), y(layer) + Math.floor(k / 9) * (2 * R + 3)]));
    }
    const root = s("svg", { class: "graph", width: start.at(-1) + 12, height: y(-1) + 34, role: "group", "aria-label": "Attribution graph" });
    for (let l = -1; l <= L; l += 1) root.append(s("text", { class: "graph-layer", x: 4, y: y(l) + 4, text: l < 0 ? "token" : l === L ? "next" : String(l) }), s("line", { class: "graph-rule", x1: LEFT - 8, x2: start.at(-1), y1: y(l) + LINE / 2, y2: y(l) + LINE / 2 }));
    graph.tokens.forEach((t, i) => root.append(s("text", { class: "graph-token", x: start[i] + 14, y: y(-1) + 26, text: visible(t).slice(0, 9) })));
    const seen = graph.edges.filter(([a, b]) => on.has(a) && on.has(b));
    const most = seen.reduce((m, e) => Math.max(m, Math.abs(e[2])), 1e-9);
    const edge = ([a, b, w], lit) => {
      const [[x1, y1], [x2, y2]] = [at.get(a), at.get(b)];
      return s("path", { class: `graph-edge${lit ? " lit" : ""}${w < 0 ? " minus" : ""}`, d: `M${x1},${y1} C${x1},${(y1 + y2) / 2} ${x2},${(y1 + y2) / 2} ${x2},${y2}`, style: { "stroke-width": `${(0.4 + 3 * Math.sqrt(Math.abs(w) / most)).toFixed(2)}px` } });
    };
    const strong = [...seen].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])).slice(0, 240);
    strong.forEach((e) => root.append(edge(e, false)));
    if (chosen !== null) seen.filter(([a, b]) => a === chosen || b === chosen).forEach((e) => root.append(edge(e, true)));
    for (const [i, [cx, cy]] of at) root.append(dot(i, cx, cy));
    const before = [box.scrollLeft, box.scrollTop];
    put(box, root);
    [box.scrollLeft, box.scrollTop] = before;
    tell(on);
  }

  function dot(i, cx, cy) {
    const n = graph.nodes[i];
    const name = named(n);
    const el_ = s("circle", { class: `graph-node ${n.kind}${i === chosen ? " chosen" : ""}`, cx, cy, r: i === chosen ? R + 2 : R, role: "button", tabindex: 0, "data-node": i, "aria-label": name, onclick: () => pick(i),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(i); } },
      onpointerenter: () => hover(model, { position: n.position, ...(n.layer >= 0 && n.layer < graph.layers ? { layer: n.layer } : {}) }), onpointerleave: () => hover(model, null) });
    el_.append(s("title", { text: name }));
    return el_;
  }

  const named = (n) => (n.kind === "token" ? `Token ${visible(n.label)} at ${n.position}` : n.kind === "logit" ? `Next token ${visible(n.label)}, ${percent(n.activation)}`
    : n.kind === "error" ? `What else the MLP of layer ${n.layer} adds at ${n.position}` : `${n.kind === "feature" ? "Feature" : "Neuron"} ${n.number} of layer ${n.layer} at ${visible(graph.tokens[n.position])} (${n.position}), ${few(n.activation)}`);

  function pick(i) {
    chosen = i;
    const n = graph.nodes[i];
    if (n.layer >= 0 && n.layer < graph.layers) select(model, { layer: n.layer, position: n.position });
    draw();
    box.querySelector(`[data-node="${i}"]`)?.focus({ preventScroll: true });
  }

  /** The inputs and outputs of the chosen node, also those that are not shown. */
  function tell(on) {
    if (chosen === null) return put(side);
    const n = graph.nodes[chosen];
    const list = (title, edges, other) => (edges.length ? h("div", {}, h("p", { class: "small dim" }, title), edges.slice(0, 8).map((e) => {
      const i = e[other];
      return h("button", { type: "button", class: "graph-link", title: on.has(i) ? "Choose it" : "Show it", onclick: () => { if (!on.has(i)) { opened.add(i); hidden.delete(i); } pick(i); } },
        h("span", { class: `num ${e[2] < 0 ? "minus" : "plus"}` }, `${e[2] > 0 ? "+" : ""}${few(e[2])}`), h("span", { class: on.has(i) ? "" : "dim" }, named(graph.nodes[i])));
    })) : null);
    const sorted = (edges) => [...edges].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
    const into = sorted(graph.edges.filter((e) => e[1] === chosen));
    const from = sorted(graph.edges.filter((e) => e[0] === chosen));
    return put(side, h("h3", {}, named(n)), h("div", { class: "row" },
      h("button", { type: "button", id: "graph-open", title: "Show the inputs of this node", disabled: !into.length, onclick: () => { into.slice(0, 8).forEach((e) => { opened.add(e[0]); hidden.delete(e[0]); }); draw(); } }, "Open"),
      h("button", { type: "button", id: "graph-hide", title: "Take this node out of the picture", disabled: ["token", "logit"].includes(n.kind), onclick: () => { hidden.add(chosen); opened.delete(chosen); chosen = null; draw(); } }, "Hide")),
    h("div", { class: "two" }, list("Adds to it", into, 0), list("It adds to", from, 1)));
  }

  el.append(h("div", { class: "row" }, run, h("label", { class: "inline" }, "Nodes", keep), told, again), words, box, side);
  return () => {};
}
