/** Sessions that the server kept without being asked: the offer to go on with one, and a list. */

import { act, ask, idle } from "./ask.js";
import { ago, bytes, h, put } from "./dom.js";
import { notice } from "./state.js";

/** The beginning of an autosaved text. */
function title(one, length = 60) {
  const text = one.text.replace(/\s+/g, " ").trim();
  return text ? `“${text.length > length ? `${text.slice(0, length)}…` : text}”` : "without a text";
}

function facts(one) {
  return [one.tokens ? `${one.tokens} tokens` : null, ago(one.modified), one.bytes === undefined ? null : bytes(one.bytes)].filter(Boolean).join(", ");
}

/** Go on with an autosaved session; gives whether that worked. */
async function recover(model, one) {
  if (!(await act(model, "session.recover", { name: one.name }))) return false;
  model.set("debug", await ask(model, "debug.state", {}).catch(() => null));
  notice(model, "done", "Recovered. Save it under Sessions to give it a name.");
  return true;
}

/** The bar that offers what was not saved; `offer` is given what the server has kept. */
export function offers(model, el) {
  const hide = () => { el.hidden = true; };
  async function discard(one) {
    hide();
    try {
      await ask(model, "session.discard", { name: one.name });
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }
  return {
    hide,
    offer: (autosaved = []) => {
      const mine = autosaved.filter((one) => !one.model || one.model === model.get("info")?.name);
      const [one] = mine;
      el.hidden = !one;
      if (!one) return;
      const more = autosaved.length > 1 ? ` ${autosaved.length - 1} more ${autosaved.length > 2 ? "are" : "is"} under Sessions.` : "";
      put(el, h("span", { id: "recover-text" }, `A session that you did not save is still here: ${title(one)} (${facts(one)}).${more}`),
        h("button", { type: "button", id: "recover-go", title: "Go on with this session", onclick: async () => { if (await recover(model, one)) hide(); } }, "Recover"),
        h("button", { type: "button", id: "recover-discard", title: "Remove it for good", onclick: () => discard(one) }, "Discard"),
        h("button", { type: "button", id: "recover-later", title: "Keep it under Sessions", onclick: hide }, "Not now"));
    },
  };
}

/** What was kept, as a list for the dialog of sessions. */
export function autosavedList(model, { done }) {
  const list = h("ul", { class: "files", id: "autosaved" });
  const note = h("p", { class: "dim small" });
  async function fill() {
    const { on, autosaved } = await ask(model, "session.autosaved", {});
    note.textContent = on ? "Your work is autosaved every few seconds, in case the studio ends before you save." : "Autosave is off.";
    put(list, autosaved.map((one) => h("li", { class: "row" },
      h("button", { type: "button", class: "file grow", title: "Go on with this session", "data-name": one.name, onclick: async () => { if (await recover(model, one)) done(); } },
        h("span", { class: "grow left" }, title(one, 40)), h("span", { class: "dim num small" }, [one.model, facts(one)].filter(Boolean).join(", "))),
      h("button", { type: "button", class: "quiet", "aria-label": `Discard ${title(one, 20)}`, title: "Discard", onclick: () => remove(one) }, "×"))));
  }
  async function remove(one) {
    try {
      await ask(model, "session.discard", { name: one.name });
      await fill();
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }
  return { parts: [h("h3", {}, "Kept automatically"), note, list], fill };
}
