/** The text of a sound: tokens while they are written, then words that can be chosen. */

import { h, percent, put, reveal } from "../dom.js";
import { clock } from "../draw/time.js";

/** How dark a token is for being unlikely: 0.1 % and less is darkest. */
function doubt(p) {
  return (p ? Math.max(0, Math.min(1, -Math.log10(p) / 3)) : 0).toFixed(3);
}

/** What is status under a text. */
function summary(state, names) {
  if (!state?.done) return "";
  const count = state.windows.reduce((n, w) => n + w.words.length, 0);
  if (state.stopped) return `Stopped; ${count ? "the windows that were whole are here" : "no window was whole yet"}.`;
  if (!count) return "Nothing was said in it.";
  const name = names.find(([code]) => code === state.language)?.[1];
  const sure = state.sure ? `, ${percent(state.sure)} sure` : "";
  const into = state.task === "translate" ? ", put into English: the times of a translation are a guess" : "";
  return `${name ? `${name}${sure}${into}. ` : ""}${count} ${count === 1 ? "word" : "words"}.`;
}

/** `pick(word, window)`, `step(by)` and `enter()` are status. Gives {el, begin, hear, write, mark}. */
export function speechText({ pick, step, enter }) {
  const text = h("div", { class: "speech-text", id: "speech-text", role: "listbox", "aria-label": "Words", hidden: true });
  const status = h("p", { class: "dim small", role: "status", id: "speech-status" });
  const key = h("div", { class: "key-line small dim", hidden: true }, h("span", { class: "swatch unlikely", "aria-hidden": "true" }),
    h("span", { title: "A darker word was less probable: plain is near 100 %, the darkest 0.1 % and less" }, "unlikely"));
  let shown = new Map(); // words by what shows them

  text.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (by) step(by);
    else if (event.key === "Enter" || event.key === " ") enter();
    else return;
    event.preventDefault();
  });

  const option = (word, window, first) => {
    const out = h("span", {
      class: "speech-word", role: "option", tabindex: first ? 0 : -1, "aria-selected": "false", style: { "--p": doubt(word.p) },
      title: `${clock(word.start)} to ${clock(word.end)}, ${percent(word.p)}`, onclick: () => pick(word, window),
    }, word.text.trim());
    shown.set(word, out);
    return out;
  };

  return {
    el: [text, status, key],

    /** An empty text that is about to be written. */
    begin() {
      put(text);
      shown = new Map();
      text.hidden = key.hidden = false;
      text.classList.add("live");
      status.textContent = "Listening…";
    },

    /** A token that was just chosen; one with number 0 begins its window's text anew. */
    hear(token) {
      if (token.index === 0) {
        text.querySelectorAll(`[data-start="${token.start}"]`).forEach((old) => old.remove());
        status.textContent = token.temperature ? `That transcript was poor; trying again at temperature ${token.temperature}.` : "Listening…";
      }
      const at = { "data-start": token.start };
      if (token.time !== null) text.append(h("span", { class: "speech-time num", ...at }, clock(token.time, 1)));
      else if (token.text) text.append(h("span", { class: "speech-token", ...at, title: percent(token.p), style: { "--p": doubt(token.p) } }, token.text));
      text.scrollTop = text.scrollHeight;
    },

    /** The words of a state; `names` are those of languages. */
    write(state, names) {
      const windows = state?.windows ?? [];
      shown = new Map();
      text.classList.remove("live");
      put(text, windows.map((w, k) => h("p", { role: "presentation" },
        windows.length > 1 ? h("span", { class: "speech-time num" }, clock(w.start, 1)) : null,
        w.words.map((word, i) => [word.text.startsWith(" ") && i ? " " : "", option(word, k, !shown.size)]))));
      status.textContent = summary(state, names);
      key.hidden = text.hidden = !shown.size;
    },

    /** Mark a word, or with null none; the focus stays in the text if it was there. */
    mark(word) {
      const within = text.contains(document.activeElement);
      for (const [one, el] of shown) {
        el.setAttribute("aria-selected", String(one === word));
        if (word) el.tabIndex = one === word ? 0 : -1;
      }
      const found = shown.get(word);
      reveal(text, found);
      if (found && within) found.focus({ preventScroll: true });
    },
  };
}
