/** Each action as the line of Python that does the same, and the session as a program. */

import { ask, idle } from "../ask.js";
import { h, throttled } from "../dom.js";
import { Rows } from "../draw/rows.js";
import { notice, watch } from "../state.js";

const [MOST, LINE] = [2000, 24];
// What only looks, and changes nothing.
const LOOKS = /^(print\(|session\.hidden|glass\.attention_maps|maps = |with glass\.|votive\.explain)/;

export function render({ model, el }) {
  let [lines, wanted] = [[], []];
  const list = h("div", { class: "console mono", id: "console-lines", tabindex: 0, "aria-label": "What was done, as Python", role: "log", "aria-live": "off" });
  const looks = h("input", { type: "checkbox", id: "console-looks", onchange: () => show() });
  const copyAll = h("button", { type: "button", id: "console-copy", title: "Copy all lines", onclick: () => copy(wanted.join("\n")) }, "Copy all");
  const script = h("button", { type: "button", id: "console-script", title: "The whole session as a program", onclick: () => program() }, "As a program");
  const code = h("pre", { class: "code", hidden: true, tabindex: 0, id: "console-program", "aria-label": "The session as a program" });
  const rows = new Rows(list, { height: LINE, row: (i) => item(wanted[i], i) });

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      notice(model, "done", "Copied.");
    } catch {
      notice(model, "error", "The browser does not allow this page to copy; select the text and copy it by hand.");
    }
  }

  function show() {
    const end = list.scrollTop + list.clientHeight >= list.scrollHeight - 2 * LINE;
    wanted = lines.filter((line) => looks.checked || !LOOKS.test(line));
    list.dataset.count = String(wanted.length);
    rows.show(wanted.length);
    if (end) rows.reveal(wanted.length - 1);
  }

  const item = (line, i) => h("div", { class: "console-row" }, h("span", { class: "line-number dim", "aria-hidden": "true" }, String(i + 1)), h("code", { title: line }, line),
    h("button", { class: "quiet copy", type: "button", title: "Copy this line", "aria-label": `Copy ${line}`, onclick: () => copy(line) }, "copy"));

  async function all() {
    if (model.get("link") && model.get("link").status !== "open") return;
    try {
      const found = await ask(model, "console.log", {});
      lines = (found.lines ?? []).map((l) => l.python ?? l.line ?? l).slice(-MOST);
      show();
      rows.reveal(wanted.length - 1);
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

  const later = throttled(show);
  const listener = (data) => {
    lines.push(data.line ?? data.python ?? String(data));
    if (lines.length > MOST) lines = lines.slice(-MOST);
    later();
  };
  model.on("event:console", listener);
  el.append(h("div", { class: "row" }, script, copyAll, h("span", { class: "grow" }), h("label", { class: "check", title: "Lines that only look at something" }, looks, "looks too")), list, code);
  const off = watch(model, ["info"], all);
  all();
  return () => {
    off();
    rows.close();
    model.off("event:console", listener);
  };
}
