/** The dialog of sessions on disk; the server decides the folder. */

import { act, ask, idle } from "./ask.js";
import { ago, bytes, h, put } from "./dom.js";
import { autosavedList } from "./recover.js";
import { notice } from "./state.js";

/** A dialog that is opened with `show`. */
export function dialog(id, title, ...children) {
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => box.close() }, "×");
  const box = h("dialog", { id, "aria-label": title }, h("div", { class: "row spread dialog-head" }, h("h2", {}, title), close), ...children);
  box.addEventListener("click", (event) => event.target === box && box.close());
  return box;
}

/** Saving and opening sessions. */
export function sessions(model) {
  const name = h("input", { type: "text", id: "save-name", value: "session", maxlength: 80, pattern: "[\\w.\\-]{1,80}", "aria-label": "Name", autocomplete: "off" });
  const list = h("ul", { class: "files" });
  const save = h("button", { type: "button", class: "primary", id: "save-session", title: "Write the session into the studio’s folder", onclick: () => keep() }, "Save");
  const autosaved = autosavedList(model, { done: () => box.close() });
  const box = dialog("sessions", "Sessions",
    h("p", { class: "dim small" }, "A session is the whole tree with its settings and edits. It is kept in the studio’s folder."),
    h("h3", {}, "Save as"), h("div", { class: "row" }, name, save), h("h3", {}, "Open"), list, ...autosaved.parts);

  const share = h("button", { type: "button", id: "share-session", title: "One file with the text, its branches, lens and attention, that opens in any browser without a server", onclick: () => give() }, "Save as a page");
  const fault = h("p", { class: "state error", role: "alert", hidden: true });
  box.append(h("h3", {}, "Share"), h("div", { class: "row" }, share, h("span", { class: "dim small" }, "A single file to send to others; it needs no server and no network.")), fault);

  async function give() {
    fault.hidden = true;
    share.disabled = true;
    try {
      const found = await ask(model, "share.page", {}, { slot: "share" });
      const link = h("a", { href: URL.createObjectURL(new Blob([found.page], { type: "text/html" })), download: found.name });
      link.click();
      URL.revokeObjectURL(link.href);
      notice(model, "done", `Saved as ${found.name}, ${bytes(found.bytes)}.`);
    } catch (error) {
      if (!idle(error)) [fault.hidden, fault.textContent] = [false, error.message];
    }
    share.disabled = !model.get("session");
  }

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
    put(list, files.length ? files.map((f) => h("li", {}, h("button", { type: "button", class: "file", title: `Open ${f.name ?? f}`, "data-name": f.name ?? f, onclick: () => open(f.name ?? f) },
      h("span", { class: "grow left" }, f.name ?? f), h("span", { class: "dim num small" }, [f.modified ? ago(f.modified) : null, f.bytes === undefined ? null : bytes(f.bytes)].filter(Boolean).join(", "))))) : h("li", { class: "dim" }, "No session was saved yet."));
  }

  return { box, show: () => { save.disabled = share.disabled = !model.get("session"); box.showModal(); fill().catch((e) => notice(model, "error", e.message)); } };
}
