/** What blocks of few bits do to the model: error by layer and by weight, on the text at hand. */

import { ask, idle } from "../ask.js";
import { h, percent, put, short } from "../dom.js";
import { lines } from "../draw/axes.js";
import { Table } from "../draw/table.js";
import { hover, locked, notice, select, watch } from "../state.js";

const NUMBERS = [["stream", "Relative error of what leaves the layer while the whole model is quantized"], ["weight", "Relative error of the layer's weights"], ["kl", "KL divergence of the predictions when only this layer is quantized"]];

export function render({ model, el }) {
  let [data, what, known] = [null, "stream", null];
  const type = h("select", { id: "quantization-type", "aria-label": "Type" });
  const original = h("select", { id: "quantization-original", "aria-label": "Original", hidden: true });
  const each = h("input", { type: "checkbox", id: "quantization-each", title: "Quantize one layer after the other, too: how far each alone moves the predictions" });
  const run = h("button", { type: "button", class: "primary", id: "quantization-run", title: "Quantize a copy and compare it on this text", onclick: () => measure() }, "Measure");
  const copy = h("button", { type: "button", id: "quantization-copy", title: "Copy the program that does the same", disabled: true, onclick: () => take() }, "Copy as Python");
  const choose = NUMBERS.map(([name, title]) => h("button", { type: "button", class: "segment", title, onclick: () => { what = name; draw(); } }, name === "kl" ? "KL alone" : name));
  const said = h("p", { class: "said-of", id: "quantization-said", "aria-live": "polite" }, "Quantize a copy of the model and see where the error sits, layer by layer.");
  const chart = h("div", { class: "chart-box" });
  const box = h("div", { class: "tall" });
  const share = (x) => (x === null ? "-" : percent(x));
  const table = new Table(box, {
    label: "Error by weight", widths: "minmax(0, 1fr) minmax(50px, 70px) repeat(2, minmax(64px, 90px))",
    columns: [{ name: "weight" }, { name: "format" }, { name: "error", title: "Relative error of its numbers", number: true }, { name: "of output", title: "Relative error of its product on what the original feeds it", number: true }],
    cells: (i) => {
      const r = data.sites[i];
      return [h("span", { title: r.address }, r.address), r.format, share(r.weight), share(r.output)];
    },
    chosen: (i) => data.sites[i].layer !== null && data.sites[i].layer === locked(model).layer,
    pick: (i) => select(model, { address: data.sites[i].address, ...(data.sites[i].layer === null ? {} : { layer: data.sites[i].layer }) }),
  });

  async function take() {
    try {
      await navigator.clipboard.writeText(data.python);
      notice(model, "info", "Copied.");
    } catch {
      notice(model, "error", "The browser does not allow this page to copy; the lines are in the console.");
    }
  }

  function draw() {
    if (!data) return;
    copy.disabled = false;
    choose.forEach((b, i) => b.setAttribute("aria-pressed", String(NUMBERS[i][0] === what)));
    const kl = data.kl === null ? "" : `KL divergence ${short(data.kl)}, same first choice ${share(data.same_top)}`;
    const words = data.perplexity === null ? "" : `perplexity ${short(data.perplexity_original)} → ${short(data.perplexity)}, `;
    said.textContent = `${data.tokens} tokens: ${words}${kl}`;
    const values = data.layers.map((x) => x[what] ?? NaN);
    const layer = (i) => (i === null ? null : data.layers[i].layer);
    const mark = data.layers.findIndex((x) => x.layer !== null && x.layer === locked(model).layer);
    put(chart, values.some(Number.isFinite)
      ? lines({ [what]: values }, data.layers.map((x) => (x.layer === null ? x.name.split(".").pop() : String(x.layer))), {
        title: NUMBERS.find(([name]) => name === what)[1], mark: mark < 0 ? null : mark, width: Math.max(320, chart.clientWidth || 460), height: 220,
        hover: (i) => hover(model, layer(i) === null ? null : { layer: layer(i) }), pick: (i) => layer(i) !== null && select(model, { layer: layer(i) }),
      })
      : h("p", { class: "state empty" }, "Measure with “each layer alone” to see this."));
    table.show(data.sites.length);
  }

  /** Types for a model of numbers; for one in blocks, the models that may be its original. */
  async function choices() {
    if (known) return;
    known = await ask(model, "quantization.types");
    put(type, known.types.map((t) => h("option", { value: t, selected: t === "q4_k_m" }, t)));
    type.hidden = known.in_blocks;
    original.hidden = !known.in_blocks;
    if (known.in_blocks) {
      const { models } = await ask(model, "model.list");
      put(original, models.filter((m) => !m.current).map((m) => h("option", { value: m.name }, m.name)));
    }
  }

  async function measure() {
    const session = model.get("session");
    if (!session) return;
    run.disabled = true;
    run.textContent = "Measuring…";
    try {
      await choices();
      const chosen = known.in_blocks ? { original: original.value || null } : { type: type.value };
      data = await ask(model, "quantization.error", { ...chosen, each: each.checked, node: session.current }, { slot: "quantization" });
      draw();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
    run.disabled = false;
    run.textContent = "Measure";
  }

  const update = () => {
    const ready = model.get("session") && (!model.get("link") || model.get("link").status === "open");
    run.disabled = !ready;
    if (ready && !known) choices().catch((error) => idle(error) || notice(model, "error", error.message));
  };
  const changed = () => { known = null; data = null; copy.disabled = true; put(chart); table.show(0); update(); };
  el.append(h("div", { class: "row spread" }, h("span", { class: "row" }, type, original, h("label", {}, each, " each layer alone"), run, copy), h("span", { class: "segments", role: "group", "aria-label": "Number" }, choose)), said, chart, box);
  const off = [watch(model, ["session", "link"], update), watch(model, ["info"], changed), watch(model, ["selection"], () => data && el.offsetParent !== null && draw())];
  update();
  return () => {
    off.forEach((f) => f());
    table.close();
  };
}
