/** The most probable next tokens before and after the sampler; a click goes on with that token. */

import { act, ask, loader } from "../ask.js";
import { h, put, short, visible } from "../dom.js";
import { bar } from "../draw/bars.js";
import { locked, positionOf, watch } from "../state.js";

export function render({ model, el }) {
  const head = h("div", { class: "row spread small dim" });
  const list = h("div", { class: "bars", role: "group", "aria-label": "Most probable next tokens" });
  const own = h("input", { type: "text", id: "own-token", placeholder: "or write text to go on with", "aria-label": "Text to go on with", autocomplete: "off" });
  let [past, last] = [null, null]; // what was told at this position before a change

  /** The node whose next token is shown: that of the locked position, or where the session stands. */
  function node() {
    const session = model.get("session");
    if (!session) return null;
    const token = session.tokens[positionOf(model, locked(model))];
    return token?.node ?? session.current;
  }

  function draw(top) {
    const session = model.get("session");
    const at = session.tokens.findLast((t) => t.node === top.node)?.position ?? 0;
    const next = session.tokens[at + 1];
    if (last && last.at === at && last.node !== top.node) past = last;
    else if (last && last.at !== at) past = null;
    const old = new Map((past?.rows ?? []).map((r) => [r.id, r.p]));
    const after = new Map(drawn(top, session).map((r) => [r.id, r.p]));
    const scale = Math.max(0.02, ...top.before.map((r) => r.p), ...after.values());
    put(head,
      h("span", {}, "after ", h("b", {}, visible(session.tokens[at]?.text ?? "")), `, position ${at}`),
      h("span", {}, `entropy ${short(top.entropy)} nats`));
    put(list, h("div", { class: "bar-head", "aria-hidden": "true" }, h("span", {}, "token"), h("span", {}), h("span", {}, "model"), h("span", {}, "sampler")),
      top.before.map((r) => bar({
        ...r, label: visible(r.text), q: after.get(r.id) ?? 0, ghost: past ? old.get(r.id) ?? 0 : undefined, chosen: next?.id === r.id,
        title: `Go on with ${visible(r.text)} (${r.id}): ${short(100 * r.p)}% by the model, ${short(100 * (after.get(r.id) ?? 0))}% after the sampler`,
      }, { scale, pick: () => choose(top.node, r.id) })));
    last = { at, node: top.node, rows: top.before };
  }

  /** What the sampler leaves; without sampling it is the best token alone. */
  function drawn(top, session) {
    const own = session.settings_table?.[session.byId.get(top.node)?.settings];
    const settings = top.node === session.current ? session.settings : own ?? session.settings;
    return settings.do_sample === false ? top.after.slice(0, 1).map((r) => ({ ...r, p: 1 })) : top.after;
  }

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

  const load = loader({
    model, el, calm: false, keys: ["session", "selection"], empty: "No text yet: begin with a prompt.",
    fetch: () => (node() === null ? null : ask(model, "session.top", { node: node(), k: 10 }, { slot: "top" })),
    draw,
  });
  el.append(head, list, own);
  const off = watch(model, ["session", "link"], () => { own.disabled = !model.get("session"); });
  return () => [off, load.close].forEach((f) => f());
}
