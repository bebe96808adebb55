/** A short tour for the first visit; it can be left at any time and shown again. */

import { act, ask } from "./ask.js";
import { h, percent } from "./dom.js";
import { locked, watch } from "./state.js";

// Where, what it is called, words; with `act` a button does it, and `found` tells from the page's state what came of it.
const TEXT = "The princess said to the prince that the princess said to the";
const STEPS = [
  ["#panel-prompt", "Write", "Begin with a prompt, then write token by token, or let the model go on. Undo goes back through everything; Branch starts a new continuation here."],
  ["#panel-topk", "Choose", "The likeliest next tokens, by the model and after the sampler. Click one to go on with it: that makes a branch."],
  ["#panel-tree", "Go anywhere", "Everything that was written is kept as a tree. Click a node to go there; Shift-click to compare it with the current one."],
  ["#centre", "Look inside", "This is the model, with the values of your text: the stream from left to right, and what attention and MLP of each layer add to it. A block opens when you choose it. Debugger, lens and the other tabs look at the same text.", { tab: "picture" }],
  ["#panel-prompt", "A question of your own", "Now find something out: which head copies names? Take a text in which a name comes twice; the model is to say whose turn it is.", { act: ["Use this text", ({ model }) => act(model, "session.prompt", { text: TEXT })] }],
  ["#panel-topk", "What it says", "Look for prince among the next tokens: the model has read it before, and brings it back. Something must have looked at it and copied it.", { found: ({ top }) => (top ? `prince has ${percent(top)}.` : "") }],
  ["#right", "Who looked?", "Here are all heads, by how much they look at what followed the same token before: such heads copy. The dark ones are suspects. Choose one of them.", { tab: "attention", act: ["Show all heads", () => document.getElementById("attention-heads").click()],
    found: ({ model }) => { const { layer, head } = locked(model); return head === null ? "No head is chosen yet." : `You chose head ${head} of layer ${layer}.`; } }],
  ["#panel-value", "Is it that one?", "A suspect is proved by taking it out. “From now on” offers the head that you chose: take it, and press Ablate. What changed stands below, with the next token before and after.", { tab: "debugger", found: verdict }],
  ["#panel-consequence", "Your discovery", "If prince fell, that head copies the name; if it did not, Undo, choose another one under Attention, and try again. Some names are copied by two heads. Whatever you find is yours: the Console has it as lines of Python, and Sessions saves it as a page that others can open.", { found: verdict }],
  ["#help", "Keys", "Everything works from the keyboard. Press ? to see the keys; this tour is there too."],
];

/** What ablating a head has done to the name. */
function verdict({ model, top }) {
  const heads = (model.get("edits")?.edits ?? []).filter((e) => e.heads?.length);
  if (!heads.length) return "No head is ablated yet.";
  const { at, heads: list } = heads.at(-1);
  const layer = /layers\.(\d+)/.exec(at)?.[1];
  return `Without head ${list.join(", ")} of layer ${layer}, prince has ${top === null ? "almost nothing" : percent(top)}.`;
}

const SEEN = "votive-tour-seen";

/** Show it when it was never seen. */
export function firstVisit(start) {
  try {
    if (!localStorage.getItem(SEEN)) start();
  } catch {
    // Without storage there is no first visit to know of.
  }
}

export function tour({ model, tab = () => {}, reveal = () => {} } = {}) {
  let at = 0;
  const title = h("h2", { id: "tour-title" });
  const text = h("p", {});
  const found = h("p", { class: "small found", role: "status" });
  const doing = h("button", { type: "button", id: "tour-do", hidden: true, onclick: () => STEPS[at][3].act[1]({ model }) });
  const count = h("span", { class: "dim small num grow" });
  const back = h("button", { type: "button", title: "The step before (left arrow)", onclick: () => go(at - 1) }, "Back");
  const next = h("button", { type: "button", class: "primary", id: "tour-next", title: "The next step (right arrow)", onclick: () => (at === STEPS.length - 1 ? end() : go(at + 1)) }, "Next");
  const skip = h("button", { type: "button", class: "quiet", id: "tour-skip", title: "Leave the tour; it is under the keys again (Esc)", onclick: () => end() }, "Skip");
  const box = h("div", { class: "tour", role: "dialog", "aria-labelledby": "tour-title", "aria-live": "polite", hidden: true, tabindex: -1,
    onkeydown: (event) => {
      if (event.key === "Escape") end();
      else if (event.key === "ArrowRight") next.click();
      else if (event.key === "ArrowLeft" && at > 0) back.click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    } }, title, text, h("div", { class: "row" }, doing), found, h("div", { class: "row" }, count, skip, back, next));

  function go(i) {
    document.querySelector(".toured")?.classList.remove("toured");
    at = i;
    const [where, name, words, more = {}] = STEPS[at];
    if (more.tab) tab(more.tab);
    reveal(where);
    doing.hidden = !more.act;
    doing.textContent = more.act?.[0] ?? "";
    check();
    const goal = document.querySelector(where);
    goal?.classList.add("toured");
    title.textContent = name;
    text.textContent = words;
    count.textContent = `${at + 1} of ${STEPS.length}`;
    back.disabled = at === 0;
    next.textContent = at === STEPS.length - 1 ? "Done" : "Next";
    box.hidden = false;
    check();
    place(goal);
    next.focus({ preventScroll: true });
  }

  /** What has come of a step so far, from what the page shows. */
  async function check() {
    const test = STEPS[at]?.[3]?.found;
    found.hidden = !test;
    if (!test || box.hidden) return;
    let top = null;
    try {
      const session = model.get("session");
      const reply = session ? await ask(model, "session.top", { node: session.current, k: 100 }, { slot: "tour" }) : null;
      top = reply?.before.find((t) => t.text.trim() === "prince")?.p ?? null;
    } catch {
      return; // it is told elsewhere
    }
    found.textContent = test({ model, top });
  }
  if (model) watch(model, ["session", "edits", "selection"], () => check());

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
