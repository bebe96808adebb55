/** Sessions on disk, and models to choose from: two dialogs. The server decides the folder. */

import { act, ask, idle } from "./ask.js";
import { ago, bytes, h, put } from "./dom.js";
import { refresh } from "./host.js";
import { autosavedList } from "./recover.js";
import { notice } from "./state.js";

/** A dialog that is opened with `show`. */
function dialog(id, title, ...children) {
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => box.close() }, "×");
  const box = h("dialog", { id, "aria-label": title }, h("div", { class: "row spread dialog-head" }, h("h2", {}, title), close), ...children);
  box.addEventListener("click", (event) => event.target === box && box.close());
  return box;
}

/** Saving and opening sessions. */
export function sessions(model) {
  const name = h("input", { type: "text", id: "save-name", value: "session", maxlength: 80, pattern: "[\\w.\\-]{1,80}", "aria-label": "Name", autocomplete: "off" });
  const list = h("ul", { class: "files" });
  const save = h("button", { type: "button", class: "primary", id: "save-session", onclick: () => keep() }, "Save");
  const autosaved = autosavedList(model, { done: () => box.close() });
  const box = dialog("sessions", "Sessions",
    h("p", { class: "dim small" }, "A session is the whole tree with its settings and edits. It is kept in the studio’s folder."),
    h("h3", {}, "Save as"), h("div", { class: "row" }, name, save), h("h3", {}, "Open"), list, ...autosaved.parts);

  async function keep() {
    try {
      const reply = await ask(model, "session.save", { name: name.value });
      notice(model, "done", `Saved as ${reply.name ?? name.value}.`);
      await fill();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  async function open(file) {
    if (await act(model, "session.open", { name: file })) {
      model.set("debug", await ask(model, "debug.state", {}).catch(() => null));
      notice(model, "done", `Opened ${file}.`);
      box.close();
    }
  }

  async function fill() {
    await autosaved.fill();
    const { files = [] } = await ask(model, "session.files", {});
    put(list, files.length ? files.map((f) => h("li", {}, h("button", { type: "button", class: "file", "data-name": f.name ?? f, onclick: () => open(f.name ?? f) },
      h("span", { class: "grow left" }, f.name ?? f), h("span", { class: "dim num small" }, [f.modified ? ago(f.modified) : null, f.bytes === undefined ? null : bytes(f.bytes)].filter(Boolean).join(", "))))) : h("li", { class: "dim" }, "No session was saved yet."));
  }

  return { box, show: () => { save.disabled = !model.get("session"); box.showModal(); fill().catch((e) => notice(model, "error", e.message)); } };
}

/** Choosing a model; `begin` is called when it is there and has no session yet. */
export function models(model, { begin = () => {} } = {}) {
  const list = h("ul", { class: "files" });
  const name = h("input", { type: "text", id: "model-name", "aria-label": "Name of a model", placeholder: "name of a model", autocomplete: "off", onkeydown: (event) => event.key === "Enter" && name.value && load(name.value) });
  const box = dialog("models", "Model", list, h("div", { class: "row" }, name, h("button", { type: "button", onclick: () => name.value && load(name.value) }, "Load")));

  async function load(which) {
    box.close();
    model.set("progress", { text: `Loading ${which}`, done: 0, total: 0 });
    try {
      await ask(model, "model.load", { name: which }, { slot: "model" });
      model.set("session", null);
      model.set("debug", null);
      model.set("selection", { node: null, position: null, layer: null, head: null, address: null });
      await refresh(model);
      if (!model.get("session")) await begin();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
    model.set("progress", null);
  }

  async function fill() {
    const { models: found = [] } = await ask(model, "model.list", {});
    const now = model.get("info")?.name;
    put(list, found.map((m) => h("li", {}, h("button", { type: "button", class: "file", "data-name": m.name ?? m, "aria-current": (m.name ?? m) === now ? "true" : null, onclick: () => load(m.name ?? m) },
      h("span", { class: "grow left" }, m.name ?? m), h("span", { class: "dim small" }, m.text ?? m.where ?? "")))));
  }

  return { box, load, show: () => { box.showModal(); fill().catch((e) => notice(model, "error", e.message)); } };
}
