/**
 * Views where there is no page around them: in a notebook, which asks its kernel, and in a saved
 * page, where all answers stand in the page itself. Knows no view by name.
 */

import { ask } from "./ask.js";
import { h } from "./dom.js";
import { Store, take } from "./state.js";

/** Show a view of a session in a notebook or page; gives what ends it. */
export function mountView({ model, el, render }) {
  const store = new Store({ link: { status: "open" }, notices: [], replies: model.get("replies") });
  if (model.get("selection")) store.set("selection", model.get("selection"));
  store.ask = (action, args, options) => ask(model, action, args, options);
  const said = h("p", { class: "state error", role: "status", hidden: true });
  const box = h("div");
  el.classList.add("votive", "notebook");
  el.append(said, box);
  const tell = (text) => {
    said.hidden = !text;
    said.textContent = text ?? "";
  };
  // As on the page: views are there first, and what they show comes after.
  const end = render({ model: store, el: box });
  const listener = () => {
    const last = store.get("notices").at(-1);
    tell(last?.kind === "error" ? last.text : "");
  };
  store.on("change:notices", listener);
  const renew = async () => {
    const state = await store.ask("session.state", {});
    if (state.nodes.length) take(store, state);
    store.set("edits", await store.ask("edits.list", {}));
  };
  const message = (content) => content?.event === "changed" && renew().catch((error) => tell(error.message));
  const begin = async () => {
    store.set("info", await store.ask("model.info", {}));
    if (model.get("debugger")) store.set("debug", await store.ask("debug.state", {}));
    await renew();
  };
  model.on("msg:custom", message);
  begin().catch((error) => tell(error.message));
  return () => {
    model.off("msg:custom", message);
    end?.();
    el.replaceChildren();
  };
}

/** Show a result. */
export function mountResult({ model, el, render }) {
  el.classList.add("votive", "notebook");
  const box = h("div");
  el.append(box);
  const end = render({ model, el: box });
  return () => {
    end?.();
    el.replaceChildren();
  };
}

const TYPES = { u8: Uint8Array, i32: Int32Array, f32: Float32Array, f64: Float64Array };

/** What a reply is filed under: the action and what it was asked with; `node` is always the last. */
function key(action, args = {}) {
  const told = Object.keys(args).filter((k) => k !== "node" && k !== "k").sort();
  return [action, ...told.map((k) => `${k}=${JSON.stringify(args[k])}`)].join("&");
}

function unpacked({ data, blobs }) {
  const arrays = blobs.map(({ name, dtype, shape, base64 }) => {
    const raw = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    return [name, Object.assign(new TYPES[dtype](raw.buffer), { shape })];
  });
  return { ...data, ...Object.fromEntries(arrays) };
}

/** A model for a saved page: `values` by key; `fixed` replies by action, `others` by what is asked. */
export function savedModel(values, fixed = {}, others = {}) {
  const replies = Object.fromEntries(Object.entries(fixed).map(([action, reply]) => [action, unpacked(reply)]));
  return {
    get: (name) => ({ replies, saved: true, ...values })[name], set() {}, on() {}, off() {},
    save_changes() {}, send() {},
    ask: (action, args) => {
      const found = others[key(action, args)];
      return found ? Promise.resolve(unpacked(found)) : Promise.reject(new Error("This saved page does not contain that."));
    },
  };
}
