/** Time and memory of one run: by layer, by module, by operator. */

import { ask, idle } from "../ask.js";
import { bytes, h, seconds } from "../dom.js";
import { Table } from "../draw/table.js";
import { locked, notice, select, watch } from "../state.js";
import { layerOf } from "./modules.js";

export function render({ model, el }) {
  let [data, by, rows, most, mostBytes] = [null, "layers", [], 1, 1];
  const run = h("button", { type: "button", class: "primary", id: "profile-run", title: "Run the model over the text and measure each module", onclick: () => measure() }, "Measure");
  const repeat = h("input", { type: "number", id: "profile-repeat", min: 1, max: 20, value: 3, title: "How many runs are measured", "aria-label": "How often it is run" });
  const total = h("span", { class: "dim num", id: "profile-total" });
  const kinds = ["layers", "modules", "operators"].map((name) => h("button", { type: "button", class: "segment", title: `Times of ${name}`, id: `profile-${name}`, "aria-pressed": String(name === by), onclick: () => { by = name; draw(); } }, name));
  const box = h("div", { class: "tall", hidden: true });
  const empty = h("p", { class: "state empty" }, "Measure one run of the model over the text: time and memory of each layer, module and operator.");

  const share = (v, max, text) => h("span", { class: "share" }, h("span", { class: "share-fill", style: { width: `${(100 * v) / max}%` } }), h("span", { class: "share-text num" }, text));
  const table = new Table(box, {
    label: "Time and memory", widths: "minmax(0, 1.1fr) minmax(76px, 1fr) minmax(76px, 1fr) 52px",
    columns: [{ name: "where" }, { name: "time", title: "Seconds spent inside it, in one run" }, { name: "memory", title: "Bytes it allocated" }, { name: "calls", number: true, title: "How often it was called in a run" }],
    cells: (i) => {
      const r = rows[i];
      const name = h("span", { class: "mono ends", title: `${r.address}${r.class ? `, ${r.class}` : ""}` }, h("bdi", {}, r.address));
      return [r.kind === "op" ? h("span", { class: "row tight" }, name, h("button", { type: "button", class: "quiet small", tabindex: -1, "aria-label": `Explain ${opOf(r.address)}`, title: "Its formula, gradient and kernels", onclick: (event) => explain(event, r) }, "explain")) : name,
        share(r.seconds, most, seconds(r.seconds)), share(r.bytes ?? 0, mostBytes, bytes(r.bytes)), String(r.calls ?? "")];
    },
    chosen: (i) => rows[i].address === locked(model).address,
    pick: (i) => {
      const layer = layerOf(model.get("info"), rows[i].address);
      select(model, { address: rows[i].address.split("/")[0], ...(layer === null ? {} : { layer }) });
    },
  });

  const opOf = (address) => address.split("/").at(-1).split("#")[0];
  function explain(event, row) {
    event.stopPropagation();
    model.actions?.tab?.("explain");
    model.actions?.explain?.(opOf(row.address));
  }

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
    box.hidden = false;
    const parts = model.get("info")?.parts ?? {};
    const layers = new Set([...(parts.layers ?? []), parts.norm, parts.head, parts.embedding]);
    const wanted = { layers: (r) => layers.has(r.address), modules: (r) => r.kind === "module" && r.address !== "", operators: (r) => r.kind === "op" };
    rows = data.rows.filter(wanted[by]);
    if (by !== "layers") rows.sort((a, b) => b.seconds - a.seconds);
    most = rows.reduce((a, r) => Math.max(a, r.seconds), 1e-12);
    mostBytes = rows.reduce((a, r) => Math.max(a, r.bytes ?? 0), 1);
    total.textContent = `${seconds(data.seconds)} a run`;
    table.show(rows.length);
  }

  const update = () => { run.disabled = !model.get("session") || (model.get("link") && model.get("link").status !== "open"); };
  el.append(h("div", { class: "row" }, run, h("label", { class: "inline" }, "runs", repeat), total, h("span", { class: "grow" }),
    h("span", { class: "segments", role: "group", "aria-label": "Rows" }, kinds)), empty, box);
  const off = [watch(model, ["session", "link"], update), watch(model, ["selection"], () => el.offsetParent !== null && draw())];
  update();
  return () => {
    off.forEach((f) => f());
    table.close();
  };
}
