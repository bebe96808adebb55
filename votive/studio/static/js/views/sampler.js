/** The settings that the next token is drawn with; a change holds at once, and the newest wins. */

import { ask, idle } from "../ask.js";
import { h, short } from "../dom.js";
import { notice, take, watch } from "../state.js";

const SLIDERS = [
  ["temperature", "Temperature", 0.05, 2, 0.05, 1],
  ["top_k", "Top-k", 0, 200, 1, 50],
  ["top_p", "Top-p", 0.01, 1, 0.01, 1],
  ["min_p", "Min-p", 0, 0.5, 0.005, 0],
  ["repetition_penalty", "Repetition", 1, 2, 0.01, 1],
];
const OFF = { top_k: 0, top_p: 1, min_p: 0, repetition_penalty: 1 };

export function render({ model, el }) {
  const rows = {};
  let held = null; // the slider under the pointer, and one whose value is on its way, are not moved by replies

  let [wanted, sending] = [null, false];

  /** One request at a time; what changes meanwhile is sent when it is answered. */
  async function change(part) {
    wanted = { ...wanted, ...part };
    if (sending) return;
    sending = true;
    while (wanted) {
      const now = wanted;
      wanted = null;
      try {
        take(model, await ask(model, "session.settings", now, { slot: "settings" }));
        await new Promise((done) => { setTimeout(done, 60); });
      } catch (error) {
        if (!idle(error)) notice(model, "error", error.message);
      }
    }
    sending = false;
    update();
  }

  const sample = h("input", { type: "checkbox", id: "do-sample", onchange: () => change({ do_sample: sample.checked }) });
  const seed = h("input", { type: "number", id: "seed", min: 0, step: 1, "aria-label": "Seed", onchange: () => change({ seed: Math.trunc(Number(seed.value)) }) });
  el.append(h("div", { class: "row spread" },
    h("label", { class: "check" }, sample, "Sample"),
    h("label", { class: "inline" }, "Seed", seed)));
  for (const [name, label, min, max, step, plain] of SLIDERS) {
    const out = h("output", { for: `set-${name}` }, short(plain));
    const slider = h("input", {
      type: "range", id: `set-${name}`, min, max, step, value: plain,
      oninput: () => {
        held = name;
        show(name, Number(slider.value));
        change({ [name]: Number(slider.value) });
      },
      onchange: () => { held = null; },
    });
    rows[name] = { slider, out };
    el.append(h("div", { class: "slider" }, h("label", { for: `set-${name}` }, label), slider, out));
  }

  function show(name, value) {
    rows[name].out.textContent = value === OFF[name] ? "off" : short(value);
  }

  function update() {
    const session = model.get("session");
    const settings = session?.settings ?? {};
    const lost = model.get("link") && model.get("link").status !== "open";
    for (const input of el.querySelectorAll("input")) input.disabled = !session || lost;
    if (!session) return;
    sample.checked = settings.do_sample !== false;
    if (document.activeElement !== seed) seed.value = session.seed ?? settings.seed ?? 0;
    for (const [name, , , , , plain] of SLIDERS) {
      const { slider } = rows[name];
      if (held !== name && !sending) {
        slider.value = settings[name] ?? OFF[name] ?? plain;
        show(name, settings[name] ?? OFF[name] ?? plain);
      }
      slider.disabled = lost || (!sample.checked && name !== "repetition_penalty");
    }
  }

  const off = watch(model, ["session", "link"], update);
  update();
  return off;
}
