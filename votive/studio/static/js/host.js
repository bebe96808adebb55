/**
 * The host of the views on the page: the store with a line to the server behind it, in the same
 * contract that notebook widgets use. Knows no view by name.
 */

import { idle } from "./ask.js";
import { Link } from "./link.js";
import { Store, notice, take } from "./state.js";

/** The store of this page; `ask` and `send` go over the line. */
export class Page extends Store {
  constructor(link) {
    super({ link: { status: "connecting" }, busy: 0, notices: [] });
    this.link = link;
    link.on("status", (status, detail) => this.set("link", { status, detail }));
    link.on("activity", (count) => this.set("busy", count));
    for (const name of ["hello", "progress", "token", "busy", "bye", "console", "transcript", "autosave"]) {
      link.on(name, (data, blobs) => this.trigger(`event:${name}`, data, blobs));
    }
  }

  ask(action, args, options) {
    return this.link.ask(action, args, options);
  }

  /** The way a notebook's model is asked; answered with "msg:custom". */
  send(message) {
    this.ask(message.do, message.args, { slot: message.slot }).then(
      (data) => this.trigger("msg:custom", { id: message.id, ok: true, data }, []),
      (error) => this.trigger("msg:custom", { id: message.id, ok: false, error }, []),
    );
  }
}

/** Where the socket is, seen from this page. */
export function socketUrl(at = location) {
  return `${at.protocol === "https:" ? "wss" : "ws"}://${at.host}/ws`;
}

/** Put a view into an element; an error in it stays in it. */
export function mount(view, model, el) {
  try {
    const end = (view.render ?? view.default?.render)({ model, el });
    return typeof end === "function" ? end : () => {};
  } catch (error) {
    el.textContent = `This view could not be shown: ${error.message}`;
    el.classList.add("failed");
    console.error(error);
    return () => {};
  }
}

/** Load what the page needs after the line has opened, and again after it came back. */
export async function refresh(model) {
  try {
    model.set("info", await model.ask("model.info", {}));
    model.set("trouble", null);
  } catch (error) {
    if (!idle(error)) model.set("trouble", `No model: ${error.message}`);
    return;
  }
  try {
    const [state, edits, debug] = await Promise.all([
      model.ask("session.state", {}), model.ask("edits.list", {}), model.ask("debug.state", {}),
    ]);
    if (state.nodes?.length) take(model, state);
    model.set("edits", edits);
    model.set("debug", debug);
  } catch (error) {
    // A room without a session is no error: it is empty.
    if (error.type !== "Missing" && !idle(error)) notice(model, "error", error.message);
  }
}

export { Link };
