/**
 * The settings that the next token is drawn with. While a slider is drawn, the bars show what it
 * would do; where it is let go is set, as one move that can be undone.
 */

import { ask, idle } from "../ask.js";
import { h, short } from "../dom.js";
import { notice, take, watch } from "../state.js";

const SLIDERS = [
  ["temperature", "Temperature", 0.05, 2, 0.05, 1, "Below 1 the likely tokens become likelier, above 1 the unlikely ones"],
  ["top_k", "Top-k", 0, 200, 1, 50, "Draw only from this many of the likeliest tokens"],
  ["top_p", "Top-p", 0.01, 1, 0.01, 1, "Draw only from the likeliest tokens that together reach this probability"],
  ["min_p", "Min-p", 0, 0.5, 0.005, 0, "Tokens below this share of the likeliest one's probability are left out"],
  ["repetition_penalty", "Repetition", 1, 2, 0.01, 1, "Above 1, tokens that have already appeared become less likely"],
];
const OFF = { top_k: 0, top_p: 1, min_p: 0, repetition_penalty: 1 };
const REST = 350; // a key that is pressed again within this time belongs to the same move

export function render({ model, el }) {
  const rows = {};
  const drawn = new Map(); // sliders that are being moved: their values, which no reply may change

  /** Set settings; each has a slot of its own, in which the newest wins. */
  async function set(part, slot) {
    try {
      const reply = await ask(model, "session.settings", part, { slot: `settings-${slot}` });
      take(model, reply);
      for (const text of reply.notes ?? []) notice(model, "note", text);
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
    update();
  }

  function preview(name, value) {
    drawn.set(name, value);
    show(name, value);
    model.set("preview", Object.fromEntries(drawn));
  }

  /** The slider was let go: what it says becomes a move. */
  function commit(name) {
    clearTimeout(rows[name].rest);
    if (!drawn.has(name)) return;
    const value = drawn.get(name);
    drawn.delete(name);
    const was = model.get("session")?.settings?.[name] ?? OFF[name];
    const done = value === was ? Promise.resolve() : set({ [name]: value }, name);
    done.then(() => !drawn.has(name) && model.set("preview", drawn.size ? Object.fromEntries(drawn) : null));
  }

  const sample = h("input", { type: "checkbox", id: "do-sample", onchange: () => set({ do_sample: sample.checked }, "sample") });
  const seed = h("input", { type: "number", id: "seed", min: 0, step: 1, "aria-label": "Seed", onchange: () => set({ seed: Math.max(0, Math.trunc(Number(seed.value))) }, "seed") });
  el.append(h("div", { class: "row spread" },
    h("label", { class: "check", title: "Draw tokens by their probability; without it the likeliest one is taken" }, sample, "Sample"),
    h("label", { class: "inline", title: "The same seed draws the same tokens" }, "Seed", seed)));
  for (const [name, label, min, max, step, plain, title] of SLIDERS) {
    const out = h("output", { for: `set-${name}` }, short(plain));
    let pressed = false;
    const slider = h("input", {
      type: "range", id: `set-${name}`, min, max, step, value: plain,
      onpointerdown: () => { pressed = true; },
      oninput: () => {
        preview(name, Number(slider.value));
        clearTimeout(rows[name].rest);
        if (!pressed) rows[name].rest = setTimeout(() => commit(name), REST);
      },
      onchange: () => {
        if (pressed) commit(name);
        pressed = false;
      },
      // A shortcut that follows at once must find the setting in force.
      onkeydown: (event) => !/^(Arrow|Page|Home|End|Shift)/.test(event.key) && commit(name),
      onblur: () => commit(name),
    });
    rows[name] = { slider, out };
    el.append(h("div", { class: "slider", title }, h("label", { for: `set-${name}` }, label), slider, out));
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
      if (!drawn.has(name)) {
        const value = settings[name] ?? OFF[name] ?? plain;
        slider.value = value;
        show(name, value);
      }
      slider.disabled = lost || (!sample.checked && name !== "repetition_penalty");
    }
  }

  const off = watch(model, ["session", "link"], update);
  update();
  return () => {
    Object.values(rows).forEach((r) => clearTimeout(r.rest));
    off();
  };
}
