/**
 * Choosing a model: those in the folders that were allowed, recent ones, a path, a file that is dropped, a download.
 * What goes wrong is said in the dialog, which stays.
 */

import { ask, idle } from "./ask.js";
import { dialog } from "./dialogs.js";
import { bytes, h, put } from "./dom.js";
import { Rows } from "./draw/rows.js";
import { refresh } from "./host.js";

const RECENT = "votive-recent-models";
const ROOM = 1.25; // bytes of memory for a byte of weights, with what running them takes

function recent(name) {
  try {
    const known = JSON.parse(localStorage.getItem(RECENT) ?? "[]").filter((n) => typeof n === "string" && n !== name);
    if (name) localStorage.setItem(RECENT, JSON.stringify([name, ...known].slice(0, 8)));
    return name ? [name, ...known] : known;
  } catch {
    return [];
  }
}

/** Whether a model fits in the memory that is free. */
export function fit(size, memory) {
  if (!size || !memory) return null;
  const need = size * ROOM;
  if (need < memory.available) return { ok: true, text: "fits in memory" };
  return { ok: false, text: `needs about ${bytes(need)}, ${bytes(memory.available)} are free` };
}

/** The dialog; `begin` is called when a model is there and has no session yet. */
export function models(model, { begin = () => {} } = {}) {
  let [all, wanted, about, running] = [[], [], {}, null];
  const find = h("input", { type: "search", id: "model-find", placeholder: "Find a model", "aria-label": "Find a model", autocomplete: "off", oninput: () => show() });
  const list = h("div", { class: "model-list", role: "list", "aria-label": "Models" });
  const where = h("p", { class: "dim small" });
  const fault = h("p", { class: "state error", id: "model-fault", role: "alert", hidden: true });
  const told = h("div", { class: "row", id: "model-progress", role: "status", hidden: true });
  const bar = h("progress", { "aria-label": "Progress" });
  const words = h("span", { class: "small grow" });
  put(told, words, bar, h("button", { type: "button", class: "quiet", onclick: () => running?.abort() }, "Stop waiting"));
  const place = h("input", { type: "text", id: "model-name", "aria-label": "Path of a model, or its id on the Hugging Face hub", placeholder: "/path/to/model.gguf, or OWNER/NAME", autocomplete: "off", spellcheck: "false",
    onkeydown: (event) => event.key === "Enter" && open() });
  const go = h("button", { type: "button", id: "model-open", title: "Open the path", onclick: () => open() }, "Open");
  const fetch = h("button", { type: "button", id: "model-download", title: "Download the repository from the Hugging Face hub, and open it", onclick: () => download() }, "Download");
  const box = dialog("models", "Choose a model", find, list, where, h("h3", {}, "By path, or from the hub"),
    h("div", { class: "row" }, place, go, fetch), h("p", { class: "dim small" }, "Or drop a .gguf or .safetensors file anywhere on the page. A model from the hub is downloaded to this machine; nothing is sent but its name."), told, fault);
  const rows = new Rows(list, { height: 34, row: (i) => item(wanted[i]) });

  const say = (error) => {
    fault.hidden = !error;
    fault.textContent = error ?? "";
  };

  function item(m) {
    const now = m.name === model.get("info")?.name;
    const room = now ? null : fit(m.bytes, about.memory);
    return h("div", { role: "listitem" }, h("button", { type: "button", class: "file", "data-name": m.name, "aria-current": now ? "true" : null, title: [m.name, m.text, room?.text].filter(Boolean).join("\n"), onclick: () => load(m.name) },
      h("span", { class: "grow left ends" }, m.name), m.recent ? h("span", { class: "tag" }, "recent") : null, h("span", { class: "dim small" }, [m.kind, m.bytes ? bytes(m.bytes) : null].filter(Boolean).join(", ") || m.text),
      room && !room.ok ? h("span", { class: "small warn" }, "too large") : null));
  }

  function show() {
    const part = find.value.trim().toLowerCase();
    const known = recent();
    const order = (m) => (m.current ? -2 : known.includes(m.name) ? -1 : 0);
    wanted = all.filter((m) => m.name.toLowerCase().includes(part)).map((m) => ({ ...m, recent: known.includes(m.name) }))
      .sort((a, b) => order(a) - order(b) || (order(a) === -1 ? known.indexOf(a.name) - known.indexOf(b.name) : 0));
    list.style.setProperty("height", `${Math.min(Math.max(wanted.length, 1) * 34 + 4, 250)}px`);
    list.dataset.count = String(wanted.length);
    rows.show(wanted.length);
    const folders = about.folders ?? [];
    where.textContent = [wanted.length ? null : part ? "No model has this in its name." : null,
      folders.length ? `From ${folders.join(", ")}. To add a folder, start with: votive studio --models FOLDER` : null, about.memory ? `${bytes(about.memory.available)} of ${bytes(about.memory.total)} memory are free.` : null].filter(Boolean).join(" ");
  }

  /** Do something that may take long; what is told of it stands in the dialog. */
  async function doing(text, f) {
    if (running) return null;
    say(null);
    running = new AbortController();
    told.hidden = false;
    words.textContent = text;
    bar.removeAttribute("value");
    const listener = (p) => {
      words.textContent = p.total > 1 ? `${p.text[0].toUpperCase()}${p.text.slice(1)}: ${bytes(Math.round(p.done))} of ${bytes(Math.round(p.total))}` : `${text}…`;
      if (p.total > 1) [bar.max, bar.value] = [p.total, p.done];
    };
    model.on("event:progress", listener);
    try {
      return await f(running.signal);
    } catch (error) {
      if (!idle(error)) say(error.message);
      return null;
    } finally {
      model.off("event:progress", listener);
      running = null;
      told.hidden = true;
      model.set("progress", null);
    }
  }

  async function load(name) {
    const done = await doing(`Loading ${name}`, async (signal) => {
      await ask(model, "model.load", { name }, { slot: "model", signal });
      return true;
    });
    if (!done) return;
    recent(name);
    box.close();
    model.set("session", null);
    model.set("debug", null);
    model.set("selection", { node: null, position: null, layer: null, head: null, address: null });
    await refresh(model);
    if (!model.get("session")) await begin();
  }

  async function open() {
    const text = place.value.trim();
    if (!text) return say("Write the path of a model first, or choose one above.");
    const known = all.find((m) => m.name === text);
    const found = known ?? await doing("Looking for it", (signal) => ask(model, "model.locate", { path: text }, { slot: "model", signal }));
    return found ? load(found.name) : null;
  }

  async function download() {
    const text = place.value.trim().replace(/^https:\/\/huggingface\.co\//, "");
    if (!text) return say("Write the id of a repository first, such as Qwen/Qwen3-0.6B.");
    const found = await doing(`Downloading ${text}`, (signal) => ask(model, "model.download", { name: text }, { slot: "model", signal }));
    return found ? load(found.name) : null;
  }

  /** A file that was dropped: by its path where the browser tells it, else by name and size. */
  async function drop(file, path) {
    if (!box.open) await display();
    const line = (path ?? "").split(/\r?\n/).find((l) => l && !l.startsWith("#"));
    const asked = line && (line.startsWith("file:") || line.startsWith("/")) ? { path: line } : file ? { path: file.name, size: file.size } : null;
    if (!asked) return say("That is no file.");
    const found = await doing(`Looking for ${file?.name ?? line}`, (signal) => ask(model, "model.locate", asked, { slot: "model", signal }));
    return found ? load(found.name) : null;
  }

  async function fill() {
    const found = await ask(model, "model.list", {});
    all = found.models ?? [];
    about = found;
    show();
  }

  async function display() {
    say(null);
    find.value = "";
    if (!box.open) box.showModal();
    try {
      await fill();
    } catch (error) {
      if (!idle(error)) say(error.message);
    }
  }

  box.addEventListener("dragover", (event) => event.preventDefault());
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    drop(event.dataTransfer.files[0], event.dataTransfer.getData("text/uri-list") || event.dataTransfer.getData("text/plain"));
  });
  return { box, load, drop, show: display };
}
