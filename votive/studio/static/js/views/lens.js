/** The logit lens: what the model would say after each layer, for every position of the text. */

import { ask, idle, loader } from "../ask.js";
import { h, percent, put, short, throttled, visible } from "../dom.js";
import { Grid } from "../draw/grid.js";
import { hover, locked, notice, select, shown, watch } from "../state.js";

const SHADES = [["p", "Probability"], ["entropy", "Entropy"], ["rank", "Rank of target"]];

export function render({ model, el }) {
  let [lens, shade, timer] = [null, "p", null];
  const pickShade = h("select", { id: "lens-shade", "aria-label": "Shade by", onchange: () => { shade = pickShade.value; paint(); } },
    SHADES.map(([value, text]) => h("option", { value }, text)));
  const target = h("input", { type: "text", id: "lens-target", placeholder: "target token", "aria-label": "Target token: its probability and rank are shown", autocomplete: "off", onchange: () => load.reload() });
  const box = h("div", { class: "lens-grid", id: "lens-grid" });
  const cell = h("div", { class: "lens-cell", id: "lens-cell" });
  const grid = new Grid(box, {
    name: "Logit lens, layers by positions. Arrow keys move, Enter locks.", cell: [66, 22], left: 90,
    hover: (row, col) => hover(model, row === null ? null : { layer: row - 1, position: col }),
    pick: (row, col) => {
      const old = locked(model);
      const again = old.layer === row - 1 && old.position === col;
      select(model, again ? { position: null } : { layer: row - 1, position: col });
    },
  });

  function draw(data) {
    lens = data;
    const ranked = Array.isArray(data.rank) || data.rank?.shape;
    for (const option of pickShade.options) option.disabled = option.value === "rank" && !ranked;
    if (shade === "rank" && !ranked) pickShade.value = shade = "p";
    paint();
  }

  function paint() {
    if (!lens) return;
    const [rows, cols] = [lens.names.length, lens.tokens.length];
    let values = lens.p;
    let [min, max] = [0, 1];
    if (shade === "entropy") [values, max] = [lens.entropy, lens.entropy.reduce((a, b) => Math.max(a, b), 0)];
    if (shade === "rank") {
      const flat = lens.rank.shape ? lens.rank : lens.rank.flat();
      values = Float32Array.from(flat, (r) => -Math.log10(1 + r));
      [min, max] = [-Math.log10(1 + flat.reduce((a, b) => Math.max(a, b), 0)), 0];
    }
    // The embedding stands at the bottom of a model; rows are drawn in the order of the run.
    grid.show({ rows, cols, values, min, max, texts: lens.texts, rowLabels: lens.names.map(shortName), colLabels: lens.tokens.map((t) => t.text ?? t) });
    box.style.setProperty("--rows", rows);
    mark();
  }

  const shortName = (name, i) => (i === 0 ? "embedding" : name.replace(/^.*\.(?=[^.]+\.\d+$)/, ""));

  function mark() {
    const { layer, position } = locked(model);
    grid.lock({ row: layer === null ? undefined : layer + 1, col: position ?? undefined });
    grid.later();
    if (position !== null) grid.reveal(position);
    clearTimeout(timer);
    const now = shown(model);
    const at = { layer: now.layer ?? (lens ? lens.names.length - 2 : 0), position: now.position ?? (lens ? lens.tokens.length - 1 : 0) };
    quick(at);
    // The exact list is asked for when the pointer rests.
    timer = setTimeout(() => exact(at), model.get("hover") ? 120 : 10);
  }

  function quick({ layer, position }) {
    if (!lens?.texts[layer + 1] || position >= lens.tokens.length) return;
    const i = (layer + 1) * lens.tokens.length + position;
    put(cell, h("div", { class: "row spread" },
      h("span", {}, h("b", {}, lens.names[layer + 1]), " after ", h("b", {}, visible(lens.tokens[position].text ?? lens.tokens[position]))),
      h("span", { class: "num dim" }, `entropy ${short(lens.entropy[i])} nats`)),
    h("div", { class: "lens-top" }, h("span", { class: "chip" }, visible(lens.texts[layer + 1][position]), " ", h("span", { class: "num dim" }, percent(lens.p[i])))));
  }

  async function exact({ layer, position }) {
    const session = model.get("session");
    if (!session || !lens || !seen() || position >= lens.tokens.length) return;
    try {
      const found = await ask(model, "lens.cell", { node: session.current, layer: layer + 1, position, k: 8 }, { slot: "lens-cell" });
      const list = cell.querySelector(".lens-top");
      if (list) put(list, found.top.map((t) => h("span", { class: "chip", title: `token ${t.id}` }, visible(t.text), " ", h("span", { class: "num dim" }, percent(t.p)))));
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  /** The id of the target: a number, or a token that stands in the text or in the lens. */
  function wanted() {
    const text = target.value;
    if (/^\d+$/.test(text)) return Number(text);
    for (const form of [text, ` ${text}`]) {
      const token = model.get("session").tokens.find((t) => t.text === form);
      if (token) return token.id;
      for (const [i, row] of (lens?.texts ?? []).entries()) {
        const at = row.indexOf(form);
        if (at >= 0) return lens.ids[i][at];
      }
    }
    throw new Error(`No token of the text or of the lens reads “${text}”; give its number.`);
  }

  const seen = () => el.offsetParent !== null;
  const load = loader({
    model, el, keys: ["session"], draw, empty: "No text yet: begin with a prompt.",
    fetch: () => {
      const session = model.get("session");
      if (!session) return null;
      const args = { node: session.current, top_k: 1 };
      if (target.value) args.target = wanted();
      return ask(model, "lens.grid", args, { slot: "lens" });
    },
  });
  el.append(h("div", { class: "row" }, h("label", { class: "inline" }, "Shade", pickShade), h("label", { class: "inline" }, "Target", target)), box, cell);
  const off = watch(model, ["selection", "hover"], throttled(mark));
  return () => {
    off();
    clearTimeout(timer);
    load.close();
    grid.close();
  };
}
