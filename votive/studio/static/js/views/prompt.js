/** The prompt, and the buttons that write on: step, generate, stop, undo, redo, branch. */

import { act, ask, idle } from "../ask.js";
import { h } from "../dom.js";
import { notice, take, watch } from "../state.js";

export function render({ model, el }) {
  const text = h("textarea", {
    id: "prompt-text", class: "prompt-text", rows: 3, spellcheck: "false", autocomplete: "off",
    placeholder: "Once upon a time", "aria-label": "Prompt",
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) begin();
    },
  });
  const start = h("button", { class: "primary", type: "button", id: "begin", title: "Begin with this prompt (Ctrl-Enter)", onclick: () => begin() }, "Begin");
  const step = h("button", { type: "button", id: "step-token", title: "Generate one token (S)", onclick: () => act(model, "session.step", { n: 1 }) }, "Step");
  const count = h("input", { type: "number", id: "auto-count", min: 1, max: 2048, value: 24, title: "How many tokens to generate", "aria-label": "How many tokens to generate" });
  const auto = h("button", { type: "button", id: "generate", title: "Generate tokens (G); press again to stop", onclick: () => generate() }, "Generate");
  const undo = h("button", { type: "button", id: "undo", title: "Undo (Ctrl-Z)", onclick: () => act(model, "session.undo") }, "Undo");
  const redo = h("button", { type: "button", id: "redo", title: "Redo (Ctrl-Y)", onclick: () => act(model, "session.redo") }, "Redo");
  const branch = h("button", { type: "button", id: "branch", title: "Start a new branch here (B)", onclick: () => fork() }, "Branch");
  const spoken = h("div", { class: "said", role: "status", "aria-live": "polite" });
  const state = h("div", { class: "dim small rate", id: "session-line" });
  let running = null;

  async function begin() {
    const value = text.value || text.placeholder;
    text.value = value;
    const first = !model.get("session");
    await act(model, first ? "session.new" : "session.prompt", first ? { prompt: value } : { text: value });
  }

  async function fork() {
    const position = model.get("selection")?.position ?? null;
    const token = position === null ? null : model.get("session")?.tokens[position];
    const node = token && token.node !== model.get("session").current ? token.node : undefined;
    if (await act(model, "session.branch", node === undefined ? {} : { node })) {
      const greedy = model.get("session")?.settings?.do_sample === false;
      notice(model, greedy ? "note" : "done", greedy
        ? "New branch. Without sampling it repeats the same tokens; turn sampling on, or choose a token."
        : "New branch: from here on, tokens are drawn afresh.");
    }
  }

  async function generate() {
    if (running) {
      running.abort();
      return;
    }
    running = new AbortController();
    model.set("live", null);
    model.set("generating", true);
    try {
      const reply = await ask(model, "session.auto", { max_new_tokens: Number(count.value) || 24 }, { slot: "auto", signal: running.signal });
      if (reply.nodes) take(model, reply);
      if (reply.ended === "context") notice(model, "note", `The text has reached the model’s context length of ${model.get("info")?.context} tokens. Undo, or go to an earlier token.`);
      if (reply.ended === "end") notice(model, "note", "The model has ended the text here, with its end token.");
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
    running = null;
    model.set("generating", false);
    try {
      take(model, await ask(model, "session.state", {}));
      const made = model.get("session").tokens.filter((t) => !t.prompt).map((t) => t.text).join("");
      spoken.textContent = `Generated: ${made.slice(-200)}`;
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    }
  }

  function update() {
    const session = model.get("session");
    const lost = model.get("link")?.status !== "open" && model.get("link") !== undefined;
    const busy = Boolean(model.get("generating"));
    auto.textContent = busy ? "Stop" : "Generate";
    auto.classList.toggle("stopping", busy);
    auto.disabled = lost || !session;
    start.disabled = lost || busy || !model.get("info");
    step.disabled = branch.disabled = lost || busy || !session;
    undo.disabled = lost || busy || !session?.undo;
    redo.disabled = lost || busy || !session?.redo;
    const context = model.get("info")?.context;
    const live = busy ? model.get("live") : null;
    state.textContent = !session ? "" : live ? `${live.done} of ${live.total} tokens${live.rate ? `, ${live.rate.toFixed(live.rate < 10 ? 1 : 0)} tokens/s` : ""}` : `${session.tokens.length}${context ? ` of ${context}` : ""} tokens`;
    state.title = context ? `The model reads ${context} tokens in all: its context` : "";
    if (session && document.activeElement !== text) {
      text.value = session.tokens.filter((t) => t.prompt).map((t) => t.text).join("") || text.value;
    }
  }

  el.append(
    h("div", { class: "prompt-box" }, text, h("div", { class: "row" }, start, undo, redo, h("span", { class: "grow" }), state)),
    h("div", { class: "row tools", role: "toolbar", "aria-label": "Writing" },
      step, auto, count, h("span", { class: "grow" }), branch), spoken,
  );
  model.actions = { ...model.actions, begin, generate, fork, step: () => !step.disabled && step.click(), undo: () => !undo.disabled && undo.click(), redo: () => !redo.disabled && redo.click() };
  const off = watch(model, ["session", "link", "info", "generating", "live"], update);
  update();
  return off;
}
