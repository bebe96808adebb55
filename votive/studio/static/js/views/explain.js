/** What an operator is: schema, formula, derived gradient and the kernels that run it. */

import { ask, idle } from "../ask.js";
import { h, put } from "../dom.js";
import { watch } from "../state.js";

const COMMON = ["softmax", "silu", "gelu", "matmul", "rms_norm", "layer_norm", "scaled_dot_product_attention", "embedding", "add", "mul", "exp", "cross_entropy"];

export function render({ model, el }) {
  const name = h("input", { type: "text", id: "explain-name", list: "explain-names", "aria-label": "Operator", placeholder: "an operator, such as softmax", autocomplete: "off", onchange: () => show(name.value.trim()) });
  const known = h("datalist", { id: "explain-names" }, COMMON.map((n) => h("option", { value: n })));
  const here = h("button", { type: "button", id: "explain-here", title: "Explain the operator where the debugger stands", onclick: () => show(opHere()) }, "At the stop");
  const chips = h("div", { class: "chips" }, COMMON.slice(0, 6).map((n) => h("button", { type: "button", class: "chip", title: `Explain ${n}`, onclick: () => show(n) }, n)));
  const out = h("div", { class: "explained", "aria-live": "polite" }, h("p", { class: "state empty" }, "Choose an operator: its formula, its gradient as derived from it, and the source of its kernels."));

  const opHere = () => model.get("debug")?.address?.split("/")[1]?.split("#")[0];

  async function show(what) {
    if (!what) return;
    name.value = what;
    out.setAttribute("aria-busy", "true");
    try {
      const found = await ask(model, "explain.op", { name: what }, { slot: "explain" });
      put(out, h("h3", {}, found.name ?? what), (found.parts ?? []).map((p, i) => {
        const words = p.text ? h("p", { class: "said-of" }, p.text) : null;
        const code = p.code ? h("pre", { class: "code", tabindex: 0, "aria-label": p.title || what }, p.code) : null;
        if ((p.code ?? "").split("\n").length < 24 || i === 0) return h("section", {}, h("h4", {}, p.title), code, words);
        return h("details", {}, h("summary", {}, p.title), words, code);
      }));
    } catch (error) {
      if (!idle(error)) put(out, h("p", { class: "state error" }, error.message));
    }
    out.removeAttribute("aria-busy");
  }

  async function names() {
    if (model.get("link") && model.get("link").status !== "open") return;
    try {
      const found = await ask(model, "explain.names", {});
      put(known, found.names.map((n) => h("option", { value: n })));
    } catch {
      // The list only helps to type.
    }
  }

  const update = () => {
    here.disabled = !opHere();
    here.textContent = opHere() ? `At the stop: ${opHere()}` : "At the stop";
  };
  model.actions = { ...model.actions, explain: show };
  el.append(h("div", { class: "row" }, name, known, here), chips, out);
  const off = [watch(model, ["debug"], update), watch(model, ["info"], names)];
  update();
  names();
  return () => off.forEach((f) => f());
}
