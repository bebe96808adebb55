/** The most probable next tokens before and after the sampler; a click goes on with that token. */

import { act, ask, loader } from "../ask.js";
import { h, put, short, throttled, visible } from "../dom.js";
import { bar } from "../draw/bars.js";
import { locked, positionOf, watch } from "../state.js";

export function render({ model, el }) {
  const head = h("div", { class: "row spread small dim" });
  const list = h("div", { class: "bars", role: "group", "aria-label": "Most probable next tokens" });
  const own = h("input", { type: "text", id: "own-token", placeholder: "or write text to go on with", "aria-label": "Text to go on with", autocomplete: "off" });
  const mark = h("span", { class: "ghost-key", title: "The mark in a bar is its probability before the edit" }, "before");
  let [past, last] = [null, null]; // what was told at this position before a change

  /** The node whose next token is shown: one under the pointer in the tree, that of the locked position, or where the session stands. */
  function node() {
    const session = model.get("session");
    if (!session) return null;
    const passing = model.get("hover")?.branch;
    if (session.byId.has(passing)) return passing;
    const token = session.tokens[positionOf(model, locked(model))];
    return token?.node ?? session.current;
  }

  function draw(top) {
    const session = model.get("session");
    if (top.inside !== undefined) return inside(top);
    const on = session.tokens.findLast((t) => t.node === top.node);
    if (!on) return elsewhere(top, session);
    const at = on.position;
    const next = session.tokens[at + 1];
    // The same text under other edits is told beside what was said before them.
    const ids = session.tokens.slice(0, at + 1).map((t) => t.id).join();
    if (last && last.ids === ids && last.node !== top.node) past = last;
    else if (last && last.ids !== ids) past = null;
    const old = new Map((past?.rows ?? []).map((r) => [r.id, r.p]));
    rows(top, { old, next, head: [h("span", {}, "after ", h("b", {}, visible(on.text)), `, position ${at}`), h("span", { title: "How undecided the model is about the next token, in nats; 0 is certain" }, `entropy ${short(top.entropy)} nats`)] });
    last = { ids, node: top.node, rows: top.before };
    return null;
  }

  /** A position inside of the prompt: what the model would have said there. */
  function inside(top) {
    const { tokens } = model.get("session");
    rows({ ...top, before: top.top }, {
      old: null, next: tokens[top.inside + 1], pick: (r) => restart(tokens, top.inside, r),
      head: [h("span", {}, "in the prompt, after ", h("b", {}, visible(tokens[top.inside].text)), `, position ${top.inside}`), h("span", {}, `entropy ${short(top.entropy)} nats`)],
    });
  }

  const restart = (tokens, at, r) => act(model, "session.prompt", { text: tokens.slice(0, at + 1).map((t) => t.text).join("") + r.text });

  /** A node of another branch, in passing. */
  function elsewhere(top, session) {
    const text = visible(session.byId.get(top.node)?.text ?? "").slice(-24);
    rows(top, { old: null, next: null, head: [h("span", {}, "in passing: after ", h("b", {}, text)), h("span", {}, `node ${top.node}`)] });
  }

  function rows(top, { old, next, head: words, pick = (r) => choose(top.node, r.id) }) {
    const after = new Map(drawn(top).map((r) => [r.id, r.p]));
    const sampled = Boolean(top.after);
    const scale = Math.max(0.02, ...top.before.map((r) => r.p), ...after.values());
    put(head, words);
    put(list, h("div", { class: "bar-head", "aria-hidden": "true" }, h("span", {}, "token"), mark, h("span", { class: "by-model", title: "The model's own probability (wide bar)" }, "model"), h("span", { class: "by-sampler", title: "What the sampler draws with (thin bar)" }, "sampler")),
      top.before.map((r) => bar({
        ...r, label: visible(r.text), q: sampled ? after.get(r.id) ?? 0 : undefined, ghost: old && past ? old.get(r.id) ?? 0 : undefined, chosen: next?.id === r.id,
        title: `Go on with ${visible(r.text)} (${r.id}): ${short(100 * r.p)}% by the model${sampled ? `, ${short(100 * (after.get(r.id) ?? 0))}% after the sampler` : ""}`,
      }, { scale, pick: () => pick(r) })));
    mark.classList.toggle("off", !(old && past));
  }

  /** What the sampler leaves; without sampling it is the best token alone. */
  const drawn = (top) => (!top.after ? [] : top.sampled === false ? top.after.slice(0, 1).map((r) => ({ ...r, p: 1 })) : top.after);

  async function choose(from, token) {
    const session = model.get("session");
    await act(model, "session.choose", from === session.current ? { token } : { node: from, token });
    if (locked(model).position !== null) model.set("selection", { ...locked(model), position: null });
  }

  own.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && own.value) {
      act(model, "session.choose", { text: own.value });
      own.value = "";
    }
  });

  /** While it generates: what was said before each token, and which of it was drawn, as it comes. */
  const alive = throttled(() => {
    const live = model.get("generating") ? model.get("live") : null;
    if (!live?.top || el.offsetParent === null) return;
    rows({ before: live.top }, {
      old: null, next: { id: live.chosen.token }, pick: () => {},
      head: [h("span", {}, "drawing ", h("b", {}, visible(live.chosen.text))), h("span", { class: "num" }, live.rate ? `${live.rate.toFixed(live.rate < 10 ? 1 : 0)} tokens/s` : "")],
    });
    list.dataset.live = String(live.done);
  });

  const load = loader({
    model, el, keys: ["session", "selection", "preview"], empty: "No text yet: begin with a prompt.",
    fetch: () => {
      const at = node();
      if (at === null) return null;
      const [session, position] = [model.get("session"), locked(model).position];
      if (position !== null && session.tokens[position + 1]?.prompt && model.get("hover")?.branch === undefined) {
        return ask(model, "lens.cell", { node: session.current, layer: model.get("info")?.layers ?? 0, position, k: 10 }, { slot: "top" })
          .then((found) => ({ ...found, inside: position }));
      }
      const preview = at === model.get("session").current ? model.get("preview") : null;
      return ask(model, "session.top", { node: at, k: 10, ...(preview ? { settings: preview } : {}) }, { slot: "top" });
    },
    draw,
  });
  el.append(head, list, own);
  let seen;
  const off = watch(model, ["session", "link", "hover"], () => {
    own.disabled = !model.get("session");
    const passing = model.get("hover")?.branch;
    if (passing !== seen) load.reload();
    seen = passing;
  });
  const living = watch(model, ["live"], alive);
  return () => [off, living, load.close].forEach((f) => f());
}
