/** Probes: two kinds of texts, and how well each layer tells them apart on texts that were held out. */

import { ask, idle } from "../ask.js";
import { h, percent, put } from "../dom.js";
import { lines } from "../draw/axes.js";
import { select } from "../state.js";

const STARTS = ["Then the old", "There was once a", "In the forest lived a poor", "So the little"];
const KINDS = [["queen", "princess", "witch", "mother", "sister", "daughter"], ["king", "prince", "giant", "father", "brother", "son"]];
const example = (words) => STARTS.flatMap((s) => words.map((w) => `${s} ${w} said`)).join("\n");

export function probeView({ model, el, fail, python }) {
  const areas = KINDS.map((words, i) => h("textarea", { id: `probe-${i ? "second" : "first"}`, rows: 5, spellcheck: "false", "aria-label": i ? "Texts of the second kind, one in a line" : "Texts of the first kind, one in a line", title: "One text in a line; the probe looks at the last token of each" }, example(words)));
  const run = h("button", { type: "button", class: "primary", id: "probe-run", title: "Fit a probe at each layer, and score it on texts that it has not seen", onclick: () => probe() }, "Fit probes");
  const words = h("p", { class: "small", id: "probe-words", role: "status" }, "Which layers know a difference? Write texts of two kinds, one in a line. A probe is fitted at every layer and scored on a quarter of the texts that was held out.");
  const chart = h("div", { class: "chart-box", id: "probe-chart" });

  async function probe() {
    const texts = areas.map((a) => a.value.split("\n").map((t) => t.trim()).filter(Boolean));
    if (texts.some((t) => t.length < 4)) return fail("Write at least four texts of each kind, one in a line.");
    fail(null);
    run.disabled = true;
    try {
      const found = await ask(model, "laboratory.probe", { first: texts[0], second: texts[1] }, { slot: "probe" });
      const names = found.sites.map((s) => s.replace(/^.*\.(?=\d+$)/, "").replace(/^.*embed.*$/, "emb"));
      put(chart, h("div", { class: "legend small" }, ["held out", "learned from", "chance"].map((k, i) => h("span", { class: `key s${i}` }, k))),
        lines({ "held out": found.held_out, "learned from": found.train, chance: found.sites.map(() => found.chance) }, names, { title: "Share of texts told right, by layer", width: Math.max(320, chart.clientWidth || 560), height: 220, high: 1,
          pick: (i) => select(model, { address: found.sites[i], ...(i ? { layer: i - 1 } : {}) }) }));
      words.textContent = `Best at ${found.best.site}: ${percent(found.best.score)} of the held-out texts, where chance is ${percent(found.chance)} (${found.samples[1] ?? found.samples.at(-1)} texts held out). That a probe finds it does not say that the model uses it: try it under Sweep, or with an edit.`;
      python(found.python);
    } catch (error) {
      if (!idle(error)) fail(error.message);
    }
    run.disabled = false;
    return null;
  }

  el.append(words, h("div", { class: "two" }, areas.map((a, i) => h("label", { class: "stacked small" }, i ? "Second kind" : "First kind", a))), h("div", { class: "row" }, run), chart);
  return () => {};
}
