/**
 * Asking for an action from inside a view, on the page and in a notebook alike.
 *
 * The page's model has a method `ask`. A notebook's model is asked with `send` and answers with
 * "msg:custom"; and where there is no kernel, the answers stand in the model under "replies".
 */

import { Cancelled, Lost } from "./link.js";
import { notice, take } from "./state.js";

let last = 0;

/** The reply to an action: its data, with blobs beside them. */
export function ask(model, action, args = {}, options = {}) {
  const known = model.get("replies")?.[action];
  if (known) return Promise.resolve(known);
  if (model.ask) return model.ask(action, args, options);
  const id = `${Date.now()}-${(last += 1)}`;
  return new Promise((resolve, reject) => {
    const listener = (message, buffers = []) => {
      if (message?.id !== id) return;
      model.off("msg:custom", listener);
      if (message.ok === false) reject(new Error(message.error?.message ?? "failed"));
      else resolve({ ...message.data, ...named(message.blobs, buffers) });
    };
    model.on("msg:custom", listener);
    model.send({ id, do: action, args, slot: options.slot ?? null });
  });
}

const TYPES = { u8: Uint8Array, f32: Float32Array, i32: Int32Array, f64: Float64Array };

function named(blobs = [], buffers) {
  return Object.fromEntries(blobs.map((blob, i) => {
    const raw = buffers[i].buffer ? new Uint8Array(buffers[i].buffer, buffers[i].byteOffset,
      buffers[i].byteLength).slice().buffer : buffers[i];
    const values = new TYPES[blob.dtype](raw);
    values.shape = blob.shape;
    return [blob.name, values];
  }));
}

/** Whether an error says only that nobody waits for the answer any more. */
export function idle(error) {
  return error instanceof Cancelled || error instanceof Lost;
}

/** Do an action of the session and take over the state it gives; tells errors; gives the reply. */
export async function act(model, action, args = {}, options = {}) {
  try {
    const reply = await ask(model, action, args, options);
    if (Array.isArray(reply.nodes)) take(model, reply);
    else if (reply.state?.nodes) take(model, reply.state);
    else take(model, await ask(model, "session.state", {}));
    return reply;
  } catch (error) {
    if (!idle(error)) notice(model, "error", error.message, { address: error.address });
    return null;
  }
}

/**
 * Load data for a view when it can be seen and something it depends on has changed.
 *
 * `fetch()` gives a promise (or null when there is nothing to show), `draw(data)` shows it. While
 * it waits, `el` is busy; an error is shown in it with a button that tries again. A `calm` view
 * waits while tokens are generated, and looks at the text when it is done. `appears` is called when
 * it comes into view.
 */
export function loader({ model, el, keys, fetch, draw, empty = "Nothing to show yet.", calm = true, appears = () => {} }) {
  let [seen, stale, ticket, delay, last] = [false, true, 0, null, 0];
  const note = document.createElement("div");
  note.className = "state";
  note.setAttribute("role", "status");
  note.hidden = true;
  el.prepend(note);
  const say = (text, kind = "", again = false) => {
    note.hidden = !text;
    note.className = `state ${kind}`;
    note.replaceChildren(text ?? "");
    if (again) {
      const button = document.createElement("button");
      button.textContent = "Try again";
      button.addEventListener("click", () => load());
      note.append(button);
    }
    el.classList.toggle("blank", Boolean(text));
  };
  async function load() {
    stale = false;
    last = performance.now();
    const mine = (ticket += 1);
    let promise;
    try {
      promise = fetch();
    } catch (error) {
      promise = Promise.reject(error);
    }
    if (promise === null || promise === undefined) {
      const loading = model.get("link")?.status === "open" && !model.get("info");
      say(loading ? "The model is being loaded." : typeof empty === "function" ? empty() : empty, "empty");
      el.removeAttribute("aria-busy");
      return;
    }
    el.setAttribute("aria-busy", "true");
    try {
      const data = await promise;
      if (mine !== ticket) return;
      say(null);
      draw(data);
    } catch (error) {
      if (mine !== ticket) return;
      if (idle(error)) stale = true;
      else say(error.message, "error", true);
    } finally {
      if (mine === ticket) el.removeAttribute("aria-busy");
    }
  }
  const touch = () => {
    stale = true;
    clearTimeout(delay);
    if (calm && model.get("generating")) return;
    // One load for a burst of changes; a change that comes alone is not made to wait.
    if (seen) delay = setTimeout(() => seen && stale && load(), performance.now() - last > 120 ? 0 : 40);
  };
  const stop = [...keys, "generating"].map((key) => {
    model.on(`change:${key}`, touch);
    return () => model.off(`change:${key}`, touch);
  });
  const watcher = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (seen) appears();
    if (seen && stale && !(calm && model.get("generating"))) load();
  });
  watcher.observe(el);
  const close = () => {
    watcher.disconnect();
    clearTimeout(delay);
    ticket += 1;
    stop.forEach((f) => f());
  };
  return { reload: touch, close };
}
