/** Features that fire in the text, one of them nearer, and sliders that steer by them. */

import { ask, idle, loader } from "../ask.js";
import { h, percent, put, short, throttled, visible } from "../dom.js";
import { histogram } from "../draw/axes.js";
import { Rows } from "../draw/rows.js";
import { hover, locked, positionOf, select, watch } from "../state.js";
import { changed } from "./value_tools.js";

const few = (x) => short(Number(x.toPrecision(3)));
const REST = 250; // a slider that moves on within this time is one move

export function featuresView({ model, el, fail, python }) {
  let [data, strengths, where, rest, chosen] = [null, new Map(), "text", null, null];
  const places = ["text", "token"].map((name) => h("button", { type: "button", class: "segment", "data-where": name, title: name === "text" ? "The strongest features anywhere in the text" : "Those at the token that is locked, or the last one", onclick: () => { where = name; load.reload(); } }, name === "text" ? "whole text" : "this token"));
  const about = h("span", { class: "dim small" });
  const list = h("div", { class: "feature-list", role: "listbox", "aria-label": "Features" });
  const rows = new Rows(list, { height: 30, row: (i) => row(data.rows[i], i) });
  const detail = h("div", { class: "feature-detail", id: "feature-detail" }, h("p", { class: "state empty" }, "Choose a feature: where it fires, what it makes likelier, and a slider to steer by it appear here."));
  const sliders = h("div", { class: "feature-sliders", id: "feature-sliders" });

  function row(r, i) {
    const best = data.values.subarray(i * data.tokens, (i + 1) * data.tokens);
    const most = Math.max(...best, 1e-9);
    return h("button", { type: "button", class: "feature-row", role: "option", "data-feature": r.feature, "aria-selected": String(chosen === r.feature), title: `Feature ${r.feature}: strongest at position ${r.at}`, onclick: () => open(r.feature),
      onpointerenter: () => hover(model, { position: r.at }), onpointerleave: () => hover(model, null) },
    h("b", { class: "num" }, String(r.feature)), h("span", { class: "num dim" }, few(r.value)),
    h("span", { class: "feature-strip", "aria-hidden": "true" }, Array.from(best, (v) => h("i", { style: { "--v": (v / most).toFixed(2) } }))),
    h("span", { class: "dim ends" }, r.promotes.map(visible).join(" ")));
  }

  function draw(found) {
    data = { ...found, tokens: found.values.shape[1] };
    places.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.where === where)));
    about.textContent = `${found.count} features of ${found.site}; ${found.rows.length} of those that fire${found.position === null ? "" : ` at ${visible(model.get("session").tokens[found.position]?.text ?? "")}`}`;
    list.style.setProperty("height", `${Math.min(Math.max(1, found.rows.length) * 30 + 4, 260)}px`);
    list.dataset.count = String(found.rows.length);
    rows.show(found.rows.length);
    python(found.python);
  }

  async function open(feature) {
    fail(null);
    chosen = feature;
    rows.show(data?.rows.length ?? 0);
    try {
      const found = await ask(model, "laboratory.feature", { feature, node: model.get("session").current }, { slot: "feature" });
      show(found);
      python(found.python);
    } catch (error) {
      if (!idle(error)) fail(error.message);
    }
  }

  function show(f) {
    const chips = (items) => h("div", { class: "chips" }, items.map((t) => h("span", { class: "chip" }, visible(t.text), " ", h("span", { class: "num dim" }, few(t.value)))));
    const near = (title, items, told) => (items.length ? h("p", { class: "small" }, h("span", { class: "dim", title }, `${told}: `), items.slice(0, 5).map((n) => h("button", { type: "button", class: "quiet num", title: `Open feature ${n.feature}`, onclick: () => open(n.feature) }, `${n.feature} (${n.value.toFixed(2)})`))) : null);
    put(detail, h("div", { class: "row" }, h("h3", {}, `Feature ${f.feature}`), h("span", { class: "dim small num grow" }, `fires at ${percent(f.rate)} of ${f.places} places, at most ${few(f.top)}`),
      h("button", { type: "button", id: "feature-steer", title: "Add a slider that raises or lowers this feature", onclick: () => { if (!strengths.has(f.feature)) strengths.set(f.feature, 0); build(); sliders.querySelector(`[data-feature="${f.feature}"]`)?.focus(); } }, "Steer by it")),
    h("div", { class: "two" }, h("div", {}, h("p", { class: "small dim" }, "Where it fires most"), f.examples.length ? f.examples.map((e) => h("p", { class: "example" }, e.tokens.map((t, i) => h("span", { style: { "--v": (e.values[i] / (f.top || 1)).toFixed(2) }, title: few(e.values[i]) }, t.replaceAll("\n", "⏎"))))) : h("p", { class: "dim small" }, "Nowhere in this text: write one in which it could.")),
      h("div", {}, h("p", { class: "small dim" }, "Makes likelier"), chips(f.promoted), h("p", { class: "small dim" }, "and less likely"), chips(f.suppressed), f.counts.length && f.top > 0 ? histogram(f.counts, 0, f.top) : null)),
    near("Decoder rows that point the same way", f.similar, "similar"), near("Features that fire at the same places", f.together, "fire together"));
  }

  /** The sliders of the features that the model is steered by. */
  function build() {
    put(sliders, strengths.size ? h("div", { class: "row" }, h("h3", {}, "Steering"), h("span", { class: "dim small grow" }, "An edit in force: the next token follows; undo takes it back."), h("button", { type: "button", id: "steer-off", title: "Steer by none of them any more", onclick: () => { strengths = new Map(); build(); steer(); } }, "Stop steering")) : null,
      [...strengths].map(([feature, value]) => {
        const out = h("output", { class: "num" }, few(value));
        return h("div", { class: "slider wide" }, h("label", { for: `steer-${feature}` }, `Feature ${feature}`), h("input", { type: "range", id: `steer-${feature}`, min: -20, max: 20, step: 0.5, value, "data-feature": feature, title: `How much feature ${feature} is raised`,
          oninput: (event) => {
            strengths.set(feature, Number(event.target.value));
            out.textContent = few(strengths.get(feature));
            clearTimeout(rest);
            rest = setTimeout(steer, REST);
          } }), out);
      }));
  }

  async function steer() {
    clearTimeout(rest);
    fail(null);
    try {
      const reply = await ask(model, "laboratory.steer", { strengths: Object.fromEntries(strengths) }, { slot: "steer" });
      changed(model, reply);
      python(reply.python);
      sliders.dataset.steered = JSON.stringify(reply.strengths);
    } catch (error) {
      if (!idle(error)) fail(error.message);
    }
  }

  const load = loader({
    model, el, keys: ["session", "lab-position"], draw, empty: "No text yet: begin with a prompt; the features that fire in it appear here.",
    fetch: () => {
      const session = model.get("session");
      if (!session) return null;
      return ask(model, "laboratory.features", { node: session.current, ...(where === "token" ? { position: positionOf(model, locked(model)) } : {}) }, { slot: "features" });
    },
  });
  let at = null;
  const off = watch(model, ["selection"], throttled(() => {
    const now = positionOf(model, locked(model));
    if (where === "token" && now !== at) load.reload();
    at = now;
  }));
  el.append(h("div", { class: "row" }, h("span", { class: "segments", role: "group", "aria-label": "Where" }, places), about), list, sliders, detail);
  select(model, {});
  return () => {
    off();
    clearTimeout(rest);
    rows.close();
    load.close();
  };
}
