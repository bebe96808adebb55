/** A conversation in the model's own template; each turn is a prompt of the session, so all other views look at it. */

import { ask, idle } from "../ask.js";
import { h, put, throttled } from "../dom.js";
import { take, watch } from "../state.js";

export function render({ model, el }) {
  let [messages, template] = [[], null];
  const list = h("div", { class: "chat-list", role: "log", "aria-label": "Conversation", tabindex: 0 });
  const empty = h("p", { class: "state empty small" });
  const fault = h("p", { class: "state error small", role: "alert", hidden: true });
  const system = h("input", { type: "text", id: "chat-system", placeholder: "What the model should be like (optional)", "aria-label": "System message", title: "A message that stands before the conversation", autocomplete: "off" });
  const box = h("textarea", { id: "chat-text", rows: 2, placeholder: "Write a message", "aria-label": "Message", title: "Enter sends; Shift-Enter begins a new line", onkeydown: (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    send();
  } });
  const button = h("button", { type: "button", class: "primary", id: "chat-send", title: "Send (Enter)", onclick: () => send() }, "Send");

  function draw() {
    put(list, messages.filter((m) => m.role !== "system").map((m) => h("div", { class: `message ${m.role === "user" ? "mine" : "theirs"}` }, h("span", { class: "said" }, m.role === "user" ? "You: " : "The model: "), m.content)));
    list.hidden = !messages.length;
    list.scrollTop = list.scrollHeight;
    system.hidden = messages.length > 0 || template === false;
    box.hidden = button.hidden = template === false;
    empty.hidden = template !== false && messages.length > 0;
    empty.textContent = template === false ? `${model.get("info")?.name ?? "This model"} has no chat template: it continues texts. Write a prompt instead, or choose a chat model by the button with the model’s name above.` : "Write a message; the model answers in its own template. The whole conversation is the text that all views look at.";
    button.disabled = box.disabled = Boolean(model.get("generating")) || !model.get("session");
  }

  async function renew() {
    if (!model.get("info") || (model.get("link") && model.get("link").status !== "open")) return;
    try {
      const found = await ask(model, "chat.state", {}, { slot: "chat-state" });
      [messages, template] = [found.messages, found.template];
      draw();
    } catch (error) {
      if (!idle(error)) tell(error.message);
    }
  }

  function tell(text) {
    fault.hidden = !text;
    fault.textContent = text ?? "";
  }

  async function send() {
    const text = box.value.trim();
    if (!text || button.disabled) return;
    tell(null);
    try {
      const reply = await ask(model, "chat.say", { text, ...(system.value && !messages.length ? { system: system.value } : {}) });
      box.value = "";
      take(model, reply);
      messages = reply.messages;
      draw();
      await model.actions?.generate?.();
    } catch (error) {
      if (!idle(error)) tell(error.message);
    }
  }

  // While the answer is written it grows at the end of the list.
  const grow = throttled(() => {
    if (!model.get("generating")) return renew();
    const made = model.get("session")?.tokens.filter((t) => !t.prompt).map((t) => t.text).join("") ?? "";
    const said = messages.filter((m, i) => m.role !== "assistant" || i < messages.length - 1);
    if (said.length && el.offsetParent !== null) {
      messages = [...said, { role: "assistant", content: made }];
      draw();
    }
    return null;
  });

  el.append(empty, list, system, h("div", { class: "chat-box" }, box, button), fault);
  const off = watch(model, ["session", "generating", "info"], grow);
  renew();
  return off;
}
