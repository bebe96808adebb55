/** The compiled model: its graph for the text, the rules that applied, and kernels with their source and addresses. */

import { ask, idle } from "../ask.js";
import { bytes, h, put } from "../dom.js";
import { notice, select, watch } from "../state.js";
import { layerOf } from "./modules.js";

export function render({ model, el }) {
  let data = null;
  const run = h("button", { type: "button", class: "primary", id: "compiled-run", title: "Compile the model for this text and show what became of it", onclick: () => compile() }, "Compile");
  const copy = h("button", { type: "button", id: "compiled-copy", title: "Copy the program that does the same", disabled: true, onclick: () => take() }, "Copy as Python");
  const total = h("span", { class: "dim num", id: "compiled-total" });
  const out = h("div", { class: "explained", id: "compiled-out", "aria-live": "polite" }, h("p", { class: "state empty" }, "Compile the model for this text: its graph, the rules that applied, the kernels with their source, and the modules they cover."));

  async function take() {
    try {
      await navigator.clipboard.writeText(data.python);
      notice(model, "info", "Copied.");
    } catch {
      notice(model, "error", "The browser does not allow this page to copy; the lines are in the console.");
    }
  }

  const go = (address) => {
    const layer = layerOf(model.get("info"), address);
    select(model, { address, ...(layer === null ? {} : { layer }) });
  };
  const explained = (name) => {
    model.actions?.tab?.("explain");
    model.actions?.explain?.(name);
  };
  const code = (text, label) => h("pre", { class: "code", tabindex: 0, "aria-label": label }, text);
  const kernel = (k) => h("details", { class: "kernel" },
    h("summary", {}, h("span", { class: "mono" }, k.name), ` ${k.calls.length} calls, ${bytes(k.bytes)}`),
    h("p", { class: "said-of" }, k.calls.join(", ")),
    h("div", { class: "chips" }, k.addresses.map((a) => h("button", { type: "button", class: "chip mono", title: "Show this module", onclick: () => go(a) }, a))),
    k.source ? code(k.source, `Source of ${k.name}`) : h("p", { class: "said-of" }, "No kernel of its own: its results are computed one by one."));
  const graph = (g) => h("details", { class: "graph" },
    h("summary", {}, `Graph${g.name ? ` of ${g.name}` : ""}: ${g.calls} calls, about ${bytes(g.peak)} at most`),
    g.sizes.length ? h("p", { class: "said-of" }, g.sizes.join("; ")) : null, code(g.text, "Graph"));

  function draw() {
    copy.disabled = !data;
    total.textContent = `${data.tokens} tokens, ${data.graphs.length} graphs, ${data.kernels.length} kernels`;
    put(out,
      data.eager ? h("p", { class: "state" }, `Not one graph: ${data.eager}.`) : null,
      h("section", {}, h("h4", {}, "Rules"), data.rules.length
        ? h("ul", { class: "plain", id: "compiled-rules" }, data.rules.map((r) => h("li", {}, `${r.name}: `, h("span", { class: "num" }, String(r.count))))) : h("p", { class: "said-of" }, "None applied.")),
      h("section", { id: "compiled-kernels" }, h("h4", {}, "Kernels of several calls"), data.kernels.length ? data.kernels.map(kernel) : h("p", { class: "said-of" }, "None: no elementwise calls follow each other.")),
      h("section", { id: "compiled-operators" }, h("h4", {}, "Operators"), h("div", { class: "chips" }, data.operators.map((o) => h("button", { type: "button", class: "chip mono", title: "Its formula, gradient and kernels", onclick: () => explained(o.name) }, `${o.name} × ${o.count}`)))),
      h("section", { id: "compiled-graphs" }, h("h4", {}, "Graphs"), data.graphs.map(graph)));
  }

  async function compile() {
    const session = model.get("session");
    if (!session) return;
    run.disabled = true;
    run.textContent = "Compiling…";
    try {
      data = await ask(model, "compiled.run", { node: session.current }, { slot: "compiled" });
      draw();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
    run.disabled = false;
    run.textContent = "Compile";
  }

  const update = () => { run.disabled = !model.get("session") || (model.get("link") && model.get("link").status !== "open"); };
  el.append(h("div", { class: "row" }, run, copy, total), out);
  const off = [watch(model, ["session", "link"], update)];
  update();
  return () => off.forEach((f) => f());
}
