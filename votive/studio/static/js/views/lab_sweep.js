/** A sweep: one token is replaced, and each place of the model put back as it was; the map links back to the text. */

import { ask, idle } from "../ask.js";
import { h, percent, put, short, visible } from "../dom.js";
import { Heatmap } from "../draw/heatmap.js";
import { legend, tell } from "../draw/legend.js";
import { hover, locked, positionOf, select, watch } from "../state.js";

const SITES = [["stream", "the stream behind each layer"], ["attention", "what attention adds"], ["mlp", "what the MLP adds"], ["heads", "each head, at all positions"]];

export function sweepView({ model, el, fail, python }) {
  let data = null;
  const which = h("select", { id: "sweep-position", title: "The token that is replaced", "aria-label": "The token that is replaced" });
  const word = h("input", { type: "text", id: "sweep-word", placeholder: "another word", "aria-label": "The word in its place", title: "The word in its place: one token of the model", autocomplete: "off", onkeydown: (event) => event.key === "Enter" && sweep() });
  const site = h("select", { id: "sweep-site", title: "What is put back, place by place", "aria-label": "What is put back" }, SITES.map(([v, t]) => h("option", { value: v }, t)));
  const run = h("button", { type: "button", class: "primary", id: "sweep-run", title: "Run the model once for each place", onclick: () => sweep() }, "Sweep");
  const words = h("p", { class: "small", id: "sweep-words", role: "status" }, "Which places carry a token to the answer? Choose a token, write another word for it, and sweep: each place of the model is put back as it was, and the map shows how much of the answer comes back.");
  const box = h("div", { class: "heat sweep-map", id: "sweep-map" });
  const colours = legend();
  const readout = h("div", { class: "readout mono" }, " ");
  const map = new Heatmap(box, {
    name: "Sweep, places by positions or heads. Arrow keys move, Enter goes to the place.", left: 74, top: 52, rotate: true,
    hover: (row, col) => {
      if (row === null || !data) {
        readout.textContent = " ";
        hover(model, null);
        return;
      }
      readout.textContent = `layer ${row}, ${data.by === "head" ? `head ${col}` : `${visible(data.tokens[col])} at ${col}`}: ${percent(Math.max(0, map.value(row, col)))} of the answer comes back`;
      hover(model, data.by === "head" ? { layer: row, head: col } : { layer: row, position: col });
    },
    pick: (row, col) => select(model, { layer: row, address: model.get("info")?.parts?.layers?.[row], ...(data.by === "head" ? { head: col } : { position: col }) }),
  });
  box.hidden = colours.hidden = true;

  function options() {
    const tokens = model.get("session")?.tokens ?? [];
    const at = which.value;
    put(which, tokens.map((t) => h("option", { value: String(t.position) }, `${visible(t.text)} (${t.position})`)));
    const lock = locked(model).position;
    which.value = lock !== null ? String(lock) : tokens[Number(at)] && at !== "" ? at : String(Math.max(0, tokens.length - 3));
  }

  async function sweep() {
    const session = model.get("session");
    if (!session) return fail("Begin with a prompt first: a sweep is over a text.");
    if (!word.value.trim()) return fail("Write the word that stands in the token's place.");
    fail(null);
    run.disabled = true;
    try {
      data = await ask(model, "laboratory.sweep", { node: session.current, position: Number(which.value), word: word.value, site: site.value }, { slot: "sweep" });
      draw();
      python(data.python);
    } catch (error) {
      if (!idle(error)) fail(error.message);
    }
    run.disabled = false;
    return null;
  }

  function draw() {
    const [rows, cols] = data.values.shape;
    box.hidden = colours.hidden = false;
    box.style.setProperty("height", `${Math.min(60 + 24 * rows, 460)}px`);
    const names = data.by === "head" ? Array.from({ length: cols }, (_, i) => `head ${i}`) : data.tokens;
    const bound = Math.max(1, ...data.values.map(Math.abs));
    map.show({ rows, cols, values: data.values, min: -bound, max: bound, signed: true, bound, rowLabels: Array.from({ length: rows }, (_, i) => `layer ${i}`), colLabels: names });
    tell(colours, { name: "of the answer comes back", ends: [`−${short(Number((100 * bound).toPrecision(3)))}%`, "0", `${short(Number((100 * bound).toPrecision(3)))}%`], signed: true, title: "100% says that this place alone brings the answer back" });
    const best = data.values.indexOf(Math.max(...data.values));
    words.textContent = `With ${visible(data.word)} in the place of ${visible(data.tokens[data.position])}, ${visible(data.target)} falls from ${percent(Math.exp(data.clean))} to ${percent(Math.exp(data.corrupt))}. Most comes back at layer ${Math.floor(best / cols)}, ${data.by === "head" ? `head ${best % cols}` : visible(data.tokens[best % cols])}. A click on a place chooses it everywhere.`;
    el.dataset.sweep = `${rows}x${cols}`;
  }

  el.append(h("div", { class: "row" }, h("label", { class: "inline" }, "Replace", which), h("label", { class: "inline" }, "by", word), h("label", { class: "inline" }, "put back", site), run), words, box, h("div", { class: "row spread" }, colours, readout));
  const off = watch(model, ["session", "selection"], options);
  options();
  positionOf(model);
  return () => {
    off();
    map.close();
  };
}
