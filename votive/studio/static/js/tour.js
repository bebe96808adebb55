/** A short tour for the first visit; it can be left at any time and shown again. */

import { h } from "./dom.js";

const STEPS = [
  ["#panel-prompt", "Write", "Begin with a prompt, then write token by token, or let the model go on. Undo goes back; Branch starts a new continuation here."],
  ["#panel-topk", "Choose", "The likeliest next tokens, by the model and after the sampler. Click one to go on with it: that makes a branch."],
  ["#panel-tree", "Go anywhere", "Everything that was written is kept as a tree. Click a node to go there; Shift-click to compare it with the current one."],
  ["#centre", "Look inside", "Stop the model inside a layer, see its values, change them. The lens shows what it would say after every layer."],
  ["#right-tabs", "See why", "Attention between tokens, the edits in force with receipts, the formula of any operator, and each action as a line of Python."],
  ["#help", "Keys", "Everything works from the keyboard. Press ? to see the keys; this tour is there too."],
];
const SEEN = "votive-tour-seen";

/** Show it when it was never seen. */
export function firstVisit(start) {
  try {
    if (!localStorage.getItem(SEEN)) start();
  } catch {
    // Without storage there is no first visit to know of.
  }
}

export function tour({ reveal = () => {} } = {}) {
  let at = 0;
  const title = h("h2", { id: "tour-title" });
  const text = h("p", {});
  const count = h("span", { class: "dim small num grow" });
  const back = h("button", { type: "button", onclick: () => go(at - 1) }, "Back");
  const next = h("button", { type: "button", class: "primary", id: "tour-next", onclick: () => (at === STEPS.length - 1 ? end() : go(at + 1)) }, "Next");
  const skip = h("button", { type: "button", class: "quiet", id: "tour-skip", onclick: () => end() }, "Skip");
  const box = h("div", { class: "tour", role: "dialog", "aria-labelledby": "tour-title", "aria-live": "polite", hidden: true, tabindex: -1,
    onkeydown: (event) => {
      if (event.key === "Escape") end();
      else if (event.key === "ArrowRight") next.click();
      else if (event.key === "ArrowLeft" && at > 0) back.click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    } }, title, text, h("div", { class: "row" }, count, skip, back, next));

  function go(i) {
    document.querySelector(".toured")?.classList.remove("toured");
    at = i;
    const [where, name, words] = STEPS[at];
    reveal(where);
    const goal = document.querySelector(where);
    goal?.classList.add("toured");
    title.textContent = name;
    text.textContent = words;
    count.textContent = `${at + 1} of ${STEPS.length}`;
    back.disabled = at === 0;
    next.textContent = at === STEPS.length - 1 ? "Done" : "Next";
    box.hidden = false;
    place(goal);
    next.focus({ preventScroll: true });
  }

  /** Beside what it speaks of, inside the window. */
  function place(goal) {
    const seen = goal?.getBoundingClientRect();
    const [w, tall, pad] = [box.offsetWidth, box.offsetHeight, 12];
    if (!seen || innerWidth < 700) {
      box.style.setProperty("left", `${Math.max(8, (innerWidth - w) / 2)}px`);
      box.style.setProperty("top", `${innerHeight - tall - 76}px`);
      return;
    }
    const right = seen.right + pad + w < innerWidth;
    const left = seen.left - pad - w > 0;
    const x = right ? seen.right + pad : left ? seen.left - pad - w : seen.left + (seen.width - w) / 2;
    const y = right || left ? seen.top : seen.top + 60;
    box.style.setProperty("left", `${Math.max(8, Math.min(innerWidth - w - 8, x))}px`);
    box.style.setProperty("top", `${Math.max(8, Math.min(innerHeight - tall - 8, y))}px`);
  }

  /** Away for now: it is about views that are not there. */
  function hide() {
    document.querySelector(".toured")?.classList.remove("toured");
    box.hidden = true;
  }

  function end() {
    hide();
    try {
      localStorage.setItem(SEEN, "1");
    } catch {
      // It is shown again next time.
    }
  }

  return { box, start: () => go(0), hide };
}
