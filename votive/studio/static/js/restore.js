/** What a page showed before it was loaded again: tabs, what was locked, counts. Kept for the tab of the browser. */

import { locked, select, watch } from "./state.js";

const KEY = "votive-shown";
const FIELDS = ["auto-count", "lens-target", "lens-shade", "own-token", "chat-text", "chat-system", "picture-stage"];

/** Keep what is shown, and give {restore}; `tab(name)`, `column(name)` and `write(as)` show it again. */
export function remembered(model, { tab, column, write }) {
  let [before, ready] = [null, false];
  try {
    before = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  } catch { /* there is none */ }

  function keep() {
    if (!ready) return;
    const { position, layer, head, address } = locked(model);
    const fields = Object.fromEntries(FIELDS.map((id) => [id, document.getElementById(id)?.value]).filter(([, v]) => v));
    const tabs = [...document.querySelectorAll("#centre-tabs [aria-selected=true], #right-tabs [aria-selected=true]")].map((t) => t.id.replace("tab-", ""));
    try {
      if (sessionStorage.getItem("votive-workspace") === null) return; // it was cleared, and is to stay so
      sessionStorage.setItem(KEY, JSON.stringify({
        model: model.get("info")?.name, selection: { position, layer, head, address }, fields, tabs, column: document.body.dataset.column,
        chat: document.getElementById("as-chat").getAttribute("aria-pressed") === "true", scroll: document.querySelector("main").scrollTop,
      }));
    } catch { /* a private window */ }
  }
  window.addEventListener("pagehide", keep);
  for (const kind of ["change", "click", "keyup"]) document.addEventListener(kind, () => setTimeout(keep, 0));
  watch(model, ["selection"], keep);

  /** Once, when the session is there again. */
  function restore() {
    if (ready) return;
    ready = true;
    if (!before || before.model !== model.get("info")?.name || !model.get("session")) return;
    for (const [id, value] of Object.entries(before.fields ?? {})) {
      const field = document.getElementById(id);
      if (!field || field.value === value) continue;
      field.value = value;
      if (["lens-target", "lens-shade"].includes(id)) field.dispatchEvent(new Event("change"));
    }
    const { position, layer, head, address } = before.selection ?? {};
    const count = model.get("session").tokens.length;
    select(model, { position: position !== null && position < count ? position : null, layer: layer ?? null, head: head ?? null, ...(address ? { address } : {}) });
    (before.tabs ?? []).forEach((name) => tab(name));
    if (before.chat) write("chat");
    if (before.column) column(before.column);
    document.querySelector("main").scrollTop = before.scroll ?? 0;
  }
  return { restore };
}
