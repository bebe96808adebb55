/** Keyboard shortcuts of the page. Knows names of actions only. */

import { h, put } from "./dom.js";

/** [keys as told, what it does, test, name, argument] */
const KEYS = [
  ["F8", "Debugger: continue, or start", (e) => e.key === "F8" && !e.shiftKey, "debug", "debug.run"],
  ["F10", "Step over", (e) => e.key === "F10" && !e.shiftKey, "debug", "debug.over"],
  ["F11", "Step into", (e) => e.key === "F11" && !e.shiftKey, "debug", "debug.step"],
  ["Shift F11", "Step out", (e) => e.key === "F11" && e.shiftKey, "debug", "debug.out"],
  ["Shift F10", "Step back", (e) => e.key === "F10" && e.shiftKey, "debug", "debug.back"],
  ["Ctrl Z", "Undo", (e) => mod(e) && !e.shiftKey && e.key.toLowerCase() === "z", "undo"],
  ["Ctrl Y", "Redo", (e) => mod(e) && (e.key.toLowerCase() === "y" || (e.shiftKey && e.key.toLowerCase() === "z")), "redo"],
  ["S", "Write one token", (e) => plain(e, "s"), "step"],
  ["G", "Generate, or stop", (e) => plain(e, "g"), "generate"],
  ["B", "Branch here", (e) => plain(e, "b"), "fork"],
  ["P", "Go to the prompt", (e) => plain(e, "p"), "prompt"],
  ["O", "Picture of the model", (e) => plain(e, "o"), "tab", "picture"],
  ["L", "Logit lens", (e) => plain(e, "l"), "tab", "lens"],
  ["D", "Debugger", (e) => plain(e, "d"), "tab", "debugger"],
  ["Y", "Laboratory", (e) => plain(e, "y"), "tab", "laboratory"],
  ["A", "Attention", (e) => plain(e, "a"), "tab", "attention"],
  ["N", "Statistics", (e) => plain(e, "n"), "tab", "layers"],
  ["M", "Profile", (e) => plain(e, "m"), "tab", "profile"],
  ["E", "Edits", (e) => plain(e, "e"), "tab", "edits"],
  ["X", "Explain", (e) => plain(e, "x"), "tab", "explain"],
  ["C", "Console", (e) => plain(e, "c"), "tab", "console"],
  [", .", "Token before, token after", (e) => plain(e, ","), "token", -1],
  [null, null, (e) => plain(e, "."), "token", 1],
  ["[ ]", "Layer before, layer after", (e) => plain(e, "["), "layer", -1],
  [null, null, (e) => plain(e, "]"), "layer", 1],
  ["W", "Widen the right column", (e) => plain(e, "w"), "widen"],
  ["T", "Light or dark", (e) => plain(e, "t"), "theme"],
  ["Esc", "Unlock the selection", (e) => e.key === "Escape", "unlock"],
  ["?", "Shortcuts", (e) => e.key === "?", "help"],
];

// What keys do where a model has a view of its own: only these.
const OTHERS = {
  vision: { theme: "Light or dark", help: "Shortcuts" },
  speech: {
    generate: "Transcribe, or stop", prompt: "Play what is chosen, or stop", token: "Word before, word after", layer: "Layer before, layer after",
    unlock: "Choose no word", theme: "Light or dark", help: "Shortcuts",
  },
};

const mod = (e) => e.ctrlKey || e.metaKey;
const plain = (e, key) => e.key.toLowerCase() === key && !mod(e) && !e.altKey && !e.shiftKey;

/** Whether what is typed belongs to a field. */
function typing(e) {
  const at = e.target;
  return at.matches?.("textarea, select, [contenteditable]") || (at.matches?.("input") && !["checkbox", "range", "button"].includes(at.type));
}

/** Listen on the document; `actions()` gives the functions by name. */
export function listen(actions) {
  const listener = (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const found = KEYS.find(([, , test]) => test(event));
    if (!found) return;
    const function_key = /^F\d+$/.test(event.key);
    if (typing(event) && !function_key) return;
    const run = actions()[found[3]];
    if (!run) return;
    event.preventDefault();
    run(found[4]);
  };
  document.addEventListener("keydown", listener);
  return () => document.removeEventListener("keydown", listener);
}

/** The dialog that lists them; `kind()` tells which view there is, if not that of texts. */
export function help(kind = () => undefined) {
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => box.close() }, "×");
  const list = h("dl", { class: "shortcuts" });
  const note = h("p", { class: "dim small" });
  const fill = () => {
    const own = OTHERS[kind()];
    put(list, KEYS.filter(([keys, , , name]) => keys && (!own || own[name])).map(([keys, text, , name]) => h("div", {}, h("dt", {}, keys.split(" ").map((k) => h("kbd", {}, k))), h("dd", {}, own?.[name] ?? text))));
    note.textContent = kind() === "speech" ? "In the mels and the map: arrows go through words and tokens, Enter plays, + and − zoom, 0 shows all."
      : kind() ? "" : "In heat maps: arrows move, Enter locks, + and − zoom, 0 shows all. In the module tree: arrows move and fold, space sets a breakpoint.";
  };
  fill();
  const box = h("dialog", { id: "shortcuts", "aria-label": "Shortcuts" },
    h("div", { class: "row spread dialog-head" }, h("h2", {}, "Shortcuts"), close),
    list, note);
  box.addEventListener("click", (event) => event.target === box && box.close());
  return { box, show: () => { fill(); box.showModal(); } };
}
