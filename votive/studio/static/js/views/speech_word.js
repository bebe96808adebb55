/** The word that is chosen: its seconds, its tokens, and how much each head looks at it. */

import { ask, idle } from "../ask.js";
import { h, percent, put, visible } from "../dom.js";
import { heads } from "../draw/heads.js";
import { clock } from "../draw/time.js";

/** `play()`, `token(row)`, `head(layer, head)` and `fail(text)` are told. Gives {el, show, lock, playing}. */
export function speechWord(model, { play, token, head, fail }) {
  const about = h("div", { id: "speech-word" });
  const fields = h("div", { id: "speech-heads" });
  const note = h("p", { class: "dim small" }, "How much of what each head looks at for it lies in its span: layers down, heads across. Ringed heads give the times.");
  const shares = heads(fields, { label: "Heads: layers down, heads across", pick: head });
  const button = h("button", { type: "button", id: "speech-play-word", title: "Play what is chosen (P)", onclick: play }, "Play");
  let [last, locked] = [null, [null, null]];

  /** How much of each head's attention lies in what is chosen. */
  async function measure({ window, first, last: stop, start, end }, ringed) {
    const mine = (last = {});
    try {
      const found = await ask(model, "speech.heads", { window, first, last: stop, start, end }, { slot: "speech-heads" });
      if (mine !== last) return;
      shares.show(found.shares, ringed);
      shares.lock(...locked);
      fields.hidden = note.hidden = false;
    } catch (error) {
      if (!idle(error)) fail(error.message);
    }
  }

  return {
    el: [about, fields, note],

    /** Show what is chosen in a window {tokens}, or with null nothing; `empty` says what to do. */
    show(chosen, window, ringed, empty) {
      if (!chosen) {
        last = null;
        put(about, h("p", { class: "state empty" }, empty));
        fields.hidden = note.hidden = true;
        return;
      }
      const { first, last: stop } = chosen.word ?? chosen;
      const name = chosen.whole ? chosen.word.text : window.tokens[chosen.first].text;
      const facts = [["from", chosen.start], ["to", chosen.end], ["lasts", chosen.end - chosen.start]];
      put(about,
        h("div", { class: "row spread" }, h("b", { class: "speech-chosen" }, visible(name.trim())), button),
        h("dl", { class: "facts" }, facts.map(([term, t]) => h("div", {}, h("dt", {}, term), h("dd", { class: "num" }, clock(t))))),
        h("div", { class: "chips" }, window.tokens.slice(first, stop).map((t, i) => h("button", {
          type: "button", class: "chip", title: `Token ${t.id}`, "aria-pressed": String(!chosen.whole && first + i === chosen.first), onclick: () => token(first + i),
        }, visible(t.text), t.p === null ? null : h("span", { class: "dim num" }, ` ${percent(t.p)}`)))));
      measure(chosen, ringed);
    },

    lock(layer, one) {
      locked = [layer, one];
      shares.lock(layer, one);
    },

    playing(on) {
      button.textContent = on ? "Stop" : "Play";
    },
  };
}
