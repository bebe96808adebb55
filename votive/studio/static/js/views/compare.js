/** One text read twice: under the edits and without, or by two models; what differs is marked. */

import { ask, idle, loader } from "../ask.js";
import { copied } from "../copy.js";
import { h, percent, put, short, throttled, visible } from "../dom.js";
import { select, shown, watch, hover } from "../state.js";

export function render({ model, el }) {
  let [data, against, fault] = [null, "plain", null];
  const what = h("select", { id: "compare-what", "aria-label": "Compare with", title: "What the text is compared with", onchange: () => { against = what.value; run(); } });
  const go = h("button", { type: "button", id: "compare-run", title: "Read the text both ways", onclick: () => run() }, "Compare");
  const said = h("p", { class: "small", id: "compare-words", role: "status" });
  const trouble = h("p", { class: "state error", role: "alert", hidden: true });
  const sides = h("div", { class: "sides", id: "compare-sides" });
  const detail = h("p", { class: "small", id: "compare-detail" }, " ");
  const code = h("button", { type: "button", class: "quiet", title: "Copy the lines of Python that do the same", onclick: () => copied(model, python()) }, "Copy as Python");

  function python() {
    const node = data?.node ?? 0;
    return [`ids = votive.tensor([session.tokens_of(${node})])`, against === "plain" ? "plain = model(ids).logits.log_softmax(-1)" : `other = votive.models.AutoModelForCausalLM.from_pretrained(${JSON.stringify(against)})\nplain = other(ids).logits.log_softmax(-1)`,
      "with glass.patch(model, session.edits):\n    edited = model(ids).logits.log_softmax(-1)", "print((edited.exp() * (edited - plain)).sum(-1))"].join("\n");
  }

  async function options() {
    try {
      const { models = [] } = await ask(model, "model.list", {});
      const chosen = what.value || "plain";
      put(what, h("option", { value: "plain" }, "the same model without edits"), models.filter((m) => !m.current).map((m) => h("option", { value: m.name }, `the model ${m.name}`)));
      if ([...what.options].some((o) => o.value === chosen)) what.value = chosen;
    } catch (error) {
      if (!idle(error)) fault = error.message;
    }
  }

  /** How much worse (warm) or better (cool) a token did here than on the other side. */
  function side(name, title, mine, theirs, aligned) {
    return h("section", { class: "side", "aria-label": title }, h("h3", {}, title), h("p", { class: "small dim num" }, `${short(Number(mine.bits_per_character.toPrecision(3)))} bits per character, ${mine.tokens.length} tokens`),
      h("div", { class: "side-text", role: "group" }, mine.tokens.map((t, i) => {
        const other = aligned ? theirs.tokens[i].p : null;
        const gap = other === null || t.p === null ? 0 : Math.log2(Math.max(t.p, 1e-9) / Math.max(other, 1e-9));
        const differs = aligned && (t.best !== theirs.tokens[i].best || Math.abs(gap) > 1);
        return h("button", {
          type: "button", class: `side-token${differs ? " differs" : ""}`, "data-at": i, title: `${visible(t.text)}: ${percent(t.p)}${aligned ? `, on the other side ${percent(other)}` : ""}; likeliest was ${visible(t.best)}`,
          style: { "--gap": Math.min(1, Math.abs(gap) / 4).toFixed(2), "--tint": gap < 0 ? "var(--warm)" : "var(--accent)", "--p": t.p === null ? 0 : Math.min(1, -Math.log10(Math.max(t.p, 1e-4)) / 3).toFixed(2) },
          onclick: () => name === "a" && select(model, { position: i }), onpointerenter: () => name === "a" && hover(model, { position: i }), onpointerleave: () => hover(model, null),
        }, t.text.replaceAll("\n", "⏎"));
      })));
  }

  function draw(found) {
    data = found;
    const { a, b, name } = found;
    const mine = model.get("edits")?.edits?.length ? "with the edits" : model.get("info")?.name ?? "this model";
    put(sides, side("a", mine, a, b, found.same_tokens), side("b", name, b, a, found.same_tokens));
    const kl = found.kl ? [...found.kl] : null;
    const worst = kl ? kl.indexOf(Math.max(...kl)) : -1;
    said.textContent = !kl ? "The two have other tokens, so they are compared by bits per character: fewer is better." : kl.every((x) => x < 1e-6) ? "Both read the text alike: no edit is in force that changes it."
      : `They agree on the likeliest next token at ${percent(found.agree)} of the places. What differs is marked: warmer tokens were less probable here than there. They differ most after ${visible(a.tokens[worst]?.text ?? "")} at ${worst}, by ${short(Number(kl[worst].toPrecision(3)))} nats.`;
    code.disabled = false;
  }

  async function run() {
    load.reload();
  }

  const tell = throttled(() => {
    const at = shown(model).position;
    if (!data?.same_tokens || at === null || at === undefined || !data.a.tokens[at]) {
      detail.textContent = " ";
      return;
    }
    const [x, y] = [data.a.tokens[at], data.b.tokens[at]];
    detail.textContent = `${visible(x.text)} at ${at}: ${percent(x.p)} here, ${percent(y.p)} there; the likeliest was ${visible(x.best)} here and ${visible(y.best)} there`;
  });

  const load = loader({
    model, el, keys: ["session", "edits"], draw, empty: "No text yet: begin with a prompt, then compare how it is read.", appears: () => options(),
    fetch: () => {
      const session = model.get("session");
      if (!session) return null;
      const args = against === "plain" ? { against } : { against: "model", model: against };
      return ask(model, "compare.text", { node: session.current, ...args }, { slot: "compare" });
    },
  });
  const off = watch(model, ["hover", "selection"], tell);
  code.disabled = true;
  put(what, h("option", { value: "plain" }, "the same model without edits"));
  el.append(h("div", { class: "row" }, h("label", { class: "inline" }, "Compare with", what), go, h("span", { class: "grow" }), code), trouble, said, sides, detail);
  if (fault) trouble.hidden = false;
  return () => {
    off();
    load.close();
  };
}
