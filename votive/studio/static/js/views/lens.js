/** The logit lens: what the model would say after each layer, for every position of the text. */

import { ask, idle, loader } from "../ask.js";
import { h, percent, put, readOut, short, throttled, visible } from "../dom.js";
import { lines } from "../draw/axes.js";
import { Grid } from "../draw/grid.js";
import { legend, tell } from "../draw/legend.js";
import { minimap } from "../draw/minimap.js";
import { hover, locked, notice, select, shown, watch } from "../state.js";

const SHADES = [
  ["p", "Probability of the best", "How probable the token in the cell is there"],
  ["entropy", "Entropy", "How undecided the model still is there, in nats"],
  ["kl", "Distance to the output", "Kullback-Leibler divergence of the cell from what the model says in the end, in nats"],
  ["target_p", "Probability of the target", "How probable the target token is there"],
  ["rank", "Rank of the target", "How many tokens are more probable than the target there"],
];

export function render({ model, el }) {
  let [lens, shade, timer, goal] = [null, "p", null, null];
  const pickShade = h("select", { id: "lens-shade", "aria-label": "Shade by", onchange: () => { shade = pickShade.value; paint(); } },
    SHADES.map(([value, text, title]) => h("option", { value, title }, text)));
  const target = h("input", {
    type: "text", id: "lens-target", placeholder: "a word, or a token’s number", "aria-label": "Target: its probability and rank are shown", autocomplete: "off",
    title: "A token whose probability and rank is followed through the layers", onchange: () => load.reload(),
  });
  const said = h("span", { class: "small dim", id: "lens-goal", role: "status" });
  const box = h("div", { class: "lens-grid", id: "lens-grid" });
  const colours = legend();
  const cell = h("div", { class: "lens-cell", id: "lens-cell" });
  const chart = h("div", { class: "chart-box", id: "lens-chart" });
  const grid = new Grid(box, {
    name: "Logit lens, layers by positions. Arrow keys move, Enter locks.", cell: [66, 22], left: 84,
    hover: (row, col) => hover(model, row === null ? null : { layer: row - 1, position: col }),
    pick: (row, col) => {
      const old = locked(model);
      const again = old.layer === row - 1 && old.position === col;
      select(model, again ? { position: null } : { layer: row - 1, position: col });
    },
  });

  const whole = minimap(grid, "The whole text in the lens");

  function draw(data) {
    lens = data;
    const aimed = Boolean(data.target_p);
    for (const option of pickShade.options) option.disabled = !aimed && ["rank", "target_p"].includes(option.value);
    if (!aimed && ["rank", "target_p"].includes(shade)) pickShade.value = shade = "p";
    paint();
  }

  function paint() {
    if (!lens) return;
    const [rows, cols] = [lens.names.length, lens.tokens.length];
    const most = (list) => list.reduce((a, b) => (b > a ? b : a), 0);
    let values = lens[shade];
    let [min, max, ends] = [0, 1, ["0", "100%"]];
    if (shade === "entropy" || shade === "kl") {
      max = most(values) || 1;
      ends = ["0", `${short(max)} nats`];
    }
    if (shade === "rank") {
      const flat = lens.rank.flat();
      values = Float32Array.from(flat, (r) => -Math.log10(1 + r));
      [min, max, ends] = [-Math.log10(1 + most(flat)), 0, [`rank ${most(flat)}`, "0, the best"]];
    }
    const [, name, title] = SHADES.find(([value]) => value === shade);
    tell(colours, { name, ends, title });
    grid.show({ rows, cols, values, min, max, texts: lens.texts, rowLabels: lens.names.map(shortName), colLabels: lens.tokens.map((t) => t.text ?? t) });
    whole.draw();
    box.style.setProperty("--rows", rows);
    box.dataset.count = String(cols);
    mark();
  }

  const shortName = (name, i) => (i === 0 ? "embedding" : name.replace(/^.*\.(?=[^.]+\.\d+$)/, ""));

  function mark() {
    const { layer, position } = locked(model);
    grid.lock({ row: layer === null ? undefined : layer + 1, col: position ?? undefined });
    grid.later();
    if (position !== null && !box.matches(":hover")) grid.reveal(position);
    clearTimeout(timer);
    if (!lens) return;
    const now = shown(model);
    const at = { layer: Math.min(now.layer ?? 1e9, lens.names.length - 2), position: Math.min(now.position ?? 1e9, lens.tokens.length - 1) };
    quick(at);
    // The exact list is asked for, and the curves are drawn, when the pointer rests.
    timer = setTimeout(() => {
      trace(at.layer, at.position);
      exact(at);
    }, model.get("hover") ? 120 : 10);
  }

  function quick({ layer, position }) {
    const i = (layer + 1) * lens.tokens.length + position;
    put(cell, h("div", { class: "row spread" },
      h("span", {}, "After ", h("b", {}, layer < 0 ? "the embedding" : lens.names[layer + 1]), ", at ", h("b", {}, visible(lens.tokens[position].text ?? lens.tokens[position])), ` (${position})`),
      h("span", { class: "num dim" }, `entropy ${short(lens.entropy[i])} nats${lens.target_p ? `, target ${percent(lens.target_p[i])}, rank ${lens.rank[layer + 1][position]}` : ""}`)),
    h("div", { class: "lens-top" }, h("span", { class: "chip" }, visible(lens.texts[layer + 1][position]), " ", h("span", { class: "num dim" }, percent(lens.p[i])))));
  }

  /** How what is said at a position forms from layer to layer. */
  function trace(layer, position) {
    const width = Math.max(280, Math.min(900, chart.clientWidth || 460));
    const column = (values) => lens.names.map((_, row) => values[row * lens.tokens.length + position]);
    const series = { "best token": column(lens.p), ...(lens.target_p ? { target: column(lens.target_p) } : {}) };
    const names = lens.names.map((n, i) => (i === 0 ? "emb" : String(i - 1)));
    const options = { mark: layer + 1, height: 132, hover: (i) => hover(model, i === null ? null : { layer: i - 1, position }), pick: (i) => select(model, { layer: i - 1, position }) };
    const half = width > 480 ? Math.floor(width / 2) - 8 : width;
    const told = (title, list, more) => h("figure", {}, h("figcaption", { class: "legend small" }, h("b", {}, title), Object.keys(list).length > 1
      ? Object.keys(list).map((k, i) => h("span", { class: `key s${i}` }, k)) : null), lines(list, names, { ...options, width: half, ...more }));
    put(chart, told("Probability, by layer", series, { title: "Probability by layer", high: 1 }),
      told("Distance to the output, by layer (nats)", { distance: column(lens.kl) }, { title: "Divergence from the output by layer" }));
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

  /** The token that is meant: a number, or a text as it would stand in the middle of another. */
  async function aim() {
    const text = target.value;
    if (!text) return { id: null, words: "" };
    if (/^\d+$/.test(text)) return { id: Number(text), words: "" };
    const forms = text.startsWith(" ") ? [text] : [` ${text}`, text];
    const found = await Promise.all(forms.map((form) => ask(model, "session.tokenise", { text: form })));
    const whole = found.find((f) => f.ids.length === 1) ?? found[0];
    const words = whole.ids.length === 1 ? `${visible(whole.texts[0])}, token ${whole.ids[0]}`
      : `first of ${whole.ids.length} tokens: ${whole.texts.map(visible).join(" ")}`;
    return { id: whole.ids[0], words };
  }

  const seen = () => el.offsetParent !== null;
  const load = loader({
    model, el, keys: ["session"], draw, appears: () => mark(), empty: "No text yet: begin with a prompt.",
    fetch: () => {
      const session = model.get("session");
      if (!session) return null;
      if (goal?.text !== target.value) goal = { text: target.value, found: aim() };
      return goal.found.then(({ id, words }) => {
        said.textContent = words;
        return ask(model, "lens.grid", { node: session.current, top_k: 1, ...(id === null ? {} : { target: id }) }, { slot: "lens" });
      }, (error) => {
        goal = null;
        throw error;
      });
    },
  });
  readOut(box, cell);
  el.append(h("div", { class: "row" }, h("label", { class: "inline" }, "Shade", pickShade), h("label", { class: "inline" }, "Target", target), said), box, whole.el, colours, cell, chart);
  const off = watch(model, ["selection", "hover"], throttled(() => seen() && mark()));
  return () => {
    off();
    clearTimeout(timer);
    load.close();
    grid.close();
    whole.close();
  };
}
