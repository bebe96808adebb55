/** How large values are from layer to layer: norm, mean or deviation of stream, attention and MLP. */

import { ask, loader } from "../ask.js";
import { h, put, short } from "../dom.js";
import { lines } from "../draw/axes.js";
import { hover, locked, select, watch } from "../state.js";

const PARTS = ["residual", "attention", "mlp"];

export function render({ model, el }) {
  let [data, what] = [null, "norm"];
  const choose = ["norm", "mean", "std"].map((name) => h("button", { type: "button", class: "segment", onclick: () => { what = name; draw(data); } }, name));
  const chart = h("div", { class: "chart-box" });
  const legend = h("div", { class: "legend", "aria-hidden": "true" }, PARTS.map((p, i) => h("span", { class: `key s${i}` }, p)));
  const table = h("div", { class: "table-box" });

  function draw(found) {
    data = found;
    if (!data) return;
    choose.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === what)));
    const count = 1 + Math.max(...data.rows.map((r) => r.layer));
    const series = Object.fromEntries(PARTS.map((part) => [part, Array.from({ length: count }, (_, i) =>
      data.rows.find((r) => r.part === part && r.layer === i)?.[what] ?? NaN)]).filter(([, v]) => v.some(Number.isFinite)));
    put(chart, lines(series, Array.from({ length: count }, (_, i) => String(i)), {
      title: `${what} over layers`, mark: locked(model).layer, width: Math.max(320, chart.clientWidth || 460), height: 200,
      hover: (i) => hover(model, i === null ? null : { layer: i }), pick: (i) => select(model, { layer: i }),
    }));
    put(table, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "layer"), h("th", { scope: "col" }, "part"),
      ["norm", "mean", "std"].map((n) => h("th", { scope: "col", class: "num" }, n)))),
    h("tbody", {}, data.rows.map((r) => h("tr", { class: r.layer === locked(model).layer ? "locked" : "", "data-layer": r.layer, onclick: () => select(model, { layer: r.layer, address: r.address }) },
      h("td", {}, String(r.layer)), h("td", { title: r.address }, r.part), [r.norm, r.mean, r.std].map((v) => h("td", { class: "num" }, short(v))))))));
  }

  const load = loader({
    model, el, keys: ["session"], draw, empty: "No text yet: begin with a prompt.",
    fetch: () => {
      const session = model.get("session");
      return session ? ask(model, "layers.statistics", { node: session.current }, { slot: "layers" }) : null;
    },
  });
  el.append(h("div", { class: "row spread" }, h("span", { class: "segments", role: "group", "aria-label": "Number" }, choose), legend), chart, table);
  const off = watch(model, ["selection"], () => data && el.offsetParent !== null && draw(data));
  return () => [off, load.close].forEach((f) => f());
}
