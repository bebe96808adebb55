/** Time and memory of one run by module. */

import { ask, idle } from "../ask.js";
import { bytes, h, put, seconds } from "../dom.js";
import { locked, notice, select, watch } from "../state.js";
import { layerOf } from "./modules.js";

export function render({ model, el }) {
  let [data, by] = [null, "layers"];
  const run = h("button", { type: "button", class: "primary", id: "profile-run", onclick: () => measure() }, "Measure");
  const repeat = h("input", { type: "number", id: "profile-repeat", min: 1, max: 50, value: 3, "aria-label": "How often it is run" });
  const total = h("span", { class: "dim num" });
  const kinds = ["layers", "modules", "operators"].map((name) => h("button", { type: "button", class: "segment", "aria-pressed": String(name === by), onclick: () => { by = name; draw(); } }, name));
  const table = h("div", { class: "table-box tall" });
  const empty = h("p", { class: "state empty" }, "Measure one run of the model over the text: time and memory of each layer.");

  async function measure() {
    const session = model.get("session");
    if (!session) return;
    run.disabled = true;
    run.textContent = "Measuring…";
    try {
      data = await ask(model, "profile.run", { node: session.current, repeat: Number(repeat.value) || 1, ops: true }, { slot: "profile" });
      draw();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
    run.disabled = false;
    run.textContent = "Measure";
  }

  function draw() {
    kinds.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === by)));
    if (!data) return;
    empty.hidden = true;
    const layers = new Set([...(model.get("info")?.parts?.layers ?? []), model.get("info")?.parts?.norm, model.get("info")?.parts?.head, model.get("info")?.parts?.embedding]);
    const wanted = { layers: (r) => layers.has(r.address), modules: (r) => r.kind === "module" && r.address !== "", operators: (r) => r.kind === "op" };
    const rows = data.rows.filter(wanted[by]);
    if (by !== "layers") rows.sort((a, b) => b.seconds - a.seconds);
    const most = Math.max(1e-12, ...rows.map((r) => r.seconds));
    const mostBytes = Math.max(1, ...rows.map((r) => r.bytes ?? 0));
    total.textContent = `${seconds(data.seconds)} a run`;
    const share = (v, max, text) => h("td", { class: "share" }, h("span", { class: "share-fill", style: { width: `${(100 * v) / max}%` } }), h("span", { class: "share-text num" }, text));
    put(table, h("table", { class: "profile" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "module"), h("th", { scope: "col" }, "time"), h("th", { scope: "col" }, "memory"))),
      h("tbody", {}, rows.slice(0, 300).map((r) => h("tr", { class: r.address === locked(model).address ? "locked" : "", onclick: () => {
        const layer = layerOf(model.get("info"), r.address);
        select(model, { address: r.address, ...(layer === null ? {} : { layer }) });
      } }, h("td", { class: "mono", title: `${r.address} ${r.class ?? ""}` }, r.address), share(r.seconds, most, seconds(r.seconds)), share(r.bytes ?? 0, mostBytes, bytes(r.bytes)))))));
  }

  const update = () => { run.disabled = !model.get("session") || (model.get("link") && model.get("link").status !== "open"); };
  el.append(h("div", { class: "row" }, run, h("label", { class: "inline" }, "runs", repeat), total, h("span", { class: "grow" }),
    h("span", { class: "segments", role: "group", "aria-label": "Rows" }, kinds)), empty, table);
  const off = [watch(model, ["session", "link"], update), watch(model, ["selection"], () => el.offsetParent !== null && draw())];
  update();
  return () => off.forEach((f) => f());
}
