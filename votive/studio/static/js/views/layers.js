/** How large values are from layer to layer: norm, mean or deviation of stream, attention and MLP. */

import { ask, loader } from "../ask.js";
import { h, put, short } from "../dom.js";
import { lines } from "../draw/axes.js";
import { Table } from "../draw/table.js";
import { hover, locked, select, watch } from "../state.js";

const PARTS = [["residual", "The stream that goes from layer to layer"], ["attention", "What the attention of a layer adds to it"], ["mlp", "What the feed-forward part of a layer adds to it"]];
const NUMBERS = [["norm", "Mean Euclidean length of the vectors of all positions"], ["mean", "Average of all elements"], ["std", "Standard deviation of all elements"]];

export function render({ model, el }) {
  let [data, what] = [null, "norm"];
  const choose = NUMBERS.map(([name, title]) => h("button", { type: "button", class: "segment", title, onclick: () => { what = name; draw(data); } }, name));
  const chart = h("div", { class: "chart-box" });
  const keys = h("div", { class: "legend" }, PARTS.map(([p, title], i) => h("span", { class: `key s${i}`, title }, p)));
  const box = h("div", { class: "tall" });
  const table = new Table(box, {
    label: "Statistics by layer", widths: "56px minmax(0, 1fr) repeat(3, minmax(58px, 90px))",
    columns: [{ name: "layer" }, { name: "part" }, ...NUMBERS.map(([name, title]) => ({ name, title, number: true }))],
    cells: (i) => {
      const r = data.rows[i];
      return [String(r.layer), h("span", { title: r.address }, r.part), short(r.norm), short(r.mean), short(r.std)];
    },
    chosen: (i) => data.rows[i].layer === locked(model).layer,
    pick: (i) => select(model, { layer: data.rows[i].layer, address: data.rows[i].address }),
  });

  function draw(found) {
    data = found;
    if (!data) return;
    choose.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === what)));
    const count = 1 + data.rows.reduce((a, r) => Math.max(a, r.layer), 0);
    const series = Object.fromEntries(PARTS.map(([part]) => [part, Array.from({ length: count }, () => NaN)]));
    for (const r of data.rows) if (series[r.part]) series[r.part][r.layer] = r[what] ?? NaN;
    const some = Object.fromEntries(Object.entries(series).filter(([, v]) => v.some(Number.isFinite)));
    put(chart, lines(some, Array.from({ length: count }, (_, i) => String(i)), {
      title: `${what} over layers`, mark: locked(model).layer, width: Math.max(320, chart.clientWidth || 460), height: 220,
      hover: (i) => hover(model, i === null ? null : { layer: i }), pick: (i) => select(model, { layer: i }),
    }));
    table.show(data.rows.length);
  }

  const load = loader({
    model, el, keys: ["session"], draw, appears: () => data && draw(data), empty: "No text yet: begin with a prompt.",
    fetch: () => {
      const session = model.get("session");
      return session ? ask(model, "layers.statistics", { node: session.current }, { slot: "layers" }) : null;
    },
  });
  el.append(h("div", { class: "row spread" }, h("span", { class: "segments", role: "group", "aria-label": "Number" }, choose), keys), chart, box);
  const off = watch(model, ["selection"], () => data && el.offsetParent !== null && draw(data));
  return () => {
    off();
    load.close();
    table.close();
  };
}
