/** Each action as the line of Python that does the same, and the session as a program. */

import { ask, idle } from "../ask.js";
import { h, put } from "../dom.js";
import { notice, watch } from "../state.js";

const MOST = 500;
// What only looks, and changes nothing.
const LOOKS = /^(print\(|session\.hidden|glass\.attention_maps|maps = |votive\.explain)/;

export function render({ model, el }) {
  let lines = [];
  const list = h("ol", { class: "console mono", id: "console-lines", tabindex: 0, "aria-label": "What was done, as Python", role: "log" });
  const looks = h("input", { type: "checkbox", id: "console-looks", onchange: () => show() });
  const copyAll = h("button", { type: "button", id: "console-copy", onclick: () => copy(wanted().join("\n")) }, "Copy all");
  const script = h("button", { type: "button", id: "console-script", title: "The whole session as a program", onclick: () => program() }, "As a program");
  const code = h("pre", { class: "code", hidden: true, tabindex: 0, id: "console-program", "aria-label": "The session as a program" });

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      notice(model, "done", "Copied.");
    } catch {
      notice(model, "error", "The browser does not let this page copy; select the text and copy it by hand.");
    }
  }

  function add(line) {
    lines.push(line);
    if (lines.length > MOST) lines = lines.slice(-MOST);
    if (!looks.checked && LOOKS.test(line)) return;
    while (list.children.length >= MOST) list.firstChild.remove();
    const end = list.scrollTop + list.clientHeight >= list.scrollHeight - 30;
    list.append(item(line));
    if (end) list.scrollTop = list.scrollHeight;
  }

  const wanted = () => lines.filter((line) => looks.checked || !LOOKS.test(line));

  function show() {
    put(list, wanted().map(item));
    list.scrollTop = list.scrollHeight;
  }

  const item = (line) => h("li", {}, h("code", {}, line), h("button", { class: "quiet copy", type: "button", "aria-label": `Copy ${line}`, onclick: () => copy(line) }, "copy"));

  async function all() {
    if (model.get("link") && model.get("link").status !== "open") return;
    try {
      const found = await ask(model, "console.log", {});
      lines = (found.lines ?? []).map((l) => l.python ?? l.line ?? l).slice(-MOST);
      show();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  async function program() {
    if (!code.hidden) {
      code.hidden = true;
      list.hidden = false;
      script.textContent = "As a program";
      return;
    }
    try {
      const found = await ask(model, "session.script", {});
      code.textContent = found.text ?? found.python ?? "";
      code.hidden = false;
      list.hidden = true;
      script.textContent = "As lines";
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  const heard = (data) => add(data.line ?? data.python ?? String(data));
  model.on("event:console", heard);
  el.append(h("div", { class: "row" }, script, copyAll, h("span", { class: "grow" }), h("label", { class: "check", title: "Lines that only look at something" }, looks, "looks too")), list, code);
  const off = watch(model, ["info"], all);
  all();
  return () => {
    off();
    model.off("event:console", heard);
  };
}
